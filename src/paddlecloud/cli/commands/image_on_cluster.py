"""`pdc image build NAME --on-cluster --push REGISTRY/NAME:TAG`: the image is built by a pod and pushed from there.

The folder that `pdc image dockerfile NAME --to DIR` writes is copied into the pod, which has buildah and no privileges.
Keys of the registry come from a Secret of the namespace (`--push-secret`, of type kubernetes.io/dockerconfigjson) and
stay in the cluster.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from paddlecloud.cli.control_characters import visible
from paddlecloud.cli.failures import ERROR, CliError, UsageError
from paddlecloud.cli.objects.worker_pod import WORK, WorkerPod, worker_pod
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object
from paddlecloud.local.images import dockerfile
from paddlecloud.local.images.ci import BUILDER, index_settings, script
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.sdk import copying

SECONDS = 2 * 3600
CONTEXT = f"{WORK}/context"
DIGEST = f"{WORK}/digest"
_KEYS = "/keys"


def build(session: Session, plan: ImagePlan, args: argparse.Namespace) -> dict[str, Any]:
    """What was pushed, with its digest. What the builder prints goes to standard error."""
    target = str(args.push)
    with tempfile.TemporaryDirectory() as folder, WorkerPod(session, builder_pod(session.namespace, args)) as pod:
        dockerfile.write(plan, Path(folder))
        try:
            copying.upload(pod.start, Path(folder), CONTEXT, moved=lambda count: None)
        except copying.CopyError as error:
            raise CliError("the files were not copied", why=str(error), next=f"pdc describe pod/{pod.name}") from error
        code = _show(pod, ["sh", "-c", script("build.sh")])
        if code != 0:
            raise CliError(
                f"{target} was not built",
                why=f"the builder ended with exit code {code}",
                exit_code=ERROR,
                reason="Build",
            )
        digest = pod.run(["cat", DIGEST]).stdout.strip()
    return {"name": plan.names[0], "image": target, "digest": digest}


def check(args: argparse.Namespace) -> None:
    if not args.push:
        raise UsageError(
            "where is the image to be pushed?",
            why="--on-cluster takes --push REGISTRY/NAME:TAG",
            next="pdc image --help",
        )
    if "/" not in args.push or any(sign.isspace() for sign in args.push) or args.push.startswith(("-", "docker://")):
        raise UsageError(f"{args.push} is no name of an image", why="REGISTRY/NAME:TAG", next="pdc image --help")


def builder_pod(namespace: str, args: argparse.Namespace) -> Object:
    settings = {
        "IMAGE": args.push,
        "CONTEXT": CONTEXT,
        "DIGEST": DIGEST,
        "TLS_VERIFY": str(not args.plain_http).lower(),
        **index_settings(args.pip_index or ""),
    }
    pod = worker_pod(
        "image-build",
        namespace,
        args.builder or BUILDER,
        seconds=SECONDS,
        env=[{"name": name, "value": value} for name, value in settings.items() if value],
    )
    spec, main = pod["spec"], pod["spec"]["containers"][0]
    spec["volumes"].append({"name": "layers", "emptyDir": {}})
    main["volumeMounts"].append({"name": "layers", "mountPath": "/var/lib/containers"})
    if args.push_secret:
        keys = {"key": ".dockerconfigjson", "path": "config.json"}
        spec["volumes"].append({"name": "keys", "secret": {"secretName": args.push_secret, "items": [keys]}})
        main["volumeMounts"].append({"name": "keys", "mountPath": _KEYS, "readOnly": True})
        main["env"].append({"name": "REGISTRY_AUTH_FILE", "value": f"{_KEYS}/config.json"})
    return pod


def _show(pod: WorkerPod, command: list[str]) -> int:
    program = pod.start(command)
    try:
        program.end_input()
        while (piece := program.read()) is not None:
            sys.stderr.write(visible(piece.data.decode(errors="replace")))
            sys.stderr.flush()
        return program.exit_code
    finally:
        program.close()
