"""The parts of an object that output parameters of resource templates name: kubectl's JSONPath, and paths of jq. Pure.

Of JSONPath: `{.a.b}`, `['a']`, `[0]`, `[-1]`, `[*]`, `[?(@.type=="Ready")]`, `..` is refused, and texts between braces.
Of jq: paths, `fromjson` and `tojson`, and pipes of them. A part that is not there is an empty text, as `kubectl -o
jsonpath` prints it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from paddlecloud.local.workflow.executor.orders import ExecutorError

_STEP = re.compile(
    r"""\.(?P<name>[\w-]+(?:\\\.[\w.-]+)*)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*?)\]
      | \[(?P<quote>['"])(?P<key>[^'"]*)(?P=quote)\]
      | \[\?\(@(?P<path>(?:\.[\w-]+)+)\s*(?P<operator>==|!=)\s*(?P<wanted>"[^"]*"|'[^']*'|[\w.-]+)\)\]
      | (?P<self>\.(?=$|\s|\[|\|))
      | (?P<star>\.\*)""",
    re.VERBOSE,
)
Step = tuple[str, Any]


def steps_of(path: str) -> list[Step]:
    """A path as steps; raises `ExecutorError` for what is not served."""
    steps: list[Step] = []
    at = 0
    path = path.strip().removeprefix("$").removeprefix("@")
    if path and not path.startswith((".", "[")):
        path = f".{path}"
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ExecutorError(f"the path {path!r} is not served from {path[at:]!r} on")
        at = found.end()
        if found["name"] is not None:
            steps.append(("key", found["name"].replace("\\.", ".")))
        elif found["index"] is not None:
            steps.append(("index", int(found["index"])))
        elif found["all"] is not None or found["star"] is not None:
            steps.append(("all", None))
        elif found["key"] is not None:
            steps.append(("key", found["key"]))
        elif found["path"] is not None:
            wanted = found["wanted"].strip("\"'")
            steps.append(("filter", (steps_of(found["path"]), found["operator"] == "==", wanted)))
    return steps


def walk(value: Any, steps: list[Step]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    (kind, what), rest = steps[0], steps[1:]
    if (kind == "key" and isinstance(value, dict) and what in value) or (
        kind == "index" and isinstance(value, list) and -len(value) <= what < len(value)
    ):
        yield from walk(value[what], rest)
    elif kind == "all" and isinstance(value, (list, dict)):
        for each in value if isinstance(value, list) else value.values():
            yield from walk(each, rest)
    elif kind == "filter" and isinstance(value, list):
        inner, equal, wanted = what
        for each in value:
            if (wanted in [_text(found) for found in walk(each, inner)]) == equal:
                yield from walk(each, rest)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Any) -> str:
    """As Go writes JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_path(template: str, value: Any) -> str:
    """`{.metadata.name}` and texts around it; a template without braces is a path."""
    template = template.strip()
    if "{" not in template:
        template = f"{{{template}}}"
    made = []
    for part in re.split(r"(\{[^}]*\})", template):
        if part.startswith("{"):
            inner = part[1:-1].strip()
            if inner[:1] in "\"'" and inner:
                made.append(inner[1:-1].encode().decode("unicode_escape"))
            else:
                made.append(" ".join(_text(found) for found in walk(value, steps_of(inner))))
        else:
            made.append(part)
    return "".join(made)


def jq(expression: str, value: Any) -> str:
    """One result for each line, as Argo reads those of its jq. A word of jq is a function, and no path."""
    found = [value]
    for part in expression.split("|"):
        if (name := part.strip()) in _FUNCTIONS:
            found = [_FUNCTIONS[name](one) for one in found]
            continue
        if not name.startswith((".", "[")):
            raise ExecutorError(f"the jq filter {name[:60]!r} is not served: paths, {' and '.join(_FUNCTIONS)} are")
        steps = steps_of(part)
        found = [each for one in found for each in walk(one, steps)]
    return "\n".join(_text(each) for each in found)


def _from_json(value: Any) -> Any:
    if value is None:
        return None  # when a filter is judged there is no object yet
    try:
        return json.loads(str(value))
    except (ValueError, RecursionError) as why:
        raise ExecutorError(f"fromjson: {why}") from None


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "fromjson": _from_json,
    "tojson": _compact,
}
