"""`python -m paddlecloud.suites.publishing`: an exported model becomes a version of the ModelHub, unless it is worse.

It runs in a pod, in the image of `pdc model convert`. The model is converted to ONNX, and the export is kept beside it
if both answer alike. Its metric is compared with that of the version that the alias names: a model that is worse is not
published. The last line of the output is `reference: NAME:VERSION`, of the version that the alias names afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PADDLEJOBS
from paddlecloud.modelhub import job_origin
from paddlecloud.modelhub.errors import HubError, UnknownVersion
from paddlecloud.sdk import model_objects
from paddlecloud.sdk.core import AsyncClient, connect_async
from paddlecloud.serving import model_folder, tasks
from paddlecloud.serving.errors import ModelError
from paddlecloud.storage.errors import StorageError

FAILED = 1
ONNX = "model.onnx"
SECONDS = 600
"""That a conversion may take."""


class Metric(NamedTuple):
    name: str
    value: float
    less: bool
    """Whether less is better, as of a loss."""

    def worse_than(self, other: float) -> bool:
        return self.value > other if self.less else self.value < other


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="paddlecloud.suites.publishing", description=__doc__)
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--folder", type=Path, required=True, help="with the exported model")
    parser.add_argument("--settings", type=Path, required=True, help="serving.yaml of the model")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="a file that goes into the model too")
    parser.add_argument("--metric", type=metric, required=True, help="NAME=VALUE")
    parser.add_argument("--less", action="store_true", help="less of the metric is better")
    parser.add_argument("--alias", default="production", help="the version to compare with, and to replace")
    parser.add_argument("--job", default="", help="the PaddleJob that trained it, for its origin")
    args = parser.parse_args(arguments)
    try:
        print(f"reference: {asyncio.run(publish(args))}", flush=True)
    except (ApiError, HubError, ModelError, StorageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def metric(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, float(value)


async def publish(args: argparse.Namespace) -> str:
    measured = Metric(args.metric[0], args.metric[1], args.less)
    with tempfile.TemporaryDirectory() as draft:
        folder = prepare(args.folder, args.settings, args.beside, Path(draft) / "model")
        async with connect_async() as client:
            current = await _current(client, args.model, args.alias)
            if current is not None and (kept := verdict(measured, current)):
                print(f"not published: {kept}", flush=True)
                return f"{args.model}:{current['version']}"
            origin = await _origin(client, args.job)
            pushed = await client.models.push(
                args.model,
                folder,
                metrics={measured.name: measured.value},
                origin=origin,
                framework="paddle",
                alias=args.alias,
                reason=f"{measured.name} {measured.value:g}",
            )
            version = str(pushed.body["spec"]["version"])
    print(f"published: {args.model}:{version} is {args.model}@{args.alias}", flush=True)
    return f"{args.model}:{version}"


def prepare(source: Path, settings: Path, beside: Sequence[Path], target: Path) -> Path:
    """What is pushed: the export, its settings and files, and its ONNX form. Raises `ModelError`."""
    shutil.copytree(source, target)
    for file in beside:
        shutil.copyfile(file, target / file.name)
    shutil.copyfile(settings, target / model_folder.SETTINGS)
    found = model_folder.find(target)
    if found.settings.processing:
        tasks.load(target, found.settings.processing)
    converted = target.with_name("converted")
    if why := convert(source, converted):
        print(f"not converted to ONNX, the Paddle model is published alone: {why}", flush=True)
    else:
        shutil.copyfile(converted / ONNX, target / ONNX)
        print("converted to ONNX: it answers as the Paddle model on generated inputs", flush=True)
    return target


def convert(source: Path, target: Path) -> str:
    """Why there is no ONNX form; empty where there is one. The converter ends the process in which it cannot convert a
    model: it has one of its own."""
    command = [sys.executable, "-m", "paddlecloud.serving.conversion", "--to", "onnx", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    try:
        said = json.loads((done.stdout.strip().splitlines() or [""])[-1])
        return str(said.get("refused") or "")
    except (ValueError, AttributeError):
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        return errors[-1].partition("ERROR]")[2].strip() if errors else f"the converter ended with {done.returncode}"


def verdict(measured: Metric, current: Mapping[str, Any]) -> str:
    """Why the model is not published; empty where it is. A version without the metric is replaced."""
    other = (current.get("metrics") or {}).get(measured.name)
    if other is None or not measured.worse_than(float(other)):
        return ""
    return (
        f"{measured.name} is {measured.value:g}, worse than {float(other):g} of "
        f"{current['model']}:{current['version']}, which stays"
    )


async def _current(client: AsyncClient, model: str, alias: str) -> Mapping[str, Any] | None:
    """The spec of the version that the alias names; None where there is none."""
    try:
        spec = model_objects.spec_of(await model_objects.find_model(client.api, client.namespace, model))
        version = (spec.aliases or {}).get(alias)
        if version is None:
            return None
        found = await model_objects.get_version(client.api, client.namespace, model, version)
    except UnknownVersion:
        return None
    body: Mapping[str, Any] = found["spec"]
    return body


async def _origin(client: AsyncClient, job: str) -> dict[str, str]:
    if not job:
        return {}
    found = await client.api.find(PADDLEJOBS, job, client.namespace)
    if found is None:
        return {"job": job}
    return (await job_origin.of_job(client.api, found, namespace=client.namespace)).origin


def settings_text(settings: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main())
