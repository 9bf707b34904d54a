"""A run of a pipeline as a graph: a box for each step, from left to right, joined as steps follow one another. Pure.

Argo's nodes are steps and groups of steps; groups are left out and what they join is joined directly. Attempts of a
step are one box, and so are the many items of a loop. Every writer of a workflow may write its nodes: anything may be
in them, circles too, and what is drawn is bounded.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import human_duration, moment_of
from paddlecloud.pipelines.runs.record import LEAVES

MOST_NODES = 2000
"""Of more nothing is drawn: the table below has them."""
MOST_BOXES = 250
MOST_ITEMS = 6
"""Items of a loop that have boxes of their own."""
WIDTH, HEIGHT = 176, 46
GAP_X, GAP_Y, MARGIN = 52, 16, 10
LETTERS = 21
"""That fit into a box; wide ones count twice."""
DID_NOT_RUN = ("Skipped", "Omitted")
_WORST_FIRST = ("Failed", "Error", "Running", "Pending", "Succeeded", "Omitted", "Skipped")


class Box(NamedTuple):
    id: str
    """Of the node; of several, of the first."""
    name: str
    phase: str
    detail: str
    x: int
    y: int

    @property
    def label(self) -> str:
        return shortened(self.name)


class RunGraph(NamedTuple):
    boxes: list[Box]
    lines: list[str]
    """Paths of SVG."""
    width: int
    height: int


NOTHING = RunGraph([], [], 0, 0)


def graph(nodes: Mapping[str, Object], now: float) -> RunGraph:
    if len(nodes) > MOST_NODES:
        return NOTHING
    boxes = _boxes(nodes)
    if len(boxes) > MOST_BOXES:
        return NOTHING
    edges = _edges(nodes, boxes)
    layers = _layers(boxes, edges, nodes)
    places = _places(layers, edges)
    drawn = [_box(key, members, nodes, places[key], now) for key, members in boxes.items()]
    lines = [_line(places[before], places[after]) for before in edges for after in edges[before]]
    depth = max((len(layer) for layer in layers), default=0)
    width = 2 * MARGIN + len(layers) * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + depth * (HEIGHT + GAP_Y) - GAP_Y
    return RunGraph(drawn, lines, width, height) if drawn else NOTHING


def shortened(text: str) -> str:
    room = LETTERS
    for place, letter in enumerate(text):
        room -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if room < 0:
            return f"{text[: max(0, place - 1)]}…"
    return text


def _boxes(nodes: Mapping[str, Object]) -> dict[str, list[str]]:
    """Box → its nodes. A box is called by its first node."""
    retries = {
        key: tries for key, node in nodes.items() if node.get("type") == "Retry" and (tries := _tries(node, nodes))
    }
    attempts = {child for tries in retries.values() for child in tries}
    single = {key: [key] for key, node in nodes.items() if node.get("type") in LEAVES and key not in attempts}
    single |= {key: [key, *tries] for key, tries in retries.items()}
    loops: dict[tuple[str, str], list[str]] = {}
    for key in single:
        name = _name(nodes[key], key)
        if name.endswith(")") and "(" in name and nodes[key].get("type") != "Suspend":
            loops.setdefault((str(nodes[key].get("boundaryID")), name.partition("(")[0]), []).append(key)
    for items in loops.values():
        if len(items) > MOST_ITEMS:
            single[items[0]] = [one for key in items for one in single.pop(key)]
    return dict(sorted(single.items(), key=lambda each: _order(nodes[each[0]], each[0])))


def _order(node: Object, key: str) -> tuple[str, str, str]:
    return str(node.get("startedAt") or "~"), _name(node, key), key


def _tries(node: Object, nodes: Mapping[str, Object]) -> list[str]:
    """The attempts of a step that is a pod; those of a whole group stay groups."""
    named = f"{node.get('name')}("
    children = [key for key in node.get("children") or () if key in nodes]
    found = [key for key in children if str(nodes[key].get("name")).startswith(named)]
    return found if all(nodes[key].get("type") in LEAVES for key in found) else []


def _edges(nodes: Mapping[str, Object], boxes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Box → boxes that follow it, through groups."""
    of = {node: key for key, members in boxes.items() for node in members}
    found: dict[str, list[str]] = {}
    for key, members in boxes.items():
        seen: set[str] = set()
        waiting = [child for node in members for child in nodes[node].get("children") or ()]
        after: dict[str, None] = {}
        while waiting:
            child = waiting.pop()
            if child in seen or child not in nodes:
                continue
            seen.add(child)
            if child in of:
                after[of[child]] = None
            else:
                waiting += nodes[child].get("children") or ()
        after.pop(key, None)
        found[key] = [*after]
    return found


