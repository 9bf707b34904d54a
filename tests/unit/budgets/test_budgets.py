"""What strangers send costs time and memory in proportion to its size, for every parser that reads it.

Four times the input may cost at most 2.6² times as much (linear: 4, quadratic: 16). CPU time of this thread is
measured, in turns and the best of several, so that other processes do not count.
"""

from __future__ import annotations

import ast
import gc
import re
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import paddlecloud
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.modelhub.server.server import HubServer
from paddlecloud.pipelines.api import handlers, v1beta1, v2beta1
from unit.budgets.inputs import Row, run
from unit.budgets.rows import ROWS

TIMES = 4
ALLOWED = 2.6**2
ENOUGH = 0.001
"""Seconds from which on a measurement means something."""
HARMLESS = 0.004
"""Seconds for the large input that are not worth comparing."""
BYTES_PER_BYTE = 150
"""Memory that one byte of input may need at the same time."""
SPARE = 1 << 20
MADE_ONCE = 1 << 16
"""Bytes that two inputs may differ by whatever their size, such as buffers."""


def _cost(row: Row, given: Any) -> float:
    began = time.thread_time()
    run(row, given)
    return time.thread_time() - began


def _calibrated(row: Row) -> int:
    """A size whose cost can be measured, if there is one."""
    size = row.smallest
    while size * TIMES * 2 <= row.largest and _cost(row, row.make(size)) < ENOUGH:
        size *= 2
    return size


def _growth(row: Row, size: int) -> float:
    """How many times the cost four times the input has; 0 if that is no more than allowed.

    What looks too much is measured again, with inputs twice as large where the row allows it: what is quadratic shows
    more clearly there, while the step where an input no longer fits into a processor's cache has been passed.
    """
    found: list[float] = []
    for _ in range(4):
        small, large = row.make(size), row.make(size * TIMES)
        costs: list[tuple[float, float]] = []
        for _ in range(5):
            costs.append((_cost(row, small), _cost(row, large)))
            best = min(cost for cost, _ in costs), min(cost for _, cost in costs)
            if best[1] <= HARMLESS or best[1] <= ALLOWED * best[0]:
                return 0.0
        found.append(best[1] / best[0])
        if size * TIMES * 2 <= row.largest:
            size *= 2
    return min(found)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_four_times_the_input_costs_four_times_the_time(row: Row) -> None:
    gc.disable()
    try:
        growth = _growth(row, _calibrated(row))
    finally:
        gc.enable()
    assert growth == 0.0, f"{row}: {TIMES} times the input costs {growth:.1f} times the time"


def _peak(row: Row, given: Any) -> int:
    tracemalloc.start()
    try:
        run(row, given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_memory_is_a_multiple_of_the_input(row: Row) -> None:
    size = max(row.smallest, min(row.largest, 1 << 14))
    small, large = row.make(size // TIMES), row.make(size)
    for given in (small, large):
        run(row, given)  # what is made once, such as tables
    peaks = _peak(row, small), _peak(row, large)
    assert peaks[1] <= BYTES_PER_BYTE * size + SPARE
    assert peaks[1] <= ALLOWED * peaks[0] + MADE_ONCE, f"{TIMES} times the input needs {peaks} bytes"


SOURCE = Path(paddlecloud.__file__).parent
_ROUTE = re.compile(r"""(?:web\.(post|put|patch)|router\.add_(post|put|patch))\(\s*f?"([^"]+)\"""")

EXEMPT = {
    "serving: POST /v2/repository/index": "reads no body",
    "serving: POST /v2/repository/models/{name}/load": "reads no body",
    "serving: POST /v2/models/{name}/versions/{version}/infer": "is POST /v2/models/{name}/infer",
    "modelhub: PUT /v1/namespaces/{namespace}/blobs/{sha256}": "is stored as it comes, and not read",
}
READ_AS = {
    "pipelines: POST /experiments": "pipelines: bodies",
    "pipelines: POST /runs": "pipelines: runs",
    "pipelines: POST /jobs": "pipelines: schedules",
    "pipelines: POST /recurringruns": "pipelines: schedules",
    "pipelines: POST /pipelines": "pipelines: packages",
    "pipelines: POST /pipelines/upload": "pipelines: packages",
    "pipelines: POST /pipelines/upload_version": "pipelines: packages",
}
"""The rows of what these read beyond the JSON that all calls decode alike."""
WITH_A_BODY = ("POST", "PUT", "PATCH")


def _routes() -> set[str]:
    """Every route that takes a body, as rows name it."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[:-1]
        name = "paddlejob" if "paddlejob" in package else package[0] if package else ""
        for first, second, route in _ROUTE.findall(path.read_text()):
            found.add(f"{name}: {(first or second).upper()} {route}")
    hub = ((method, path) for method, path, _, _ in HubServer._table(HubServer))
    found |= {f"modelhub: {method} {path}" for method, path in hub if method in WITH_A_BODY}
    calls = (call for words in (v1beta1, v2beta1) for call in handlers.table(words))
    # Of calls that name an object, such as /runs/{id}:archive, only the path is read.
    found |= {f"pipelines: {call[0]} {call[1]}" for call in calls if call[0] in WITH_A_BODY and "{" not in call[1]}
    return found


def test_every_route_that_takes_a_body_has_a_row() -> None:
    covered = {row.covers for row in ROWS} | EXEMPT.keys()
    routes = _routes()
    missing = {route for route in routes if not any(READ_AS.get(route, route).startswith(place) for place in covered)}
    packages = {route.partition(":")[0] for route in routes}
    assert {"cache", "modelhub", "paddlejob", "pipelines", "serving", "ui"} <= packages, "the routes are found"
    assert missing == set(), "add a row with an input made to be slow"


def test_every_media_type_of_the_api_has_a_row() -> None:
    covered = {row.covers.removeprefix("api: ") for row in ROWS}
    assert set(negotiation.PATCH_TYPES) - covered == set()
    tree = ast.parse((SOURCE / "local/apiserver/http/negotiation.py").read_text())
    reader = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "read_object")
    read = {node.value for node in ast.walk(reader) if isinstance(node, ast.Constant) and "/" in str(node.value)}
    media = {str(text) for text in read if re.fullmatch(r"application/[a-z.+-]+", str(text))}
    aliases = {"application/x-yaml"}
    assert (media - aliases) | {negotiation.PROTOBUF} <= covered


def test_every_class_that_parses_selectors_or_frames_has_a_row() -> None:
    """What the API server reads beside bodies."""
    covered = {row.covers for row in ROWS}
    wanted = {"labelSelector", "fieldSelector", "path", "Accept", "SPDY", "WebSocket", "patterns of CRDs",
              "formats of CRDs", "jsonPath of columns", "quantities", "managedFields", "names",
              "HTML of pods"}  # fmt: skip
    assert {f"api: {name}" for name in wanted} <= covered
    assert {"gateway: head of a request", "gateway: head of an answer", "gateway: chunked body"} <= covered
    assert "paddleservice: metrics of pods" in covered
    assert {"serving: gRPC", "serving: data URLs", "serving: ONNX models", "archives"} <= covered
