"""The function classes that are built in; `src.registries.FUNCTION_CLASSES` has their names."""