def _layers(
    boxes: Mapping[str, list[str]], edges: Mapping[str, list[str]], nodes: Mapping[str, Object]
) -> list[list[str]]:
    """Every box right of all that it follows; of a circle the boxes are in the first layer. Exit handlers come last."""
    layer = dict.fromkeys(boxes, 0)
    open_edges = Counter(after for key in edges for after in edges[key])
    ready = [key for key in boxes if not open_edges[key]]
    while ready:
        key = ready.pop()
        for after in edges[key]:
            layer[after] = max(layer[after], layer[key] + 1)
            open_edges[after] -= 1
            if not open_edges[after]:
                ready.append(after)
    for key in boxes:
        if open_edges[key]:
            layer[key] = 0
    last = max(layer.values(), default=0)
    for key in boxes:
        if _is_exit(nodes[key]) and len(boxes) > 1:
            layer[key] = last + 1
    used = sorted({*layer.values()})
    return [[key for key in boxes if layer[key] == number] for number in used]


def _is_exit(node: Object) -> bool:
    return str(node.get("name") or "").endswith(".onExit") and not node.get("boundaryID")


def _places(layers: list[list[str]], edges: Mapping[str, list[str]]) -> dict[str, tuple[int, int]]:
    """Left upper corners. Boxes stand beside what they follow, as far as there is room."""
    before: dict[str, list[str]] = {}
    for key, after in edges.items():
        for each in after:
            before.setdefault(each, []).append(key)
    rows: dict[str, float] = {}
    places: dict[str, tuple[int, int]] = {}
    for column, layer in enumerate(layers):
        wanted = {key: _mean([rows[each] for each in before.get(key, ()) if each in rows]) for key in layer}
        for row, key in enumerate(sorted(layer, key=lambda each: wanted[each])):
            rows[key] = row
            places[key] = MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)
    return places


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _line(begin: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = begin[0] + WIDTH, begin[1] + HEIGHT // 2
    to_x, to_y = end[0], end[1] + HEIGHT // 2
    bend = x + GAP_X // 2, to_x - GAP_X // 2
    return f"M{x} {y} C{bend[0]} {y} {bend[1]} {to_y} {to_x} {to_y}"


def _box(key: str, members: list[str], nodes: Mapping[str, Object], place: tuple[int, int], now: float) -> Box:
    first = nodes[key]
    name, phase = _name(first, key), str(first.get("phase") or "Pending")
    if len(members) == 1:
        return Box(key, name, phase, " · ".join(_facts(first, now)), *place)
    if first.get("type") == "Retry":
        return Box(key, name, phase, " · ".join([*_facts(first, now), f"×{len(members) - 1}"]), *place)
    phases = Counter(str(nodes[one].get("phase") or "Pending") for one in members)
    worst = next((each for each in _WORST_FIRST if phases[each]), phase)
    counted = " ".join(f"{count} {each}" for each, count in phases.most_common(2))
    return Box(key, f"{name.partition('(')[0]} ×{len(members)}", worst, counted, *place)


def _facts(node: Object, now: float) -> Iterator[str]:
    if (node.get("memoizationStatus") or {}).get("hit"):
        yield "cached"
    if node.get("phase") in DID_NOT_RUN:
        return
    began, ended = moment_of(node.get("startedAt")), moment_of(node.get("finishedAt"))
    if began is not None and (ended is not None or node.get("phase") == "Running"):
        yield human_duration(max(0.0, (now if ended is None else ended) - began))


def _name(node: Object, key: str) -> str:
    return str(node.get("displayName") or node.get("name") or key)
