"""Inside the pod of a Python step: makes the executor's input, starts the component's program, reports what it gave.

Runs in the image of the component, by its `python3`, as text on the command line: it imports the standard library
alone, works from Python 3.7 on, and has no pair of braces that Argo would take for a tag. Orders come in the variable
PIPELINE_STEP. What the program wrote to executor_output.json becomes one file for each output, which Argo collects.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

ORDERS = "PIPELINE_STEP"
OUTPUTS = os.environ.get("PIPELINE_OUTPUTS", "/tmp/kfp/outputs")  # noqa: S108 - inside of a container
PACKAGES = "/tmp/kfp/packages"  # noqa: S108 - as above
EXECUTOR_OUTPUT = OUTPUTS + "/executor_output.json"
BROKEN = 64
PLACEHOLDER = re.compile(r"\{\{\$([^{}]*)\}\}")
NAMED = re.compile(
    r"\.(inputs|outputs)\.(parameters|artifacts)\['([^']+)'\](?:\.(path|uri|output_file|metadata)(?:\['([^']+)'\])?)?"
)
KFP_INSTALL = re.compile(r"python3 -m pip install [^\n&]*'kfp==[^']*'[^\n&]*")

INSTALL = re.compile(r"python3 -m pip install ([^\n&]*)")
QUOTED = re.compile("'([^']*)'")


def main() -> int:
    orders = json.loads(os.environ.pop(ORDERS))
    try:
        step = PythonStep(orders)
        command = step.command()
        code = run(command)
        if code:
            print(missing_pip(command), end="", file=sys.stderr)
            return code
        step.report()
    except Problem as why:
        print(why, file=sys.stderr)
        return BROKEN
    return 0


class Problem(Exception):
    """A sentence for the log of the step."""


class PythonStep:
    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.values: dict[str, Any] = {}
        for name, kind in orders["inputs"].items():
            text = decoded(orders["values"][name])
            try:
                self.values[name] = text if kind == "STRING" else json.loads(text)
            except ValueError:
                raise Problem("input %s must be a %s, not %r" % (name, kind, text[:60])) from None
        self.artifacts = {name: self.read(name) for name in orders["references"]}
        self.made = {name: self.promised(name, each) for name, each in orders["makes"].items()}

    def read(self, name: str) -> list[dict[str, Any]]:
        """References as the executor has them. The uri of content that is here is its path, which kfp takes from it."""
        found = json.loads(decoded(self.orders["references"][name]))
        listed = name in self.orders["lists"]
        path = self.orders["paths"].get(name, "")
        if not listed:
            return [self.local(found, path, name)]
        return [
            self.local(each, path and path + "/" + each.get("key", "").split("/")[-1], name) for each in flat(found)
        ]

    def local(self, reference: dict[str, Any], path: str, name: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            key: reference.get(key) or usual
            for key, usual in (("name", ""), ("type", {}), ("uri", ""), ("metadata", {}))
        }
        if path and os.path.exists(path):
            made["uri"] = path
        elif path and reference.get("digest"):
            raise Problem("input %s: the content of %s was not delivered" % (name, reference.get("uri")))
        return made

    def promised(self, name: str, definition: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "type": definition["type"],
            "uri": OUTPUTS + "/" + name,
            "metadata": dict(definition["metadata"]),
        }

    def executor_input(self) -> dict[str, Any]:
        return {
            "inputs": {
                "parameterValues": self.values,
                "artifacts": {name: {"artifacts": found} for name, found in self.artifacts.items()},
            },
            "outputs": {
                "parameters": {name: {"outputFile": OUTPUTS + "/" + name} for name in self.orders["outputs"]},
                "artifacts": {name: {"artifacts": [made]} for name, made in self.made.items()},
                "outputFile": EXECUTOR_OUTPUT,
            },
        }

    def command(self) -> list[str]:
        texts = without_needless_install(self.orders["command"]) + self.orders["args"]
        return [PLACEHOLDER.sub(lambda match: self.resolved(match.group(1)), text) for text in texts]

    def resolved(self, path: str) -> str:
        if path == "":
            return json.dumps(self.executor_input(), ensure_ascii=False)
        if path == ".outputs.output_file":
            return EXECUTOR_OUTPUT
        if path == ".pipeline_task_name":
            return str(self.orders["task"])
        if path[1:] in self.orders["run"]:
            return str(self.orders["run"][path[1:]])
        match = NAMED.match(path)
        if match is None or match.end() != len(path):
            raise Problem("the placeholder $%s is not known" % path)
        side, what, name, field, key = match.groups()
        if what == "parameters":
            if side == "outputs":
                return OUTPUTS + "/" + name
            return text_of(self.values[name]) if name in self.values else ""
        found = self.made.get(name) if side == "outputs" else next(iter(self.artifacts.get(name, [])), None)
        if found is None:
            return ""
        if field == "metadata":
            return text_of(found["metadata"].get(key) if key else found["metadata"])
        return str(found["uri"])

    def report(self) -> None:
        """One file for each output. What the program wrote to an output's own file counts if it returned no value."""
        given = {}
        if os.path.exists(EXECUTOR_OUTPUT):
            with open(EXECUTOR_OUTPUT, encoding="utf-8") as file:
                try:
                    given = json.load(file)
                except ValueError as why:
                    raise Problem("%s is no JSON: %s" % (EXECUTOR_OUTPUT, why)) from None
        values = given.get("parameterValues") or {}
        for name, kind in self.orders["outputs"].items():
            path = OUTPUTS + "/" + name
            if name in values:
                write(path, typed_text(values[name], kind, name))
            elif not os.path.exists(path):
                raise Problem("output %s (%s) was not given: return it, or write %s" % (name, kind, path))
        artifacts = given.get("artifacts") or {}
        for name, made in self.made.items():
            said = (artifacts.get(name, {}).get("artifacts") or [{}])[0]
            write(OUTPUTS + "/artifact-" + name, json.dumps(self.reference(name, made, said), ensure_ascii=False))

    def reference(self, name: str, made: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
        key = self.orders["keys"][name]
        path = OUTPUTS + "/" + name
        elsewhere = said.get("uri") and said["uri"] != path
        reference = {
            "name": said.get("name") or name,
            "type": made["type"],
            "uri": said["uri"] if elsewhere else self.orders["store"] + key,
            "key": key,
            "metadata": said.get("metadata") or made["metadata"],
        }
        if os.path.exists(path):
            reference["digest"] = digest(path)
        return reference


def without_needless_install(command: list[str]) -> list[str]:
    """kfp writes `pip install 'kfp==…' && …` before its programs. With kfp in the image that only costs time."""
    if len(command) < 3 or command[:2] != ["sh", "-c"] or not KFP_INSTALL.search(command[2]):
        return list(command)
    if importlib.util.find_spec("kfp") is None:
        return list(command)
    before, _, after = command[2].partition("PIP_DISABLE_PIP_VERSION_CHECK=1 ")
    rest = KFP_INSTALL.sub("true ", after)
    if "pip install" not in rest:
        return command[3:]
    return ["sh", "-c", before + "PIP_DISABLE_PIP_VERSION_CHECK=1 " + rest, *command[3:]]


def missing_pip(command: list[str]) -> str:
    """What to do about a step that failed because its image has no pip to install what it needs; else nothing."""
    installs = INSTALL.findall(command[2]) if command[:2] == ["sh", "-c"] else []
    words = [word for each in installs for word in QUOTED.findall(each)]
    packages = [word for word in words if not word.startswith("-") and ";" not in word]
    if not packages or importlib.util.find_spec("pip") or os.path.exists(PACKAGES + "/pip"):
        return ""
    recipe = '"base: IMAGE" and "pip: [%s]"' % ", ".join(packages)
    return (
        "this image has no pip to install %s: use an image that has all of it (on the embedded platform "
        "paddlecloud/kfp:2 has kfp and pip), or build one from this image: write the lines %s into image.yaml, "
        "then: pdc image build -f image.yaml -t NAME:TAG\n" % (", ".join(packages), recipe)
    )


def run(command: list[str]) -> int:
    """Signals go to the program; its output is the step's."""
    try:
        child = subprocess.Popen(command, env=environment(dict(os.environ)))
    except OSError as why:
        print("%s: %s" % (command[0], why.strerror), file=sys.stderr)
        return 127 if isinstance(why, FileNotFoundError) else 126
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    code = child.wait()
    return code if code >= 0 else 128 - code


def environment(given: dict[str, str]) -> dict[str, str]:
    """What pip installs goes to a folder of the pod, not to the interpreter: that may be read-only, or shared by all.
    On one machine it is the interpreter of the machine."""
    if "PIP_TARGET" in given:
        return given
    path = [PACKAGES + "/bin", given.get("PATH", os.defpath)]
    packages = [PACKAGES, *(each for each in [given.get("PYTHONPATH")] if each)]
    return dict(given, PIP_TARGET=PACKAGES, PATH=os.pathsep.join(path), PYTHONPATH=os.pathsep.join(packages))


def decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-8")


def flat(found: Any) -> list[dict[str, Any]]:
    """Loops in loops collect lists of lists."""
    if isinstance(found, dict):
        return [found]
    return [each for inner in found for each in flat(inner)]


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed_text(value: Any, kind: str, name: str) -> str:
    if kind == "STRING" and not isinstance(value, str):
        raise Problem("output %s is a STRING, and the program gave %r" % (name, value))
    return text_of(value)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def digest(path: str) -> str:
    """Of a file its SHA-256; of a folder that of the names and digests of its files, in order."""
    if not os.path.isdir(path):
        made = hashlib.sha256()
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(1 << 20), b""):
                made.update(chunk)
        return "sha256:" + made.hexdigest()
    lines = []
    for folder, folders, files in os.walk(path):
        folders.sort()
        for each in files:
            whole = os.path.join(folder, each)
            if os.path.isfile(whole):
                lines.append(os.path.relpath(whole, path) + "\0" + digest(whole) + "\n")
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
