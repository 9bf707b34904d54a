"""Write `recorded.jsonl` anew: one line for each case with the oracle's verdict."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import go

from .expressions import JSONPATH_VARIABLES, JSONPATHS, TEXT_VARIABLES, TEXTS, VARIABLES, Expressions

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.jsonl"
SEED, COUNT = 20, 1500


def cases() -> Iterator[dict[str, Any]]:
    for expression in dict.fromkeys(Expressions(SEED).some(COUNT)):
        yield {"expression": expression, "variables": VARIABLES}
    for expression in JSONPATHS:
        yield {"expression": expression, "variables": JSONPATH_VARIABLES}
    for lenient in (False, True):
        for text in TEXTS:
            yield {"template": json.dumps(text), "variables": TEXT_VARIABLES, "lenient": lenient}


def verdicts(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    module = HERE / "oracle"
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "oracle"
        go.build(
            module, lambda run, made: run("build", *go.LINKED, "-o", f"{made}/oracle", "."), built, module / "main.go"
        )
        lines = "\n".join(json.dumps(each) for each in asked)
        done = subprocess.run([built / "oracle"], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    asked = list(cases())
    with RECORDED.open("w") as file:
        for case, verdict in zip(asked, verdicts(asked), strict=True):
            said = {key: value for key, value in case.items() if key != "variables"}
            if "error" in verdict:
                verdict = {"error": verdict["error"].splitlines()[0]}
            file.write(json.dumps({**said, **verdict}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
