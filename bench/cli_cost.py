"""What one `pdc` command costs, beside kubectl doing the same. Bytecode is compiled, as after `pip install`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

from .claim import Claim, cpu_of, pdc


def run() -> Iterator[Claim]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    pdc_command = [sys.executable, "-m", "paddlecloud.cli.main"]
    kubectl = shutil.which("kubectl")
    with tempfile.TemporaryDirectory() as data:
        pdc("up", "--data", data, "--port", "0", env=env)
        try:
            env["KUBECONFIG"] = f"{data}/kubeconfig"
            for what, ours, theirs in (
                ("pdc get pods -A", ["get", "pods", "-A"], ["get", "pods", "-A"]),
                ("pdc ps", ["ps"], None),
                ("pdc image ls", ["image", "ls"], None),
                ("pdc --help", ["--help"], ["--help"]),
            ):
                cpu_of([*pdc_command, *ours], env=env, rounds=1)  # compiles
                other = cpu_of([kubectl, *theirs], env=env) if kubectl and theirs else None
                yield Claim(
                    what, cpu_of([*pdc_command, *ours], env=env), "CPU-s", goal=0.15, other=other,
                    other_name="kubectl", note="median of 5, bytecode compiled",
                )  # fmt: skip
        finally:
            pdc("down", "--data", data, env=env)
