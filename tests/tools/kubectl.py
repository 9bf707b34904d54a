"""kubectl: the one on PATH, else the one of the pinned Kubernetes, built from its Go module and kept.

`go install` refuses modules with replacements, and Kubernetes replaces all of its staging modules, so a wrapper module
of one file names the same versions once more. The build takes minutes the first time and is never repeated: the binary
lies in ~/.cache/paddlecloud/tools (or $PDC_TOOLS), which the Makefile has on PATH. `python -m tools.kubectl`, run in
this folder's parent, prints where it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import go

KUBERNETES = "1.34.3"
STAGING = (
    "api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go", "cloud-provider",
    "cluster-bootstrap", "code-generator", "component-base", "component-helpers", "controller-manager", "cri-api",
    "cri-client", "csi-translation-lib", "dynamic-resource-allocation", "endpointslice", "externaljwt", "kms",
    "kube-aggregator", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet", "metrics",
    "mount-utils", "pod-security-admission", "sample-apiserver", "sample-cli-plugin", "sample-controller",
)  # fmt: skip
"""Modules that live inside the Kubernetes repository and are released as v0.MINOR.PATCH."""

BUILD_TIMEOUT = 1800.0


class BuildError(Exception):
    """kubectl is neither there nor can it be built here; the message says what is missing."""


def find() -> str | None:
    """A kubectl that is there already, on PATH or from an earlier build."""
    built = _kept()
    return shutil.which("kubectl") or (str(built) if built.exists() else None)


def find_or_build() -> str:
    return find() or str(_build(_kept()))


def _kept() -> Path:
    return go.tools() / "kubectl"


def go_mod() -> str:
    """The wrapper module: Kubernetes, and the replacements it makes itself."""
    staged = "0." + KUBERNETES.partition(".")[2]
    replacements = "".join(f"\tk8s.io/{name} => k8s.io/{name} v{staged}\n" for name in STAGING)
    return (
        "module paddlecloud.tools/kubectl\n\ngo 1.24\n\n"
        f"require k8s.io/kubernetes v{KUBERNETES}\n\nreplace (\n{replacements})\n"
    )


def _build(target: Path) -> Path:
    try:
        program = go.find_or_fetch()
    except go.NoGo as error:
        raise BuildError(f"install kubectl, or Go to build it: {error}") from error
    major, minor, _ = KUBERNETES.split(".")
    stamp = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        (Path(folder) / "go.mod").write_text(go_mod())
        command = [program, "build", "-trimpath", "-ldflags", f"-s -w {flags}", "-o", "kubectl"]
        done = subprocess.run(
            [*command, "k8s.io/kubernetes/cmd/kubectl"],
            cwd=folder, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"},
            capture_output=True, text=True, timeout=BUILD_TIMEOUT,
        )  # fmt: skip
        if done.returncode:
            raise BuildError(f"kubectl {KUBERNETES} could not be built: {done.stderr.strip()[-500:]}")
        # Moved into place whole: another test session may be looking for it.
        (Path(folder) / "kubectl").replace(target)
    return target


if __name__ == "__main__":
    try:
        print(find_or_build())
    except BuildError as error:
        sys.exit(f"error: {error}")
