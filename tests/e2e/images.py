"""The images of the suite as recipes of the embedded platform: agnhost, busybox and a script or two stand for them.

What differs from the images is the rest of the file system, which is the machine's. The recipes say no `stands-for`,
whose note would be the first line of every log that a spec compares; the page that a whole run writes says it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

REGISTRY = "registry.k8s.io"
TESTED = f"{REGISTRY}/e2e-test-images"
APPLETS = "/opt/busybox"
PATH = f"{APPLETS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = {"busybox": "busybox-static", "nc.openbsd": "netcat-openbsd", "curl": "curl", "dig": "bind9-dnsutils"}
"""Programs of the machine that images hold, by the package of Debian."""
PAGES = "/usr/local/apache2/htdocs"
AGNHOST = {f"/{name}": name for name in ("agnhost", "agnhost-2", "localhost.crt", "localhost.key")}
WEB = ["busybox", "httpd", "-f", "-p", "80", "-h"]
FOLDERS = {
    "pages": {"index.html": "<html><body><h1>It works!</h1></body></html>\n"},
    "demo": {"data.json": '{"image": "nautilus.jpg"}\n'},
}
"""What web servers of the suite serve."""

AGNHOST_NAME = f"{TESTED}/agnhost"
RECIPES: dict[str, dict[str, Any]] = {
    "e2e-agnhost": {"names": [AGNHOST_NAME], "files": AGNHOST, "entrypoint": ["/agnhost"], "cmd": ["pause"]},
    "e2e-pause": {"names": [f"{REGISTRY}/pause"], "files": AGNHOST, "entrypoint": ["/agnhost", "pause"]},
    "e2e-busybox": {"names": [f"{TESTED}/busybox"], "cmd": ["sh"]},
    "e2e-httpd": {"names": [f"{TESTED}/httpd"], "files": {PAGES: "pages"}, "cmd": [*WEB, PAGES]},
    "e2e-nginx": {
        "names": [f"{TESTED}/nginx"],
        "files": {"/usr/share/nginx/html": "pages"},
        "cmd": [*WEB, "/usr/share/nginx/html"],
    },
    "e2e-nautilus": {"names": [f"{TESTED}/nautilus"], "files": {"/demo": "demo"}, "cmd": [*WEB, "/demo"]},
    "e2e-nonewprivs": {"names": [f"{TESTED}/nonewprivs"], "files": {"/nnp": "nonewprivs"}, "entrypoint": ["/nnp"]},
}


def write(folder: Path, programs: Path) -> None:
    """Into the folder of recipes of a data directory; `programs` holds what was built for the images."""
    for name, recipe in RECIPES.items():
        place = folder / name
        place.mkdir(parents=True)
        for file in recipe.get("files", {}).values():
            _write_file(place / file, programs)
        _install_applets(place / "applets")
        shutil.copy("/bin/bash", place / "sh")  # busybox' own shell keeps variables like `data-1`; Debian's does not
        files = {**recipe.get("files", {}), APPLETS: "applets", "/bin/sh": "sh"}
        whole = {**recipe, "files": files, "env": {"PATH": PATH}}
        (place / "image.yaml").write_text(yaml.safe_dump(whole))


def _write_file(place: Path, programs: Path) -> None:
    if place.name in FOLDERS:
        place.mkdir()
        for name, text in FOLDERS[place.name].items():
            (place / name).write_text(text)
    elif place.name.startswith("agnhost"):  # a script instead of 77 MB that every container would copy
        place.write_text(f'#!/bin/bash\nexec -a "$0" {programs}/agnhost "$@"\n')
        place.chmod(0o755)
    else:
        shutil.copy(programs / place.name, place)
    if place.name == "nonewprivs":
        place.chmod(0o4755)


def _install_applets(folder: Path) -> None:
    """Links to busybox by the names of its programs: each pod finds these before the machine's."""
    folder.mkdir()
    names = subprocess.check_output([program("busybox"), "--list"], text=True).split()
    for name in {*names} - {"sh", "ash", "nc"}:
        os.symlink(program("busybox"), folder / name)
    os.symlink(program("nc.openbsd"), folder / "nc")


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"the suite's images need {name}: apt-get install {PACKAGES[name]}")
    return found
