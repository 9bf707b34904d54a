"""Runs a Python program in a process that has its modules already: the end of a fork from a warm parent.

Stands in for `exec python …`, and the program must not notice: whatever cannot be made the same is started by
exec (`find` returns None). Three things stay different: strings hash alike in all forks of one parent, two frames lie
below the program's first in `inspect.stack()`, and threads that native libraries had at import start at first use.
Standard library only: the shim imports this.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.machinery
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

from paddlecloud.local.kubelet.shim import linux, warmprogram
from paddlecloud.local.kubelet.shim.preloaded import Preloaded, identity, make_home, open_files
from paddlecloud.local.kubelet.shim.warmprogram import CODE, MODULE, SCRIPT, PythonCall

preloaded: Preloaded | None = None
"""Set in a warm parent, and so in all that is forked from it."""


class Call(NamedTuple):
    """A program that can be run here, and where its call leads."""

    program: PythonCall
    executable: str
    folder: str
    """What becomes the first entry of `sys.path`."""
    env: dict[str, str]


class Become(BaseException):
    """Raised in the child: ends every call of the shim on its stack, so that the program begins at the bottom of it."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.call = call


# Whether


def find(argv: tuple[str, ...], env: dict[str, str]) -> Call | None:
    """The call if it can be carried out here, by a process that has its root, its identity and its folder already."""
    program = warmprogram.parse(argv, env)
    if preloaded is None or program is None or os.getuid():
        return None  # exec takes capabilities from other users than root, and nothing else does
    if not _same_environment(env) or any(identity(path) != known for path, known in preloaded.identity.items()):
        return None
    executable = _executable(argv[0], env)
    folder = _folder(program)
    source = _source(program, folder) if executable else None
    tops = {name.partition(".")[0] for name in preloaded.modules}
    own = _own_modules(folder, tops | sys.stdlib_module_names)
    if source is None or not own.isdisjoint(tops):
        return None  # the program has a module that would have been imported in the place of one of ours
    first = program.kind == MODULE and warmprogram.imports(program.target, preloaded.roots)
    if first or warmprogram.begins_with(source, preloaded.roots, inert=lambda name: _is_inert(name, own)):
        return Call(program, cast(str, executable), folder, env)
    return None


def _is_inert(name: str, own: frozenset[str]) -> bool:
    """An import that nothing observable comes of: of the standard library, or of what is imported here."""
    assert preloaded is not None
    top = name.partition(".")[0]
    return top not in own and (top in sys.stdlib_module_names or name in preloaded.modules)


def _same_environment(env: Mapping[str, str]) -> bool:
    assert preloaded is not None
    ours, theirs = (warmprogram.relevant(one, preloaded.reads) for one in (preloaded.environment, env))
    return ours == theirs


def _executable(program: str, env: Mapping[str, str]) -> str | None:
    """The interpreter's path if exec would start the one that this process is."""
    folders = [""] if "/" in program else env.get("PATH", "").split(":")
    found = next((path for folder in folders if os.path.isfile(path := os.path.join(folder, program))), None)
    if found is None or os.path.dirname(found) != os.path.dirname(sys.executable):
        return None
    return found if os.path.samefile(found, "/proc/self/exe") else None


def _folder(program: PythonCall) -> str:
    if program.kind == SCRIPT:
        return os.path.dirname(os.path.realpath(program.target))
    return os.getcwd() if program.kind == MODULE else ""


def _source(program: PythonCall, folder: str) -> str | bytes | None:
    if program.kind == CODE:
        # Later releases show the lines of the code in tracebacks, by means that only the interpreter has.
        return program.target if sys.version_info < (3, 13) else None
    path: str | None = program.target
    if program.kind == MODULE:
        path = _module_file(program.target, folder)
    elif not program.target.endswith(".py"):
        return None
    try:
        with open(path or "", "rb") as handle:
            return handle.read()
    except OSError:
        return None


