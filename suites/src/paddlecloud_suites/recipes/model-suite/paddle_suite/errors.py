"""One line instead of a stack: what is wrong, where, and what to do next."""

import sys


def refuse(message):
    """End the program as a wrong command line does."""
    sys.exit(f"error: {message}")


# mypy: ignore-errors
