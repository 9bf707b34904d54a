"""Copying a source into a set: what to copy (`patterns`), and doing it with many threads (`copier`)."""
