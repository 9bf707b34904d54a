"""`pdc kubeconfig`: the chosen context as a separate kubeconfig, with the files it points to inside.

What is printed can be saved and used anywhere, by kubectl too; it holds credentials, so save it with mode 0600.
"""

from __future__ import annotations

import argparse
import base64
import os
from typing import Any

from paddlecloud.cli.failures import CliError
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube import config as kubeconfigs
from paddlecloud.kube.wording import cause_of

INLINE = ("certificate-authority", "client-certificate", "client-key")


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("kubeconfig", description=__doc__)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    chosen = kubeconfigs.load(args.kubeconfig, args.context).context  # raises when there is none, saying what is
    merged = merged_files(args.kubeconfig)
    if chosen not in merged["contexts"]:
        raise CliError("there is no kubeconfig here", why="this is a pod with a service account, which needs none")
    document = minified(merged, chosen, namespace=args.namespace)
    output.print_value(session, document, fmt if fmt.name else output.Format("yaml"))
    return 0


def minified(merged: dict[str, Any], chosen: str, *, namespace: str | None = None) -> dict[str, Any]:
    """One context with its cluster and user, and nothing that lies in another file."""
    context = dict(merged["contexts"][chosen])
    if namespace:
        context["namespace"] = namespace
    cluster, user = context.get("cluster"), context.get("user")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": chosen,
        "clusters": [{"name": cluster, "cluster": _inlined(merged["clusters"].get(cluster) or {})}],
        "contexts": [{"name": chosen, "context": context}],
        "users": [{"name": user, "user": _inlined(merged["users"].get(user) or {})}] if user else [],
    }


def _inlined(entry: dict[str, Any]) -> dict[str, Any]:
    entry = dict(entry)
    for name in INLINE:
        path = entry.pop(name, None)
        if path and f"{name}-data" not in entry:
            try:
                with open(path, "rb") as file:
                    entry[f"{name}-data"] = base64.b64encode(file.read()).decode()
            except OSError as error:
                raise CliError(f"cannot read {path}", why=cause_of(error), next="correct the kubeconfig") from error
    if isinstance(entry.get("exec"), dict):
        spec = {key: value for key, value in entry["exec"].items() if key != "directory"}
        directory = entry["exec"].get("directory")
        if directory and os.sep in str(spec.get("command", "")):
            spec["command"] = os.path.join(directory, spec["command"])
        entry["exec"] = spec
    return entry


def merged_files(given: str | None) -> dict[str, Any]:
    """All contexts, clusters and users there are to choose from."""
    listed = [given] if given else [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = [path for path in listed or [os.path.expanduser("~/.kube/config")] if os.path.exists(path)]
    return kubeconfigs.merge([(path, kubeconfigs.read(path)) for path in paths])
