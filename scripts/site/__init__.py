"""The site: Sphinx builds it from docs/ and report/, and a browser checks every page."""
