"""Wheels for tests."""

from __future__ import annotations

import zipfile
from pathlib import Path


def write_wheel(
    folder: Path, name: str = "tiny", body: str = "VALUE = 41\n", *, version: str = "1.0", requires: str = ""
) -> Path:
    """A wheel that needs no index to be installed, with the module and a command of its name."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"{body}\n\ndef main():\n    print(VALUE)\n")
        declared = f"Requires-Dist: {requires}\n" if requires else ""
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{declared}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:main\n")
        files = (f"{name}.py", *(f"{info}/{part}" for part in ("METADATA", "WHEEL", "entry_points.txt", "RECORD")))
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))
    return path
