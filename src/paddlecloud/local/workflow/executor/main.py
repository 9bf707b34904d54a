"""The program that pods of a workflow start: `inputs` in an init container, `run COMMAND…`, `resource`, `data` or
`http` in the main one.

Started as a script by the interpreter of the platform, in the image of the step. Orders come in variables
(`orders.py`); the report is the termination message, or a file of the outputs volume where it is long.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

if __name__ == "__main__":
    sys.path += [__file__.rpartition("/paddlecloud/")[0], "/argo/packages"]  # the latter is `orders.PACKAGES`

from paddlecloud.local.workflow.executor import logs
from paddlecloud.local.workflow.executor.orders import (
    BROKEN,
    MESSAGE,
    WITHOUT_OUTPUTS,
    ExecutorError,
    shortened,
    taken_out,
)


def main(arguments: list[str]) -> int:
    orders = json.loads(taken_out(os.environ))
    try:
        if arguments[0] == "inputs":
            from paddlecloud.local.workflow.executor import loading

            loading.make(orders)
            return 0
        with logs.opened(orders.get("log")) as log:
            if arguments[0] == "run":
                return _step(orders, arguments[1:], log)
            with logs.of_executor(log):
                return _without_program(arguments[0], orders)
    except ExecutorError as why:
        return _broken(str(why))


def _without_program(kind: str, orders: dict[str, Any]) -> int:
    """`resource`, `data` and `http`: what the template asks for is done by the executor itself."""
    from paddlecloud.local.workflow.executor import resources, saving

    if kind == "data":
        from paddlecloud.local.workflow.executor import data

        saving.write({"result": data.carry_out(orders["data"])})
        return 0
    if kind == "http":
        from paddlecloud.local.workflow.executor import http_request

        return http_request.carry_out(orders["http"])
    try:
        parameters = resources.carry_out(orders["resource"], orders.get("parameters") or {})
    except resources.Failed as why:
        _say(str(why))
        return 1
    if parameters:
        saving.write({"parameters": parameters})
    return 0


def _step(orders: dict[str, Any], command: list[str], log: logs.Log | None) -> int:
    from paddlecloud.local.workflow.executor import container_dependencies

    if "beside" in orders:
        return container_dependencies.run_sidecar(command)
    program = _Program(orders, command, log)
    if "set" in orders or "sidecars" in orders:
        return container_dependencies.run_in_set(orders.get("set") or {"name": "main"}, program.run, program.save)
    return program.save(program.run())


class _Program:
    """The program of the step, then its outputs."""

    def __init__(self, orders: dict[str, Any], command: list[str], log: logs.Log | None) -> None:
        self._orders = orders
        self._command = command
        self._log = log
        self._result = ""

    def run(self) -> int:
        from paddlecloud.local.workflow.executor import programs

        command = self._command
        if "source" in self._orders:
            handle, script = tempfile.mkstemp(prefix="script-")
            with os.fdopen(handle, "w") as file:
                file.write(self._orders["source"])
            os.chmod(script, 0o700)
            command = [*command, script]
        code, self._result = programs.run(command, capture=bool(self._orders.get("result")), log=self._log)
        return code

    def save(self, code: int) -> int:
        """Gives the exit code of the step."""
        from paddlecloud.local.workflow.executor import saving

        report = saving.save(self._orders, succeeded=not code)
        if self._orders.get("result"):
            report["result"] = self._result
        if report:
            saving.write(report)
        return BROKEN if WITHOUT_OUTPUTS in report else code


def _broken(message: str) -> int:
    _say(message)
    return BROKEN


def _say(message: str) -> None:
    print(message, file=sys.stderr)
    with open(MESSAGE, "w", encoding="utf-8") as file:
        file.write(json.dumps({"error": shortened(message)}, ensure_ascii=False))


def failure_in(message: str) -> str:
    """What the executor, or the program itself, said of a failure."""
    try:
        report = json.loads(message)
    except (ValueError, RecursionError):
        return message.strip()
    return str(report.get("error", "")) if isinstance(report, dict) else message.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