def _module_file(name: str, folder: str) -> str | None:
    """Where the code of `python -m name` is; None unless all that leads to it is imported already."""
    package = name.rpartition(".")[0]
    if getattr(sys.modules.get(name), "__path__", None) is not None:
        package, name = name, f"{name}.__main__"
    if package and package not in sys.modules:
        return None
    places = list(sys.modules[package].__path__) if package else [folder, *sys.path]
    spec = importlib.machinery.PathFinder.find_spec(name, places)
    return spec.origin if spec is not None and spec.submodule_search_locations is None else None


def _own_modules(folder: str, names: Collection[str]) -> frozenset[str]:
    """Which of `names` are modules in the folder; a folder in it without `__init__` is none."""
    try:
        entries = [entry for entry in os.scandir(folder or ".") if entry.name.partition(".")[0] in names]
    except OSError:
        return frozenset()
    return frozenset(entry.name.partition(".")[0] for entry in entries if _is_module(entry))


def _is_module(entry: os.DirEntry[str]) -> bool:
    suffixes = importlib.machinery.all_suffixes()
    if entry.is_dir():
        return any(os.path.exists(os.path.join(entry.path, f"__init__{suffix}")) for suffix in suffixes)
    return "".join(entry.name.partition(".")[1:]) in suffixes


# How


def become(call: Call) -> Callable[[], None]:
    """Make this process the program's, up to its first line; what is returned runs it."""
    assert preloaded is not None
    _forget_the_shim(preloaded)
    _take_environment(call.env, preloaded.sets)
    make_home(preloaded.home, call.env.get("HOME", ""))
    _open_streams(unbuffered=call.program.unbuffered)
    _take_options(call)
    _take_signals(preloaded)
    _renew()
    linux.end_without_destructors()
    _take_folder(preloaded)
    sys.stdout.buffer.write(preloaded.printed[0])
    sys.stderr.buffer.write(preloaded.printed[1])
    sys.stderr.flush()
    main = sys.modules["__main__"].__dict__
    main.clear()
    main.update(preloaded.main)
    return _RUN[call.program.kind](call.program)


def _forget_the_shim(known: Preloaded) -> None:
    gc.collect()  # so that no object of the shim closes, when it goes later, a number that is the program's by then
    for name in set(sys.modules) - known.modules:
        del sys.modules[name]
    for fd in open_files() - {0, 1, 2} - known.descriptors:
        os.close(fd)
    for finder in sys.path_importer_cache.values():
        # Not all at once by `importlib.invalidate_caches`, which imports modules.
        if (invalidate := getattr(finder, "invalidate_caches", None)) is not None:
            invalidate()
    gc.unfreeze()


def _take_environment(env: Mapping[str, str], sets: Mapping[str, str | None]) -> None:
    os.environ.clear()
    os.environ.update(env)
    for name, value in sets.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _open_streams(*, unbuffered: bool) -> None:
    """As an interpreter does at its start, in place: modules hold on to the streams that they found at their import."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        text: io.TextIOWrapper = getattr(sys, f"__{name}__")
        writes = fd > 0
        raw: Any = open(fd, "wb" if writes else "rb", 0 if unbuffered and writes else -1, closefd=False)  # noqa: SIM115
        getattr(raw, "raw", raw).name = f"<{name}>"
        text.__init__(  # type: ignore[misc]
            raw,
            encoding=text.encoding,
            errors=text.errors,
            newline="\n",
            line_buffering=not unbuffered and (fd == 2 or raw.isatty()),
            write_through=unbuffered,
        )


def _take_options(call: Call) -> None:
    program = call.program
    sys.orig_argv = list(program.argv)
    sys.argv = [program.target if program.kind == SCRIPT else program.kind, *program.arguments]
    sys.path.insert(0, call.folder)
    if sys._base_executable == sys.executable:  # type: ignore[attr-defined]
        sys._base_executable = call.executable  # type: ignore[attr-defined]
    sys.executable = call.executable
    linux.set_name(os.path.basename(call.executable))
    sys.dont_write_bytecode = not program.writes_bytecode
    _set_flag("dont_write_bytecode", int(not program.writes_bytecode))


def _set_flag(name: str, value: int) -> None:
    """`sys.flags` cannot be made or changed in Python; an interpreter fills it by this call."""
    index = type(sys.flags).__match_args__.index(name)
    assign = ctypes.pythonapi.PyStructSequence_SetItem
    assign.argtypes, assign.restype = (ctypes.py_object, ctypes.c_ssize_t, ctypes.py_object), None
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))  # the call takes the reference over
    assign(sys.flags, index, value)


def _take_signals(known: Preloaded) -> None:
    for number, handler in known.handlers.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)
    linux.set_signal_actions(known.actions)


def _take_folder(known: Preloaded) -> None:
    """Where modules kept the folder in which they were imported, they kept the program's."""
    here = os.getcwd()
    for module, name in known.folder_globals:
        contents = vars(sys.modules[module])
        contents[name] = here + contents[name].removeprefix(known.folder)
    if (logging := sys.modules.get("logging")) is not None:
        for reference in logging._handlerList:
            handler = reference()
            if getattr(handler, "baseFilename", "").startswith(f"{known.folder}/"):
                handler.baseFilename = here.rstrip("/") + handler.baseFilename.removeprefix(known.folder)


