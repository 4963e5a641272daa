"""The sections of docs/reference.md, each made of the code that it describes."""
