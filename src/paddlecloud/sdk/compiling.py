"""A pipeline of the user as a compiled package, made by the kfp that the user has installed.

A file is compiled in a process of its own, by the interpreter of the user's environment: kfp's generations exclude each
other, and what the file does when it is imported is no business of this process. A function is compiled here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.api.outputs import raised_in
from paddlecloud.kube.interpreter import WITHOUT_WORKING_DIRECTORY
from paddlecloud.kube.wording import cause_of

SECONDS = 300.0
_NO_KFP = 43
"""Exit code of the program below, which Python itself does not use."""
_PROGRAM = """
import difflib, importlib.util, os, sys, warnings
path, wanted, target = sys.argv[1:4]
try:
    import kfp
    from kfp import compiler
except ImportError as error:
    sys.stderr.write("kfp cannot be imported by %s: %s" % (sys.executable, error))
    sys.exit(43)
with open(target + ".kfp", "w") as file:
    file.write(getattr(kfp, "__version__", ""))
warnings.simplefilter("ignore")
# A file that is changed within a second, to one of the same length, would be taken from __pycache__.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
spec = importlib.util.spec_from_file_location("pipeline_file", path)
module = importlib.util.module_from_spec(spec)
sys.modules["pipeline_file"] = module
spec.loader.exec_module(module)
def is_pipeline(value):
    if type(value).__name__ == "GraphComponent":  # kfp 2
        return True
    return callable(value) and hasattr(value, "_component_human_name") and not hasattr(value, "component_spec")  # kfp 1
found = {name: value for name, value in vars(module).items() if is_pipeline(value)}
if wanted and wanted not in found:
    close = difflib.get_close_matches(wanted, found, n=1)
    meant = '; did you mean "%s"?' % close[0] if close else ""
    listed = ", ".join(sorted(found)) or "none"
    sys.exit("%s has no pipeline function %s (it has: %s)%s" % (path, wanted, listed, meant))
if not wanted and len(found) != 1:
    listed = ", ".join(sorted(found)) or "none"
    sys.exit("%s must have one function with @dsl.pipeline, or name it (--function); it has: %s" % (path, listed))
compiler.Compiler().compile(found[wanted] if wanted else next(iter(found.values())), target)
"""


class CompileError(Exception):
    """The pipeline was not compiled; the text says why."""


class NoKfp(CompileError):
    """The interpreter has no kfp, or does not start."""


class OtherGeneration(CompileError):
    """The file uses names that the installed kfp lacks: kfp 1 and kfp 2 share few. `wanted` is the other one."""

    def __init__(self, message: str, *, version: str) -> None:
        self.wanted = 1 if version.startswith("2") else 2
        super().__init__(f"{message}; it seems to be written for kfp {self.wanted}, and this is kfp {version}")


def compile_file(
    path: Path, *, function: str = "", python: str = "", environ: Mapping[str, str] | None = None
) -> bytes:
    """`python` is the interpreter with kfp; by default that of the active environment."""
    env = os.environ if environ is None else environ
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pipeline.yaml"
        program = WITHOUT_WORKING_DIRECTORY + _PROGRAM
        command = [python or interpreter(env), "-c", program, str(path), function, str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=dict(env))
        except subprocess.TimeoutExpired:
            raise CompileError(f"{path} was not compiled within {SECONDS:g} s") from None
        except OSError as error:
            raise NoKfp(f"cannot run {command[0]}: {cause_of(error)}") from error
        if done.returncode == _NO_KFP:
            raise NoKfp(done.stderr.strip())
        if done.returncode != 0 or not target.exists():
            said = _message(done.stderr, path) or f"{path} was not compiled, without a reason"
            version = target.with_name(f"{target.name}.kfp")
            if _UNKNOWN_TO_KFP.search(said) and version.exists() and (known := version.read_text()):
                raise OtherGeneration(said, version=known)
            raise CompileError(said)
        return target.read_bytes()


def compile_function(function: Callable[..., Any]) -> bytes:
    try:
        from kfp import compiler
    except ImportError as error:
        raise NoKfp("kfp is not installed: pip install kfp, of the generation that the pipeline needs") from error
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(function, str(target))
        return target.read_bytes()


def interpreter(environ: Mapping[str, str]) -> str:
    """The active environment's, else that of this program where it has kfp, else python3 on PATH."""
    active = environ.get("VIRTUAL_ENV") or environ.get("CONDA_PREFIX")
    if active and (Path(active) / "bin" / "python").exists():
        return str(Path(active) / "bin" / "python")
    from importlib.util import find_spec

    if find_spec("kfp") is not None:
        return sys.executable
    return shutil.which("python3", path=environ.get("PATH")) or sys.executable


_UNKNOWN_TO_KFP = re.compile(
    r"module 'kfp[\w.]*' has no attribute|cannot import name '\w+' from 'kfp|No module named 'kfp\."
)
_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)


def _message(text: str, path: Path) -> str:
    """The exception of a traceback with the user's line, or what was written last: other lines are about kfp's code."""
    raised = raised_in(text)
    end = text[text.rindex(raised) :] if raised else text
    lines = [line for line in end.strip().splitlines() if line.strip()]
    said = "\n".join(lines[:3] if raised else lines[-3:])
    folder = path.absolute().parent
    own = [(Path(file), line) for file, line in _FRAME.findall(text) if _is_below(Path(file), folder)]
    if not raised or not own:
        return said
    file, line = own[-1]
    return f"{path if file == path.absolute() else file}, line {line}: {said}"


def _is_below(file: Path, folder: Path) -> bool:
    """Whether it is the user's: an environment may lie in the same folder."""
    return file.is_relative_to(folder) and "site-packages" not in file.parts
