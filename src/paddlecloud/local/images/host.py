"""Images that are the host itself: `busybox`, `debian`, `python` and their like need no build.

They give containers the host's programs, which is what shell work, init containers and examples ask of them: `pdc
image ls` calls them `host`. A `python` image is the bare interpreter of the version its tag names, without the packages
of this platform.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from paddlecloud.local.images import library
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.images.errors import ImageUnavailable
from paddlecloud.local.images.reference import Reference

_SHELLS = ("busybox", "alpine", "debian", "ubuntu", "bash", "centos", "rockylinux", "fedora")
_VERSION = re.compile(r"^(\d+\.\d+)")

_WEB_PAGE = """
import functools, http.server, os
body = b"<!DOCTYPE html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1>"
class Page(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if os.path.isdir("/usr/share/nginx/html") and os.listdir("/usr/share/nginx/html"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
handler = functools.partial(Page, directory="/usr/share/nginx/html")
http.server.ThreadingHTTPServer(("0.0.0.0", 80), handler).serve_forever()
"""


def host_image(reference: Reference, cache: Path) -> Environment | None:
    """The environment for a host image, or None when the name is none. Raises when the host lacks what it needs."""
    maker = _MAKERS.get(reference.name)
    return maker(reference, cache) if maker else None


def stands_for(name: str) -> str:
    """What a host image holds in place of what its name promises; empty for the host's own programs."""
    if name == "nginx" and not shutil.which("nginx"):
        return "a small Python web server for nginx, which this machine does not have"
    return ""


def _shell(reference: Reference, cache: Path) -> Environment:
    return Environment(image_id=_identity("host", reference.name), readonly=hidden_folders("", cache), cmd=("sh",))


def _python(reference: Reference, cache: Path) -> Environment:
    match = _VERSION.match(reference.tag)
    version = match[1] if match else ""
    program = find_python(version)
    if program is None:
        raise ImageUnavailable(
            f"image {reference}: this machine has no python{version}; install it, or use the image "
            f"python:{own_version()}"
        )
    folder = python_folder(program, cache)
    readonly = (folder, *hidden_folders(program, cache))
    return Environment(image_id=_identity("python", program), path=(str(folder),), readonly=readonly, cmd=("python3",))


def python_folder(program: str, cache: Path) -> Path:
    """A folder in which `python` and `python3` are just this interpreter."""
    folder = cache / "python" / hashlib.sha256(program.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", os.path.basename(program)):
        link = folder / name
        if not link.is_symlink():
            try:
                link.symlink_to(program)
            except FileExistsError:
                continue  # another kubelet made it at the same moment
    return folder


def hidden_folders(program: str, cache: Path) -> tuple[Path, ...]:
    """What lies in this machine's /tmp, in whose place containers have their own, and must be shown to them: the
    installation of their interpreter, and what jobs of this machine put on PYTHONPATH."""
    tmp = Path("/tmp")  # noqa: S108 - see above
    shared = [library.folder(cache)] if tmp in cache.parent.parents else []
    return (*(folder for folder in list(Path(program).parents)[1:2] if tmp in folder.parents), *shared)


def own_version() -> str:
    """Of the Python that runs the platform: `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def find_python(version: str) -> str | None:
    """The real interpreter (no virtual environment, no version manager's wrapper) of this version; any for ''."""
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if version in ("", own_version()):
        return base
    candidates = [
        *(Path(folder) / f"python{version}" for folder in os.environ.get("PATH", "").split(":")),
        *sorted(Path(base).parents[2].glob(f"{version}.*/bin/python{version}")),
    ]
    for candidate in candidates:
        real = os.path.realpath(candidate)
        if os.access(real, os.X_OK) and os.path.basename(real).startswith("python"):
            return real
    return None


def _nginx(reference: Reference, cache: Path) -> Environment:
    """The host's nginx; where it has none, a small server with its welcome page stands in for demonstrations."""
    if shutil.which("nginx"):
        return Environment(image_id=_identity("nginx", "host"), entrypoint=("nginx", "-g", "daemon off;"))
    program = find_python("")
    assert program is not None
    return Environment(
        image_id=_identity("nginx", _WEB_PAGE),
        entrypoint=(program, "-c", _WEB_PAGE),
        stands_for=stands_for("nginx"),
    )


def _identity(kind: str, what: str) -> str:
    return "sha256:" + hashlib.sha256(f"{kind}\0{what}".encode()).hexdigest()


_MAKERS: dict[str, Callable[[Reference, Path], Environment]] = {
    **dict.fromkeys(_SHELLS, _shell),
    "python": _python,
    "nginx": _nginx,
}

HOST_IMAGES = tuple(_MAKERS)
