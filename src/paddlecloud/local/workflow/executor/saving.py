"""After the program: output parameters, the result and output artifacts, and the report about them."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from paddlecloud.local.removal import remove_tree
from paddlecloud.local.workflow.executor.orders import (
    MESSAGE,
    MOST_MESSAGE,
    MOST_REPORT,
    MOST_VALUE,
    OUTPUTS,
    REPORT_FILE,
    WITHOUT_OUTPUTS,
    ExecutorError,
    shortened,
)

Report = dict[str, Any]


def save(orders: dict[str, Any], *, succeeded: bool) -> Report:
    """What the program gave, as far as it is there: as in Argo, a log or a partial file still helps. Of one that
    succeeded nothing may be missing; the report says what is."""
    report: Report = {}
    parameters: dict[str, str] = {}
    missing = []
    for name, order in (orders.get("parameters") or {}).items():
        try:
            parameters[name] = _value(name, order)
        except ExecutorError as why:
            missing.append(str(why))
    if parameters:
        report["parameters"] = parameters
    artifacts = []
    for number, order in enumerate(orders.get("artifacts") or ()):
        if order.get("log"):
            continue  # it is written while the program runs (`logs.py`)
        try:
            if (saved := _artifact(order, number, succeeded=succeeded)) is not None:
                artifacts.append(saved)
        except (ExecutorError, OSError) as why:
            missing.append(f"failed to save output artifact {order['name']}: {why}")
    if artifacts:
        report["artifacts"] = artifacts
    if missing and succeeded:
        report |= {"error": shortened("; ".join(missing)), WITHOUT_OUTPUTS: True}
        print(report["error"], file=sys.stderr)
    return report


def _value(name: str, order: dict[str, Any]) -> str:
    try:
        with open(str(order["path"]), "rb") as file:
            text = file.read(MOST_VALUE + 1)
    except FileNotFoundError:
        if order.get("default") is not None:
            return str(order["default"])
        raise ExecutorError(f"output parameter {name}: there is no file {order['path']}") from None
    except OSError as why:
        raise ExecutorError(f"output parameter {name}: {order['path']}: {why.strerror}") from None
    if len(text) > MOST_VALUE:
        raise ExecutorError(f"output parameter {name}: {order['path']} is larger than {MOST_VALUE:,} bytes")
    return text.decode(errors="replace").removesuffix("\n")


def _artifact(order: dict[str, Any], number: int, *, succeeded: bool) -> dict[str, Any] | None:
    from paddlecloud.local.workflow.executor import archives, sources, trees

    path = str(order["path"])
    if not os.path.exists(path):
        if order.get("optional"):
            if succeeded:  # the last line of a program that failed is its error
                print(f"optional artifact {order['name']}: there is no {path}; it is left out", file=sys.stderr)
            return None
        raise ExecutorError(f"there is no file or folder {path}")
    target = os.path.join(OUTPUTS, str(number))
    strategy = str(order.get("archive") or "tar")
    if strategy == "none" and os.path.isdir(path):
        with trees.entered(path, ()) as folder:
            trees.copy(folder, target)
        digest, size = sources.digest_of_folder(target)
    else:
        digest, size = archives.pack(path, target, strategy, int(order.get("level", 6)))
    if "s3" in order:
        from paddlecloud.local.workflow.executor import s3

        s3.store(order["s3"], target)
        remove_tree(target)
    return {"name": order["name"], "file": str(number), "digest": digest, "size": size}


def write(report: Report) -> None:
    """As the termination message where it fits, else as a file of the outputs volume."""
    text = json.dumps(report, ensure_ascii=False).encode(errors="replace")
    if len(text) > MOST_REPORT:
        raise ExecutorError(f"the outputs are {len(text):,} bytes, and a step has at most {MOST_REPORT:,}")
    if len(text) > MOST_MESSAGE:
        with open(os.path.join(OUTPUTS, REPORT_FILE), "wb") as file:
            file.write(text)
        short = {key: report[key] for key in ("error", WITHOUT_OUTPUTS) if key in report}
        text = json.dumps({"file": REPORT_FILE, **short}, ensure_ascii=False).encode(errors="replace")
    with open(MESSAGE, "wb") as message:
        message.write(text)
