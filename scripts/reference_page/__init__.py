"""The pages of docs/reference/, each made of the code that it describes."""
