"""Whether two runs of a case ended alike, and if not, in what they differ. Pure.

What two runs on real Argo would not have in common either is no difference: names that the API server makes, numbers
that a program throws, and the addresses in the hosts file of a pod.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple

from .verdict import Node, Verdict

DICE = {"examples/scripts-bash.yaml": ("result",), "examples/custom-metrics.yaml": ("rand-int-value",)}
"""By case: outputs that a program makes of /dev/urandom or of the shell's $RANDOM."""
_GENERATED = re.compile("(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])")
"""What Kubernetes appends to a `generateName`: five of the characters that make no words."""
_HOSTS = "# Kubernetes-managed hosts file."
"""The file is the kubelet's, and has the address of the pod; the embedded platform has its Services in it, too."""


class Result(Enum):
    SAME = "same"
    DIFFERS = "differs"
    UNJUDGED = "–"
    """Real Argo did not complete it: it waits for a person, a network or an image that neither platform has, or was not
    over in time."""


class Compared(NamedTuple):
    result: Result
    difference: str = ""


def compare(real: Verdict, ours: Verdict, case: str = "") -> Compared:
    difference = _difference(_comparable(real, case), _comparable(ours, case))
    if not difference:
        return Compared(Result.SAME)
    if not real.judges:
        return Compared(Result.UNJUDGED, real.outside or difference)
    return Compared(Result.DIFFERS, difference)


def _difference(real: Verdict, ours: Verdict) -> str:
    if real.phase != ours.phase:
        return f"{real.phase} ≠ {ours.phase}" + (f": {ours.message}" if ours.message else "")
    theirs, own = Counter(map(_state, real.nodes)), Counter(map(_state, ours.nodes))
    if theirs != own:
        return _nodes(theirs - own, own - theirs)
    values = {_state(node): node.outputs for node in ours.nodes}
    for node in real.nodes:
        if Counter(map(_state, real.nodes))[_state(node)] == 1 and node.outputs != values[_state(node)]:
            return f"outputs of {node.name}: {_shown(node.outputs)} ≠ {_shown(values[_state(node)])}"
    if real.outputs != ours.outputs:
        return f"outputs: {_shown(real.outputs)} ≠ {_shown(ours.outputs)}"
    return ""


def _comparable(verdict: Verdict, case: str) -> Verdict:
    thrown = DICE.get(case, ())
    nodes = [
        Node(_GENERATED.sub("NAME", node.name), *node[1:3], _outputs(node.outputs, thrown)) for node in verdict.nodes
    ]
    return verdict._replace(nodes=tuple(nodes), outputs=_outputs(verdict.outputs, thrown))


def _outputs(outputs: Mapping[str, Any], thrown: Collection[str]) -> dict[str, Any]:
    return {name: "DICE" if name in thrown else _text(value) for name, value in outputs.items()}


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "HOSTS" if value.startswith(_HOSTS) else _GENERATED.sub("NAME", value)


def _state(node: Node) -> tuple[str, str, str]:
    return node.name, node.kind, node.phase


def _nodes(missing: Counter[tuple[str, str, str]], more: Counter[tuple[str, str, str]]) -> str:
    def shown(nodes: Counter[tuple[str, str, str]]) -> str:
        named = [f"{name} ({kind}) {phase}" for name, kind, phase in sorted(nodes)]
        return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "") or "nothing"

    return f"nodes: {shown(missing)} ≠ {shown(more)}"


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) < 80 else f"{text[:77]}…"
