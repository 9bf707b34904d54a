"""Small programs, each of which prints one thing that a program can observe of how it was started.

All import `toy` first: it is what the warm parent has preloaded, and it leaves traces of every kind that real modules
do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

TOY = """
import atexit, faulthandler, logging, multiprocessing, os, platform, random, signal, sys, tempfile, threading, warnings
with open(os.path.join(os.environ["TOY_FOLDER"], "imports"), "a") as counter:
    counter.write("imported\\n")
RANK = os.environ.get("TOY_RANK")
DATA = os.path.expanduser("~/.toy/data")
os.makedirs(DATA, exist_ok=True)
os.environ["TOY_SET"] = "by the import"
os.environ.pop("TOY_REMOVED", None)
print("printed by the import")
print("warned by the import", file=sys.stderr)
warnings.filterwarnings("error", category=BytesWarning)
logging.getLogger("toy").addHandler(logging.StreamHandler(sys.stdout))
logging.basicConfig(level=logging.INFO)
logging.getLogger("toy.file").addHandler(logging.FileHandler("toy.log", delay=True))
FOLDER = os.getcwd()
atexit.register(print, "exit handler of the import")
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
faulthandler.register(signal.SIGUSR2)
OPEN = os.open("/dev/zero", os.O_RDONLY)
platform.uname()
tempfile.gettempdir()
STATES = (random.getstate(), multiprocessing.current_process().authkey)
STREAMS = (sys.stdin, sys.stdout, sys.stderr)
sys.setswitchinterval(0.01)
"""

MAIN = "main.py"


class Probe(NamedTuple):
    code: str
    """The program, after `import toy`."""
    argv: tuple[str, ...] = (MAIN, "an argument", "--flag")
    env: Mapping[str, str] = MappingProxyType({})
    before: str = ""
    """What it does before its imports."""


def probe(code: str, *argv: str, before: str = "", **env: str) -> Probe:
    return Probe(code, argv, env, before) if argv else Probe(code, env=env, before=before)


STREAM = """
import sys
for name in ("stdin", "stdout", "stderr"):
    one = getattr(sys, name)
    assert one is getattr(sys, f"__{name}__") and one in toy.STREAMS, name
    layers = [type(one), type(one.buffer), type(getattr(one.buffer, "raw", one.buffer))]
    print(name, layers, one.name, one.mode, one.buffer.mode, one.encoding, one.errors, one.newlines, one.closed)
    print(name, one.line_buffering, one.write_through, one.isatty(), one.fileno(), one.seekable(), one.readable())
"""

UNTOLD_END = "import os; print('out'); print('err', file=sys.stderr); os._exit(0)"
"""What is in a buffer is lost, so that what was printed tells how it is buffered."""

ORDER_BEGINS = "order begins"
ORDER = f"""
import fcntl, struct, termios
def settle():
    for fd in (1, 2):
        while struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]:
            pass
def write(line, stream, **options):
    print(line, file=stream, **options)
    settle()
