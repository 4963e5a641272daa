"""The study functions: what decoders learn in context of classes of functions, beside exact references."""
