"""Writers that are killed at every step: what is visible is whole, and the same command again succeeds.

In a folder a process is killed (`kill -9`) at each of its calls to the file system, found by an audit hook. On S3 an
object is written by one request, so there the writer ends between requests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.modelhub import catalogue, layout
from paddlecloud.modelhub.garbage import collect
from paddlecloud.modelhub.pull import pull
from paddlecloud.storage.stores import FolderStore, Store
from unit.modelhub.hubs import V1, V2, Later, Stopped, StopsAfter, faults, folder_of, pushed

DAY = 86400.0
MODEL = {"a": b"a" * 3_000, "deep/b": b"b" * 2_000_000, "deep/c": b""}
MOST = 400
"""More steps than any of these has."""

KILLED_AT_EACH_STEP = """
import os, signal, sys
from pathlib import Path
from unit.modelhub import test_kill
from paddlecloud.modelhub import parallel

what, root = sys.argv[1], Path(sys.argv[2])
parallel.WORKERS = 1
os.fsync = lambda _: None  # the process is killed, not the machine
EVENTS = {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "shutil.rmtree"}

def watch(step):
    left = [step]
    def hook(event, arguments):
        place = str(arguments[0])  # a name or a descriptor, where it is one of a folder that is open
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_DIRECTORY:
            return  # it changes nothing
        if event in EVENTS and (str(root) in place or not place.startswith("/")):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

for step in range(1, test_kill.MOST):
    place = root / str(step)
    test_kill.prepare(what, place)
    pid = os.fork()
    if pid == 0:
        watch(step)
        test_kill.act(what, place)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    test_kill.judge(what, place)
    if status == 0:
        print(step - 1)
        sys.exit(0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status
sys.exit("it never ended")
"""


def prepare(what: str, place: Path) -> None:
    store = FolderStore(place / "store")
    folder_of(place / "model", MODEL)
    pushed(store, V1, folder_of(place / "other", {"a": MODEL["a"], "x": b"x"}))
    if what == "pull":
        pushed(store, V2, place / "model")
    if what == "gc":
        pushed(store, V2, place / "model")
        catalogue.remove(store, V1)
        collect(Later(store, 2 * DAY))
        catalogue.remove(store, V2)
        pushed(store, V1, place / "other")


def act(what: str, place: Path) -> None:
    store = FolderStore(place / "store")
    if what == "push":
        pushed(store, V2, place / "model")
    elif what == "pull":
        pull(store, catalogue.get(store, V2), place / "copy")
    else:
        collect(Later(store, 2 * DAY))


def judge(what: str, place: Path) -> None:
    """What is visible after a kill is whole; and then the same command succeeds."""
    store = FolderStore(place / "store")
    assert V1 in set(catalogue.versions(store))
    assert not faults(store)
    copy = place / "copy"
    if copy.exists():
        assert (copy / "deep" / "b").read_bytes() == MODEL["deep/b"]
    act(what, place)
    assert not faults(store)
    if what == "push":
        assert V2 in set(catalogue.versions(store))
        collect(store, nobody_pushes=True)
        assert not list(store.list("drafts/"))
        assert len(list(store.list(layout.BLOBS))) == len({*MODEL.values(), b"x"})
    if what == "pull":
        assert {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()} == MODEL
    if what == "gc":
        collect(Later(store, 4 * DAY))
        assert len(list(store.list(layout.BLOBS))) == 2
        assert not list(store.list(layout.CONDEMNED))


@pytest.mark.parametrize("what", ["push", "pull", "gc"])
def test_a_process_killed_at_any_step_leaves_nothing_half_visible(what: str, tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_STEP, what, str(tmp_path)],
        cwd=tests, env={"PYTHONPATH": str(tests), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10, "the steps were not found"


@pytest.mark.parametrize("what", ["push", "gc"])
def test_a_writer_that_ends_between_two_requests_leaves_nothing_half_visible(
    what: str, store: Store, tmp_path: Path
) -> None:
    model = folder_of(tmp_path / "model", MODEL)
    other = folder_of(tmp_path / "other", {"a": MODEL["a"], "x": b"x"})
    pushed(store, V1, other)

    def work(through: Store) -> None:
        if what == "push":
            pushed(through, V2, model)
        else:
            collect(Later(through, 2 * DAY))

    for steps in range(MOST):
        if what == "push":
            catalogue.remove(store, V2)
            collect(store, nobody_pushes=True)
        else:
            pushed(store, V2, model)
            catalogue.remove(store, V2)
            if steps % 2:
                collect(Later(store, 2 * DAY))
        try:
            work(StopsAfter(store, steps))
        except Stopped:
            assert not faults(store)
        else:
            break
    else:
        raise AssertionError("it never ended")
    assert steps > 5
    assert not faults(store)
