"""Programs of Python that are started where the user happens to be.

`python -m` and `python -c` look for modules in the working directory first, before the standard library. In a folder
that everybody may write to, a file of another user of the machine with the name of a module would run with the rights
of the caller.
"""

from __future__ import annotations

WITHOUT_WORKING_DIRECTORY = "import sys; sys.path[:] = [folder for folder in sys.path if folder]\n"
"""Begins a program for `python -c`, which calls the working directory the empty text."""


def program_of_module(module: str) -> str:
    """For `python -c`: what `python -m MODULE` does."""
    run = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return WITHOUT_WORKING_DIRECTORY + run
