"""Copying a source into a set: what to copy (`patterns`, `choice`), and doing it with many threads (`copier`)."""