settle()
write({ORDER_BEGINS!r}, sys.stdout, flush=True)
"""
"""Of lines after the mark the order between the streams is known: the shim has read each before the next is written."""

SAME_WARM: dict[str, Probe] = {
    # Output
    "order of the streams, flushed": probe(
        f"{ORDER}for i in range(5): write(f'out {{i}}', sys.stdout, flush=True); write(f'err {{i}}', sys.stderr)"
    ),
    "order of the streams, buffered": probe(f"{ORDER}write('out', sys.stdout); write('err', sys.stderr); settle()"),
    "order of the streams, unbuffered": probe(
        f"{ORDER}import traceback; write('out', sys.stdout)\n"
        "try: 1 / 0\nexcept Exception: traceback.print_exc(); settle()",
        "-u",
        MAIN,
    ),
    "streams": probe(STREAM),
    "streams, unbuffered by option": probe(STREAM, "-u", MAIN),
    "streams, unbuffered by variable": probe(STREAM, PYTHONUNBUFFERED="1"),
    "streams, a variable that is 0": probe(STREAM, PYTHONUNBUFFERED="0"),
    "buffered output is lost by _exit": probe(UNTOLD_END),
    "unbuffered output is not, by option": probe(UNTOLD_END, "-u", MAIN),
    "unbuffered output is not, by variable": probe(UNTOLD_END, PYTHONUNBUFFERED="yes"),
    "streams held by modules": probe("import logging; logging.getLogger('toy').warning('x'); logging.warning('y')"),
    "what is not UTF-8": probe(r"sys.stderr.write('\udcff\n'); print(ascii(sys.argv)); print('ü')"),
    "a closed stdout": probe("sys.stdout.close()"),
    "input": probe("print(repr(sys.stdin.read()), sys.stdin.buffer.raw.readall())"),
    # Arguments and options
    "arguments": probe("print(sys.argv, sys.orig_argv)"),
    "arguments of code": probe("print(sys.argv, sys.orig_argv)", "-c", "{code}", "x", "-u"),
    "arguments of a module": probe("print(sys.argv, sys.orig_argv)", "-m", "main", "x"),
    "arguments in clusters": probe("print(sys.argv, sys.orig_argv, sys.flags)", "-uBc{code}", "x"),
    "flags": probe("print(sys.flags, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)"),
    "flags, -u -B": probe("print(sys.flags, sys.dont_write_bytecode)", "-u", "-B", MAIN),
    "flags by variable": probe("print(sys.flags, sys.dont_write_bytecode)", PYTHONDONTWRITEBYTECODE="x"),
    "interpreter": probe("print(sys.executable, sys._base_executable, sys.prefix, sys.base_prefix, sys.platform)"),
    "interpreter by another name": probe("print(sys.executable, sys._base_executable)", "{python3}"),
    # Modules
    "main": probe("print({k: v for k, v in globals().items() if k not in ('toy', 'sys')}, list(globals()))"),
    "main of code": probe("print(dict(vars(sys.modules['__main__']), toy=0, sys=0))", "-c", "{code}"),
    "main of a module": probe("print([__name__, __file__, __spec__.name, __package__, __builtins__])", "-m", "main"),
    "main by its full path": probe("print(__file__, sys.argv, sys.path)", "{folder}/main.py"),
    "main by a crooked path": probe("print(__file__, sys.argv, sys.path)", "./sub/../main.py"),
    "main by a link": probe("print(__file__, sys.argv, sys.path)", "sub/link.py"),
    "main is what sys.modules has": probe(
        "class A: pass\nimport pickle; a = pickle.loads(pickle.dumps(A())); print(type(a) is A, A.__module__)"
    ),
    "path": probe("print(sys.path)"),
    "path of code": probe("print(sys.path)", "-c", "{code}"),
    "path of a module": probe("print(sys.path)", "-m", "main"),
    "modules": probe("print(sorted(sys.modules))"),
    "modules of code": probe("print(sorted(sys.modules))", "-c", "{code}"),
    "modules of a module": probe("print(sorted(sys.modules))", "-m", "main"),
    "own modules": probe("import helper; print(helper.__file__, helper.VALUE)"),
    "import machinery": probe("print(sys.meta_path, sys.path_hooks)"),
    "standard library before": probe(
        "print(json.dumps(1), signal.SIGINT)",
        before='"""About."""\nfrom __future__ import annotations\nimport json, signal',
    ),
    # Process
    "environment": probe("import os; print(list(os.environ.items()), os.environb[b'OWN'])", OWN="välue"),
    "environment of a child": probe("import subprocess; print(subprocess.check_output(['env']).decode())"),
    "environment in /proc": probe("print(open('/proc/self/environ').read().split(chr(0)))"),
    "command line in /proc": probe("print(open('/proc/self/cmdline').read(), open('/proc/self/comm').read())"),
    "command line in ps": probe("import os; os.system(f'ps -o args=,comm= -p {os.getpid()}')"),
    "executable in /proc": probe("import os; print(os.readlink('/proc/self/exe'), os.getcwd())"),
    "session": probe("import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"),
    "parent": probe(
        "import os; print(open(f'/proc/{os.getppid()}/stat').read().count('python'), os.getpriority(0, 0))"
    ),
    "descriptors": probe("import os; print({f: os.path.exists(f'/proc/self/fd/{f}') for f in range(20)}, os.dup(0))"),
    "umask": probe("import os; u = os.umask(0); print(oct(u))"),
    "limits": probe("import resource as r; print([r.getrlimit(n) for n in range(16)])"),
    "identity": probe("print([x for x in open('/proc/self/status') if x[:3] in ('Uid', 'Gid', 'Gro', 'Cap', 'NoN')])"),
    "oom score": probe("print(open('/proc/self/oom_score_adj').read(), open('/proc/self/loginuid').read())"),
    "time since the start": probe(
        "import os, time; ticks = int(open('/proc/self/stat').read().split(') ')[1].split()[19]); "
        "print(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf('SC_CLK_TCK') < 60)"
    ),
    "record times of logs": probe(
        "import logging, time; r = logging.makeLogRecord({}); r = logging.LogRecord('', 0, '', 0, '', (), None); "
        "print(0 <= r.relativeCreated < 1000 * (time.time() - float(open(__file__ + '.started').read()) + 1))"
    ),
    # Signals
    "signals": probe("import signal; print([(n, signal.getsignal(n)) for n in sorted(signal.valid_signals())])"),
    "signals in /proc": probe(
        "print([x for x in open('/proc/self/status') if x.startswith('Sig') and x[:4] != 'SigQ'])"
    ),
    "wake-up descriptor": probe("import signal; print(signal.set_wakeup_fd(-1), signal.getitimer(signal.ITIMER_REAL))"),
    "a broken pipe": probe("import os; r, w = os.pipe(); os.close(r); os.write(w, b'x')"),
    "ended by SIGTERM": probe("import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)"),
    "ended by SIGKILL": probe("import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGKILL)"),
    "SIGCHLD of a child": probe(
        "import signal, subprocess; signal.signal(signal.SIGCHLD, lambda *a: print('reaped', a[0])); "
        "print(subprocess.call(['true']))"
    ),
    "interrupted": probe("import signal; signal.raise_signal(signal.SIGINT)"),
    "interrupted code": probe("import signal; signal.raise_signal(signal.SIGINT)", "-c", "{code}"),
    "interrupted module": probe("import signal; signal.raise_signal(signal.SIGINT)", "-m", "main"),
    "a signal that a module handles": probe("import os, signal; os.kill(os.getpid(), signal.SIGUSR1); print('lives')"),
    "a dump that a module set up": probe("import signal; signal.raise_signal(signal.SIGSEGV)"),
    # The end
    "exit code": probe("sys.exit(7)"),
    "exit code, none": probe("sys.exit()"),
    "exit code, large": probe("sys.exit(2**40 + 3)"),
    "exit code, negative": probe("sys.exit(-1)"),
    "exit code, true": probe("sys.exit(True)"),
    "exit with a text": probe("print('before'); sys.exit('a text')"),
    "exit with an object": probe("sys.exit(('a', 'tuple'))"),
    "exit by os": probe("import os; print('lost'); os._exit(9)"),
    "exit of a module": probe("sys.exit('a text')", "-m", "main"),
    "exit of code": probe("sys.exit(3)", "-c", "{code}"),
    "exit handlers": probe("import atexit; atexit.register(print, 'bye'); print('hello')"),
    "exit handler that fails": probe("import atexit; atexit.register(lambda: 1 / 0); print('hello')"),
    "objects at the end": probe("class A:\n    def __del__(self): print('deleted')\na = A()"),
    "threads at the end": probe(
        "import threading; started = threading.Event()\n"
        "def late():\n    started.wait(); print('thread done')\n"
        "threading.Thread(target=late).start(); started.set(); print('main done')"
    ),
    "an error": probe("def f():\n    raise ValueError('why')\nf()"),
    "an error in a module": probe("def f():\n    raise ValueError('why')\nf()", "-m", "main"),
    "an error in code": probe("def f():\n    raise ValueError('why')\nf()", "-c", "{code}"),
    "an error of an error": probe("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise OSError('x') from e"),
    "an error with a hook": probe("sys.excepthook = lambda *a: print(a[0], a[2].tb_frame.f_code); raise ValueError"),
    "the last error": probe("import atexit; atexit.register(lambda: print(sys.last_value)); 1 / 0"),
    "a warning": probe("import warnings; warnings.warn('careful')"),
    # What is kept in the interpreter
    "threads": probe(
        "import threading as t; print([x.name for x in t.enumerate()], t.main_thread() is t.current_thread())"
    ),
    "thread names": probe("import threading as t; x = t.Thread(target=print); print(x.name); x.start(); x.join()"),
    "collector": probe("import gc; print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() < 1000)"),
    "warning filters": probe("import warnings; print(warnings.filters)"),
    "log handlers": probe("import logging; print(logging.root.handlers, logging.root.level, logging.lastResort)"),
    "fault handler": probe("import faulthandler; print(faulthandler.is_enabled())"),
    "hooks": probe("print(sys.excepthook, sys.displayhook, sys.unraisablehook, sys.gettrace(), sys.getprofile())"),
    "limits of the interpreter": probe("print(sys.getrecursionlimit(), sys.getswitchinterval())"),
    "encodings": probe(
        "import locale; print(sys.getfilesystemencoding(), sys.getdefaultencoding(), locale.setlocale(locale.LC_ALL), "
        "locale.getpreferredencoding(False), sys.getfilesystemencodeerrors())"
    ),
    "time zone": probe("import time; print(time.tzname, time.timezone)"),
    "host": probe("import platform, socket; print(platform.node() == platform.uname().node == socket.gethostname())"),
    "folder for temporary files": probe("import tempfile; print(tempfile.gettempdir())"),
    "process of multiprocessing": probe(
        "import multiprocessing as m; p = m.current_process(); print(p.name, p.pid == __import__('os').getpid(), "
        "m.parent_process(), m.get_start_method(allow_none=True), m.active_children(), m.get_all_start_methods())"
    ),
    "workers, forked": probe(
        "import multiprocessing as m\ndef f(x): return x + 1\n"
        "if __name__ == '__main__': print(m.get_context('fork').Pool(1).map(f, [1, 2]))"
    ),
    "workers, spawned": probe(
        "import multiprocessing as m\ndef f(x): print(x, m.current_process().name, __name__)\n"
        "if __name__ == '__main__':\n    p = m.get_context('spawn').Process(target=f, args=(1,)); p.start(); p.join()"
    ),
    "what imports made at home": probe(
        "import os; print(os.path.isdir(toy.DATA), os.listdir(os.path.expanduser('~')))"
    ),
    "folder that imports met": probe(
        "import logging, multiprocessing.process as m; print(toy.FOLDER, m.ORIGINAL_DIR); "
        "logging.getLogger('toy.file').warning('x'); print(open('toy.log').readlines()[-1])"
    ),
    "variables that imports read": probe("print(toy.RANK)"),
}
"""Started warm, and the same as cold."""

COLD: dict[str, Probe] = {
    "-O": probe("assert False, 'x'; print(sys.flags)", "-O", MAIN),
    "-I": probe("print(sys.flags)", "-I", "-c", "import sys; print(sys.path)"),
    "-E": probe("print(sys.flags)", "-E", "-c", "import sys; print(sys.flags)"),
    "-W": probe("print(sys.warnoptions)", "-W", "error", MAIN),
    "-X": probe("print(sys._xoptions, sys.flags.dev_mode)", "-X", "dev", MAIN),
    "-X utf8=0": probe("print(sys.flags.utf8_mode)", "-Xutf8=0", MAIN),
    "-i": probe("print(sys.flags.interactive)", "-i", MAIN),
    "-": probe("", "-"),
    "nothing": probe("", "-u"),
    "version": probe("", "-V"),
    "a folder": probe("", "sub"),
    "a script that is missing": probe("", "missing.py"),
    "a module that is missing": probe("", "-m", "missing"),
    "a script that does not compile": probe("print(1"),
    "hash seed": probe("print(hash('x'), sys.flags)", PYTHONHASHSEED="7"),
    "warnings by variable": probe("print(sys.warnoptions)", PYTHONWARNINGS="error::UserWarning"),
    "encoding by variable": probe("print(sys.stdout.encoding)", PYTHONIOENCODING="latin-1"),
    "locale": probe("import locale; print(locale.setlocale(locale.LC_ALL))", LC_ALL="POSIX"),
    "time zone": probe("import time; print(time.tzname)", TZ="Asia/Shanghai"),
    "path by variable": probe("print(sys.path)", PYTHONPATH="{folder}/lib:/somewhere"),
    "count of threads": probe("import os; print(os.environ['OMP_NUM_THREADS'])", OMP_NUM_THREADS="3"),
    "a variable that the import reads": probe("print(toy.RANK)", TOY_RANK="5"),
    "a variable set before the import": probe("print(toy.RANK)", before="import os\nos.environ['TOY_RANK'] = '5'"),
    "logging set up before the import": probe(
        "import logging; print(logging.root.handlers)",
        before="import logging\nlogging.basicConfig(filename='/dev/null')",
    ),
    "own modules before the import": probe("print(helper.VALUE, toy.RANK)", before="import helper"),
    "no such import": Probe("print(sorted(sys.modules))", ("-c", "import sys; print(sorted(sys.modules))")),
    "a module of the program's own in the place of ours": probe("print(platform_of)", "shadowed/main.py"),
    "another interpreter": probe("print(sys.executable)", "{other}"),
}
"""Started cold although a warm parent is there."""
