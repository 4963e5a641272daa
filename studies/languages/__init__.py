"""The study of membership in regular languages, in context."""
