"""`configure`: a file on the volume that is mounted into the step."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.failures import StepFailed


def run(values: Values) -> dict[str, str]:
    folder, name = Path(values.text("path")), values.text("filename")
    if name in ("", ".", "..") or "/" in name:
        raise StepFailed(f"filename: {name!r} is not the name of a file; folders belong to --path")
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}.{os.getpid()}"
    draft.write_text(values.text("content"), encoding="utf-8")
    draft.replace(folder / name)
    print(f"wrote {folder / name}", flush=True)
    return {}
