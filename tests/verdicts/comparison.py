"""When two verdicts on one request are equal.

The status code and its detail must be. Where the embedded server deliberately does not do what was asked for, or
answers a malformed request with 4xx instead of 500, only authorisation is compared: both refuse with 403, or neither
does. docs/differences.md names these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from .kinds import BY_PLURAL, UNSERVED_SUBRESOURCES
from .model import CUSTOM, NOBODY, AccessScenario, Case, Verdict

UNAUTHORIZED, FORBIDDEN = 401, 403
STREAMS = ("exec", "attach", "portforward")
"""Options are judged before it is looked whether the pod is there, or after."""
NOT_RUNNING = ("pods", "proxy")
"""No pod here runs: kube-apiserver refuses its empty address with 400, the embedded server says 503 and why."""
ODD_NAMES = (".", "..", "\0")
"""No object has them; they lead to different refusals."""
UNSERVED_PATHS = ("/logs", "/debug", "/healthz/", "/livez/", "/readyz/", "/openapi/v2", "/metrics")


@dataclass(frozen=True)
class Difference:
    world: AccessScenario
    case: Case
    real: Verdict
    embedded: Verdict

    def __str__(self) -> str:
        held = " + ".join(map(str, self.world.grants)) or "no role"
        return f"{held} | {self.case} => real {self.real}, embedded {self.embedded}"


def differences(
    worlds: Sequence[AccessScenario], real: Sequence[Sequence[Verdict]], embedded: Sequence[Sequence[Verdict]]
) -> list[Difference]:
    return [
        Difference(world, case, theirs, ours)
        for world, all_theirs, all_ours in zip(worlds, real, embedded, strict=True)
        for case, theirs, ours in zip(world.cases, all_theirs, all_ours, strict=True)
        if not equal(case, theirs, ours)
    ]


def equal(case: Case, real: Verdict, embedded: Verdict) -> bool:
    if real == embedded:
        return True
    if case.actor == NOBODY and real.code == FORBIDDEN:  # anonymous requests are not authenticated here
        return embedded.code in (UNAUTHORIZED, FORBIDDEN)
    if real.code == 500:  # a mistake of the client all the same
        return 400 <= embedded.code < 500
    return only_authorisation(case) and (real.code == FORBIDDEN) == (embedded.code == FORBIDDEN)


def only_authorisation(case: Case) -> bool:
    parts = [part for part in unquote(case.path).split("/") if part]
    if len(parts) < (4 if parts[:1] == ["apis"] else 3) or parts[0] not in ("api", "apis"):
        return case.method != "GET" or case.path == "/" or case.path.startswith(UNSERVED_PATHS)
    if case.method == "OPTIONS" or "//" in case.path or set(parts) & {*STREAMS, *ODD_NAMES}:
        return True
    if any({*pair} <= {*parts} for pair in (*UNSERVED_SUBRESOURCES, NOT_RUNNING)):
        return True
    writes = case.method in ("POST", "PUT", "PATCH")
    kinds = [BY_PLURAL[part] for part in parts if part in BY_PLURAL]
    if any(kind.group == CUSTOM for kind in kinds):  # routed by hand: not every method and path has its refusal
        methods = ("GET", "POST", "DELETE") if parts[-1] in BY_PLURAL else ("GET", "PUT", "PATCH", "DELETE")
        return "more" in parts or "watch" in parts or case.method not in methods
    return any(writes and kind.fields is None for kind in kinds)
