"""What the published module of Kubeflow Pipelines lacks to be built: the Go code of its protocol buffers.

Its repository has that code in two nested modules, `api` and `kubernetes_platform`, which are not published with it.
The wheels of the same release hold the descriptors, and the program `generate` makes the code of them, as protoc would.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.kfp_backend import MODULE

from . import wheels
from .errors import HarnessError

VERSION = "2.14.3"


@dataclass(frozen=True, slots=True)
class Generated:
    descriptors: tuple[tuple[str, str], ...]
    """Wheels, each with the file that holds a descriptor; what another one imports comes first."""
    copied: tuple[tuple[str, str], ...]
    """Files of nested modules at older versions (`module@version`) that have not changed since."""


GENERATED = Generated(
    (
        (f"kfp-pipeline-spec=={VERSION}", "pipeline_spec_pb2.py"),
        (f"kfp-kubernetes=={VERSION}", "kubernetes_executor_config_pb2.py"),
    ),
    ((f"{MODULE}/api@v0.0.0-20250102152816-873e9dedd766", "v2alpha1/go/cachekey/cache_key.pb.go"),),
)


def write(generated: Generated, go: str, module: Path, folder: Path, cache: Path) -> None:
    """The engine's own files with the code that is made for them, in a folder to build in."""
    shutil.copytree(module, folder, dirs_exist_ok=True)
    files = []
    for requirement, name in generated.descriptors:
        files.append(folder / f"{name}.descriptor")
        files[-1].write_bytes(descriptor(wheels.program(cache, requirement, name).read_text()))
    _go(go, folder, "run", "./generate", str(folder), *map(str, files))
    for versioned, path in generated.copied:
        found = Path(json.loads(_go(go, folder, "mod", "download", "-json", versioned))["Dir"])
        target = folder / versioned.partition("@")[0].removeprefix(f"{MODULE}/") / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found / path, target)


def descriptor(source: str) -> bytes:
    """The serialised FileDescriptorProto in the text of a module that protoc wrote for Python."""
    (found,) = (
        node.args[0].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "AddSerializedFile"
        and isinstance(node.args[0], ast.Constant)
    )
    assert isinstance(found, bytes)
    return found


def _go(go: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run([go, *arguments], cwd=folder, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip()[-1000:]
        raise HarnessError(f"`go {' '.join(arguments)}` failed: {output}", reason="BuildFailed")
    return done.stdout
