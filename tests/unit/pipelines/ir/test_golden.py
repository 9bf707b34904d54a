"""The compiled files are what kfp makes of the sources beside them, and Argo itself accepts what they become."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from paddlecloud.kube import yamlio
from paddlecloud.pipelines import ir
from tools import kfp

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.yaml"))


def test_every_source_was_compiled() -> None:
    sources = {path.stem for path in GOLDEN.glob("*.py")} - {"compile_golden"}
    assert sources == set(NAMES)


def test_the_compiled_files_are_what_kfp_makes_of_their_sources(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(kfp.python(2)), str(GOLDEN / "compile_golden.py"), str(tmp_path)],
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        made, kept = (list(yamlio.load_all((place / f"{name}.yaml").read_text())) for place in (tmp_path, GOLDEN))
        assert [value for _, value in made] == [value for _, value in kept], name


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_argo_accepts_what_a_pipeline_becomes(name: str, cache: bool, argo_binary: str, tmp_path: Path) -> None:
    workflow = ir.translate((GOLDEN / f"{name}.yaml").read_bytes(), {}, "run", ir.PipelineOptions(cache=cache))
    file = tmp_path / "workflow.yaml"
    file.write_text(json.dumps(workflow))
    done = subprocess.run(
        [argo_binary, "lint", "--offline", "--no-color", str(file)], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
