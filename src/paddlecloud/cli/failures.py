"""How a command fails: the exit codes users script against, and the text they read.

Every failure says what failed, why, and the next command to run. A program gets the same as JSON on stderr when it
asked for `-o json`. Tracebacks belong to `--debug` alone (`main.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paddlecloud.cli.control_characters import in_json, visible
from paddlecloud.kube.errors import ApiError, ConfigError, Unreachable

OK = 0
ERROR = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
INVALID = 5
FORBIDDEN = 6
UNREACHABLE = 7
UNSCHEDULABLE = 8
JOB_FAILED = 100
NOT_FINISHED = 101
CANCELLED = 103
TIMEOUT = 124
INTERRUPTED = 130

MEANINGS: dict[int, str] = {
    OK: "ok",
    ERROR: "error",
    USAGE: "usage",
    NOT_FOUND: "not found",
    CONFLICT: "conflict",
    INVALID: "invalid",
    FORBIDDEN: "forbidden",
    UNREACHABLE: "unreachable",
    UNSCHEDULABLE: "unschedulable",
    JOB_FAILED: "job failed",
    NOT_FINISHED: "not finished",
    CANCELLED: "cancelled",
    TIMEOUT: "timeout",
    INTERRUPTED: "interrupted",
}

BY_REASON: dict[str, int] = {
    "NotFound": NOT_FOUND,
    "UnknownKind": NOT_FOUND,
    "Gone": NOT_FOUND,
    "Conflict": CONFLICT,
    "AlreadyExists": CONFLICT,
    "Invalid": INVALID,
    "BadRequest": INVALID,
    "RequestEntityTooLarge": INVALID,
    "UnsupportedMediaType": INVALID,
    "Forbidden": FORBIDDEN,
    "Unauthorized": FORBIDDEN,
    "Unreachable": UNREACHABLE,
    "ServiceUnavailable": UNREACHABLE,
    "Timeout": TIMEOUT,
}


class CliError(Exception):
    """A failure with everything its report needs. `why` and `next` may be empty when there is nothing to add.

    `missing` is the name of an object that does not exist and the kinds it was looked for in: a similar name is found
    there (`suggestions`).
    """

    def __init__(
        self,
        message: str,
        *,
        why: str = "",
        next: str = "",
        exit_code: int = ERROR,
        reason: str = "",
        missing: tuple[str, tuple[str, ...]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.next = next
        self.exit_code = exit_code
        self.missing = missing
        self.reason = reason or MEANINGS[exit_code].title().replace(" ", "")


class UsageError(CliError):
    """The command line itself is wrong; nothing was attempted."""

    def __init__(self, message: str, *, why: str = "", next: str = "pdc --help") -> None:
        super().__init__(message, why=why, next=next, exit_code=USAGE)


class InputError(CliError):
    """A file or value given by the user cannot be understood."""

    def __init__(self, message: str, *, why: str = "", next: str = "") -> None:
        super().__init__(message, why=why, next=next, exit_code=INVALID)


@contextmanager
def attempting(what: str, *, hints: Mapping[str, str] | None = None) -> Iterator[None]:
    """Gives a refusal by the server its first half: what was being done. `hints` are next steps by reason."""
    try:
        yield
    except ApiError as error:
        raise from_api(error, doing=f"cannot {what}", next=(hints or {}).get(error.reason, "")) from error


def from_config(error: ConfigError) -> CliError:
    """No request could be made at all."""
    exit_code = {"UnknownContext": USAGE, "NoKubeconfig": UNREACHABLE}.get(error.reason, ERROR)
    return CliError(
        "cannot find out which API server to talk to",
        why=error.message,
        next="pdc doctor",
        exit_code=exit_code,
        reason=error.reason,
    )


def from_api(error: ApiError, *, doing: str, next: str = "") -> CliError:
    """A refusal of the API server in the words of the command line."""
    return CliError(
        doing,
        why=error.message,
        next=next or _next_step(error),
        exit_code=BY_REASON.get(error.reason, ERROR),
        reason=error.reason,
        missing=_missing(error),
    )


def _missing(error: ApiError) -> tuple[str, tuple[str, ...]] | None:
    details = error.details or {}
    if error.reason != "NotFound" or not (details.get("name") and details.get("kind")):
        return None
    return str(details["name"]), (".".join(filter(None, (str(details["kind"]), details.get("group")))),)


def _next_step(error: ApiError) -> str:
    details = error.details or {}
    kind = str(details.get("kind") or "").lower()
    if isinstance(error, Unreachable):
        return "pdc doctor    (or `pdc up` to start a platform on this machine)"
    steps = {
        "NotFound": f"pdc get {kind}" if kind and details.get("name") else "pdc api-resources",
        "UnknownKind": "pdc api-resources",
        "AlreadyExists": "pdc apply -f FILE    (changes what exists)",
        "Conflict": "run the command again; if another tool owns the field, add --force-conflicts to `pdc apply`",
        "Invalid": f"pdc explain {'.'.join([kind, *_field(details)])}" if kind else "pdc api-resources",
        "BadRequest": f"pdc explain {kind}" if kind else "pdc api-resources",
        "Forbidden": "kubectl auth can-i --list    (what these credentials may do)",
        "Unauthorized": "pdc kubeconfig    (which credentials were sent)",
        "TooManyRequests": f"wait {error.retry_after or 1} s and run the command again",
        "ServiceUnavailable": "pdc doctor",
    }
    return steps.get(error.reason, "pdc doctor")


def _field(details: Mapping[str, Any]) -> list[str]:
    """The path of the first field at fault, as `pdc explain` takes it: without indexes and keys."""
    fields = [str(cause.get("field") or "") for cause in details.get("causes") or ()]
    plain = re.sub(r"\[[^]]*\]", "", fields[0]) if fields else ""
    return plain.split(".") if re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", plain) else []


def render(error: CliError, *, as_json: bool) -> str:
    """The report for stderr."""
    if as_json:
        import json

        body = {
            "apiVersion": "cli.paddlecloud.org/v1",
            "kind": "Error",
            "reason": error.reason,
            "exitCode": error.exit_code,
            "message": error.message,
            "why": error.why,
            "next": error.next,
        }
        return in_json(json.dumps(body, ensure_ascii=False))
    head = f"error: {error.message}"
    if error.why:
        head += f": {error.why}"
    return visible(f"{head}\nnext:  {error.next}" if error.next else head)
