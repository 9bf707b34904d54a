"""`python -m paddlecloud.pipelines FOLDER`: component files where the manual's programs look for them.

The manual loads `./yaml/dataset.yaml` and `../../components/visualdl.yaml`: the operators go to `FOLDER/yaml`, the
others to `FOLDER/components`. `FOLDER/runner.yaml` is the account that the steps run with on a cluster.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paddlecloud.pipelines.components.catalogue import COMPONENTS, path

FOLDERS = {"operator": "yaml", "launcher": "components", "suite": "components"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.pipelines", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    for component in COMPONENTS:
        target = folder / FOLDERS[component.set] / f"{component.file}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path(component).read_text(encoding="utf-8"), encoding="utf-8")
    account = Path(__file__).with_name("runner.yaml")
    (folder / account.name).write_text(account.read_text(encoding="utf-8"), encoding="utf-8")
    print(f"wrote {len(COMPONENTS)} component files and {account.name} below {folder}")


if __name__ == "__main__":
    main()
