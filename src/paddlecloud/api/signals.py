"""What an exit code above 128 says: the signal that ended the program, in words.

Shells and container runtimes report a program that a signal ended as 128 and the number of the signal. The names are
those of Linux, whatever machine reads them.
"""

from __future__ import annotations

_NAMES = {
    1: ("hang-up", "SIGHUP"),
    2: ("interrupted", "SIGINT"),
    3: ("quit", "SIGQUIT"),
    4: ("illegal instruction", "SIGILL"),
    5: ("trace trap", "SIGTRAP"),
    6: ("aborted", "SIGABRT"),
    7: ("bus error", "SIGBUS"),
    8: ("floating-point exception", "SIGFPE"),
    9: ("killed", "SIGKILL"),
    11: ("segmentation fault", "SIGSEGV"),
    13: ("broken pipe", "SIGPIPE"),
    15: ("terminated", "SIGTERM"),
    24: ("CPU time limit exceeded", "SIGXCPU"),
    25: ("file size limit exceeded", "SIGXFSZ"),
    31: ("bad system call", "SIGSYS"),
}


def signal_text(exit_code: object) -> str:
    """`segmentation fault (SIGSEGV)` of 139; empty for a code that is no signal, or an unusual one."""
    words = _NAMES.get(exit_code - 128) if isinstance(exit_code, int) else None
    return f"{words[0]} ({words[1]})" if words else ""


def with_signal(exit_code: object, said: str) -> str:
    """What a program said last, after the signal that ended it, unless it names that itself."""
    text = signal_text(exit_code)
    if not text or any(word.lower() in said.lower() for word in text.rstrip(")").split(" (")):
        return said
    return f"{text}: {said}" if said else text
