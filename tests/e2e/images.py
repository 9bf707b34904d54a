"""The images of the suite as recipes of the embedded platform: one program, agnhost, stands for most of them."""

from __future__ import annotations

from pathlib import Path

import yaml

REGISTRY = "registry.k8s.io"
WEB = ["netexec", "--http-port=80"]


def recipes(agnhost: Path) -> dict[str, dict[str, object]]:
    program = [str(agnhost)]
    tested = f"{REGISTRY}/e2e-test-images"
    return {
        "e2e-agnhost": {"names": [f"{tested}/agnhost"], "entrypoint": program, "cmd": ["pause"]},
        "e2e-pause": {"names": [f"{REGISTRY}/pause"], "entrypoint": [*program, "pause"]},
        "e2e-httpd": {"names": [f"{tested}/httpd", f"{tested}/nginx"], "entrypoint": program, "cmd": WEB},
        "e2e-busybox": {"names": [f"{tested}/busybox"], "cmd": ["sh"]},
    }


def write(folder: Path, agnhost: Path) -> None:
    """Into the folder of recipes of a data directory."""
    for name, recipe in recipes(agnhost).items():
        place = folder / name
        place.mkdir(parents=True)
        stands_for = "agnhost of Kubernetes' tests, or this machine's programs, for an image of these tests"
        (place / "image.yaml").write_text(yaml.safe_dump({**recipe, "stands-for": stands_for}))
