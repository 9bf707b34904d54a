"""`pdc model convert`: a version in another form, made once by a pod and stored as a separate version.

The pod has Paddle and no rights: the files are pulled here with the user's, copied into it, converted there, copied
back and pushed. `serving/conversion.py` is what it runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from paddlecloud.cli.failures import ERROR, OK, CliError, InputError, UsageError
from paddlecloud.cli.objects.model_store import attempting, place_of
from paddlecloud.cli.objects.worker_pod import WORK, WorkerPod, worker_pod
from paddlecloud.cli.render import output
from paddlecloud.cli.render.progress import Meter
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub.manifest import Facts, Manifest
from paddlecloud.sdk import copying, model_objects, model_transfer

IMAGE = "paddlecloud/convert"
FORMS = ("onnx", "serving", "paddle")
SECONDS = 1800
"""After which the pod ends, whatever became of the program that made it."""
FORMATS = ("", *output.STRUCTURED)


def convert(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    if args.to not in FORMS:
        raise UsageError("say which form: --to onnx, --to serving or --to paddle", next="pdc model --help")
    with attempting(f"convert {args.names[0]}"):
        place = place_of(session)
        source = session.api.do(model_transfer.find(place, args.names[0]))
        name = f"{source.model}:{source.version}-{args.to}"
        made = session.api.do(_find(place, name))
        said: dict[str, Any] = {}
        if made is None or made.origin.get("source-digest") != source.digest:
            made, said = _make(session, place, source, name, args, quiet=bool(fmt.name))
    shown = f"{source.model}:{source.version}"
    if fmt.name:
        body = {"source": shown, "version": name, "digest": made.digest, "created": bool(said), **said}
        output.print_report(session, "ModelConversion", body)
    elif not said:
        session.print(f"{name} is there already, made from {shown}")
    else:
        session.print(f"{name} made from {shown}: {said['check']}")
    return OK


def converter_pod(model: str, namespace: str, image: str) -> Object:
    return worker_pod(f"{model}-convert", namespace, image, seconds=SECONDS)


def answer_of(text: str, code: int) -> dict[str, Any]:
    """The last line of what the pod printed. Raises `CliError` for anything else, and for a refusal."""
    try:
        said = json.loads((text.strip().splitlines() or [""])[-1])
        tools = {str(key): str(value) for key, value in said["tools"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CliError("the conversion ended without an answer", why=f"exit code {code}", exit_code=ERROR) from None
    if "refused" in said:
        raise InputError(
            "nothing was stored",
            why=str(said["refused"])[:1000],
            next="serve the Paddle version as it is, or try --image with another converter",
        )
    return {"tools": tools, "check": str(said.get("check") or "")}


async def _find(place: model_transfer.Place, name: str) -> Manifest | None:
    model, _, version = name.partition(":")
    known = [str(obj["spec"]["version"]) for obj in await model_objects.versions(place.client, place.namespace, model)]
    return await model_transfer.find(place, name) if version in known else None


def _make(
    session: Session, place: model_transfer.Place, source: Manifest, name: str, args: argparse.Namespace, *, quiet: bool
) -> tuple[Manifest, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        files, result = Path(folder) / "source", Path(folder) / "result"
        session.api.do(model_transfer.pull(place, source, files, Meter("pulling", total=source.size, quiet=quiet).add))
        said = _in_pod(session, source.model, files, result, args)
        origin = {
            "source": f"{source.model}:{source.version}",
            "source-digest": source.digest,
            **{f"tool.{tool}": version for tool, version in said["tools"].items()},
            "check": said["check"],
        }
        by = session.api.do(model_objects.user_name(place.client))
        facts = Facts(by, rfc3339(time.time()), "", {}, origin, f"{args.to} of {source.model}:{source.version}")
        done = session.api.do(model_transfer.push(place, name, result, facts, latest=False))
    return done.manifest, said


def _in_pod(session: Session, model: str, files: Path, result: Path, args: argparse.Namespace) -> dict[str, Any]:
    with WorkerPod(session, converter_pod(model, session.namespace, args.image or IMAGE)) as pod:
        try:
            copying.upload(pod.start, files, f"{WORK}/source", moved=_ignore)
            program = ["python", "-m", "paddlecloud.serving.conversion"]
            done = pod.run([*program, "--to", args.to, f"{WORK}/source", f"{WORK}/result"])
            said = answer_of(done.stdout, done.exit_code)
            copying.download(pod.start, f"{WORK}/result", result, moved=_ignore, warn=session.warn)
        except copying.CopyError as error:
            raise CliError("the files were not copied", why=str(error), next=f"pdc describe pod/{pod.name}") from error
    return said


def _ignore(count: int) -> None:
    """A model is copied within seconds."""
