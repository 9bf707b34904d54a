"""Kubeconfigs of a platform: `<data>/kubeconfig` (0600), for it alone, and its context in a file of the user."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from paddlecloud.local.privatefiles import write_private
from paddlecloud.platform.endpoint import url_of

CONTEXT = "paddlecloud-local"
FORMER = "former-context"
"""The file of the data directory that holds the user's context from before `pdc up`."""


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


def merge_into(path: Path, ours: dict[str, Any]) -> str:
    """Put our entries into a kubeconfig that may hold others, and make our context the current one.

    A link to a file elsewhere stays one. Returns the context that was the current one before, if it was another.
    """
    import yaml

    theirs = _read(path)
    merged = {**ours, **theirs, "current-context": ours["current-context"]}
    for section in ("clusters", "users", "contexts"):
        names = {entry["name"] for entry in ours[section]}
        kept = [entry for entry in theirs.get(section) or [] if entry.get("name") not in names]
        merged[section] = kept + ours[section]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path.resolve(), yaml.safe_dump(merged, sort_keys=False).encode())
    former = str(theirs.get("current-context") or "")
    return former if former != merged["current-context"] else ""


def remember_former(data: Path, path: Path, context: str) -> None:
    """For `restore_former`: which context of the user's file was the current one before ours."""
    write_private(data / FORMER, json.dumps({"file": str(path.absolute()), "context": context}).encode())


def restore_former(data: Path) -> tuple[Path, str] | None:
    """Make the former context the current one again, unless the user has chosen another meanwhile: file and context."""
    import yaml

    try:
        kept = json.loads((data / FORMER).read_text())
        path, context = Path(kept["file"]), str(kept["context"])
        present, ours = _read(path), _read(own_file(data))
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return None  # nothing to go back to
    (data / FORMER).unlink(missing_ok=True)
    is_ours = present.get("current-context") == CONTEXT and _authority(present) == _authority(ours)
    if not is_ours or context not in (entry.get("name") for entry in present.get("contexts") or ()):
        return None
    write_private(path.resolve(), yaml.safe_dump({**present, "current-context": context}, sort_keys=False).encode())
    return path, context


def _read(path: Path) -> dict[str, Any]:
    import yaml

    if not path.exists() or not path.stat().st_size:
        return {}
    loaded = yaml.safe_load(path.read_text())
    if not isinstance(loaded, dict):
        raise ValueError(f"{path} is not a kubeconfig: its top level is not a mapping")
    return loaded


def _authority(config: dict[str, Any]) -> object:
    """Distinguishes platforms that call their context the same."""
    for entry in config.get("clusters") or ():
        if entry.get("name") == CONTEXT:
            return (entry.get("cluster") or {}).get("certificate-authority-data")
    return None