def _renew() -> None:
    """What modules keep of the process, the machine or chance that they met at their import."""
    for name, renew in _RENEWALS.items():
        if (module := sys.modules.get(name)) is not None:
            renew(module)


def _forget(*names: str) -> Callable[[Any], None]:
    """The module asks again when it needs it."""

    def forget(module: Any) -> None:
        for name in names:
            if hasattr(module, name):
                setattr(module, name, None)

    return forget


def _renew_log_time(logging: Any) -> None:
    logging._startTime = time.time_ns() if isinstance(logging._startTime, int) else time.time()


def _renew_authkey(process: Any) -> None:
    process.current_process().authkey = os.urandom(32)


_RENEWALS: dict[str, Callable[[Any], None]] = {
    "logging": _renew_log_time,
    "multiprocessing.process": _renew_authkey,
    "numpy.random": lambda random: random.seed(),
    "platform": _forget("_uname_cache"),
    "tempfile": _forget("tempdir"),
}
"""`random` renews itself after a fork."""


# Running, by the calls that an interpreter uses itself: it prints errors, runs exit handlers and ends as ever


class _CompilerFlags(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_int), ("feature_version", ctypes.c_int))


_IGNORE_COOKIE = 0x0800
"""The code of `-c` is UTF-8, whatever its first line says."""


def _script(program: PythonCall) -> Callable[[], None]:
    path = os.fsencode(os.path.join(os.getcwd(), program.target))
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    run_file = ctypes.pythonapi.PyRun_AnyFileExFlags
    run_file.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
    file = libc.fopen(path, b"rb")

    def run() -> None:
        _end(run_file(file, path, 1, None))

    return run


def _code(program: PythonCall) -> Callable[[], None]:
    run_string = ctypes.pythonapi.PyRun_SimpleStringFlags
    code = os.fsencode(program.target)
    flags = _CompilerFlags(_IGNORE_COOKIE, sys.version_info.minor)

    def run() -> None:
        _end(run_string(code, ctypes.byref(flags)))

    return run


def _end(failed: int) -> None:
    """An interrupted program is ended by the interpreter, with the signal."""
    if failed and getattr(sys, "last_type", None) is not KeyboardInterrupt:
        sys.exit(1)


def _module(program: PythonCall) -> Callable[[], None]:
    import runpy

    def run() -> None:
        try:
            runpy._run_module_as_main(program.target)  # type: ignore[attr-defined]
        except SystemExit:
            raise
        except BaseException as error:
            _hide_own_frame(error)
            raise

    return run


def _hide_own_frame(error: BaseException) -> None:
    """Have the interpreter print the error as it does without this file's frames above the program's."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    hook = sys.excepthook

    def shortened(kind: type[BaseException], value: BaseException, _: object) -> None:
        sys.excepthook = hook
        sys.last_traceback = trace
        hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = shortened


_RUN: dict[str, Callable[[PythonCall], Callable[[], None]]] = {SCRIPT: _script, CODE: _code, MODULE: _module}
