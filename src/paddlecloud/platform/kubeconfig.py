"""Kubeconfigs of a platform: `<data>/kubeconfig` (0600), for it alone, and its context in a file of the user."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from paddlecloud.local.privatefiles import write_private
from paddlecloud.platform.endpoint import url_of

CONTEXT = "paddlecloud-local"


def own_file(data: Path) -> Path:
    return data / "kubeconfig"


def users_file() -> Path:
    """Where kubectl would write: the first file of $KUBECONFIG, else the one in the home directory."""
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(listed[0]) if listed else Path.home() / ".kube" / "config"


def write_own(data: Path, port: int) -> Path:
    path = own_file(data)
    write_private(path, json.dumps(of_platform(data, port), indent=1).encode())
    return path


def of_platform(data: Path, port: int) -> dict[str, Any]:
    """With the administrator's token of the platform on `data`."""
    import base64

    ca = base64.b64encode((data / "pki" / "ca.crt").read_bytes()).decode()
    token = (data / "pki" / "admin.token").read_text().strip()
    return content(url=url_of(port), ca=ca, token=token)


def content(*, url: str, ca: str, token: str, context: str = CONTEXT) -> dict[str, Any]:
    """`ca` is base64 of the PEM, as kubeconfig wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": context, "user": {"token": token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": "default"}}],
        "current-context": context,
        "preferences": {},
    }


def merge_into(path: Path, ours: dict[str, Any]) -> None:
    """Put our entries into a kubeconfig that may hold others, and make our context the current one.

    A link to a file elsewhere stays one.
    """
    import yaml

    theirs: dict[str, Any] = {}
    if path.exists() and path.stat().st_size:
        loaded = yaml.safe_load(path.read_text())
        if not isinstance(loaded, dict):
            raise ValueError(f"{path} is not a kubeconfig: its top level is not a mapping")
        theirs = loaded
    merged = {**ours, **theirs, "current-context": ours["current-context"]}
    for section in ("clusters", "users", "contexts"):
        names = {entry["name"] for entry in ours[section]}
        kept = [entry for entry in theirs.get(section) or [] if entry.get("name") not in names]
        merged[section] = kept + ours[section]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path.resolve(), yaml.safe_dump(merged, sort_keys=False).encode())
