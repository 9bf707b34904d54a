"""The wget of images that carry downloads, as the shell of an example calls it."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

CARRIED = "https://models.example.org/weights/net.tar"
WRITTEN = "https://models.example.org/weights/made.txt"
PROGRAM = """#!{python}
import sys
from pathlib import Path
from paddlecloud.storage.wget import main
sys.exit(main(sys.argv[1:], program=sys.argv[0], downloads=Path({downloads!r})))
"""


class Shell:
    def __init__(self, folder: Path, *, real: bool) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        (folder / "bin").mkdir()
        (folder / "net.tar").write_text("carried")
        write = "import sys; open(sys.argv[1], 'w').write('made')"
        downloads = {
            CARRIED: {"is": "a small network", "copy": str(folder / "net.tar")},
            WRITTEN: {"is": "generated", "run": [sys.executable, "-c", write]},
        }
        (folder / "downloads.json").write_text(json.dumps(downloads))
        program = folder / "bin" / "wget"
        program.write_text(PROGRAM.format(python=sys.executable, downloads=str(folder / "downloads.json")))
        program.chmod(0o755)
        self.path = str(folder / "bin")
        if real:
            (folder / "real").mkdir()
            tool = folder / "real" / "wget"
            tool.write_text('#!/bin/sh\necho "$@" > called\nexit 8\n')
            tool.chmod(0o755)
            self.path += f":{folder / 'real'}"

    def wget(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["wget", *arguments],
            env={"PATH": self.path},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=30,
            executable=f"{self.path.partition(':')[0]}/wget",
        )


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A machine that has no other wget."""
    return Shell(tmp_path, real=False)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "other.tar").write_text("from the network")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    handler = functools.partial(Quiet, directory=str(tmp_path / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ((CARRIED,), "net.tar"),
        (("-q", "-P", "./pre_train", CARRIED), "pre_train/net.tar"),
        (("--directory-prefix=deep/er", CARRIED), "deep/er/net.tar"),
        (("-O", "mine.tar", CARRIED), "mine.tar"),
    ],
)
def test_a_carried_download_says_where_it_came_from_and_what_it_is(
    alone: Shell, arguments: tuple[str, ...], place: str
) -> None:
    done = alone.wget(*arguments)
    assert done.returncode == 0, done.stderr
    assert (alone.folder / place).read_text() == "carried"
    assert f"answered from inside the image: {CARRIED} is a small network" in done.stderr


def test_a_carried_download_may_be_written_by_a_program_or_go_to_standard_output(alone: Shell) -> None:
    assert alone.wget("-P", "x", WRITTEN, CARRIED).returncode == 0
    assert (alone.folder / "x" / "made.txt").read_text() == "made"
    assert (alone.folder / "x" / "net.tar").read_text() == "carried"
    assert alone.wget("-O", "-", CARRIED).stdout == "carried"


def test_any_other_url_is_really_fetched(alone: Shell, site: str) -> None:
    done = alone.wget("-P", "x", CARRIED, f"{site}/other.tar")
    assert done.returncode == 0, done.stderr
    assert (alone.folder / "x" / "other.tar").read_text() == "from the network"
    assert "answered from inside the image" not in done.stderr.partition("saved as x/net.tar")[2]


def test_a_url_that_cannot_be_fetched_fails_with_the_cause(alone: Shell, site: str) -> None:
    done = alone.wget(f"{site}/nowhere.tar")
    assert done.returncode == 4
    assert "404" in done.stderr
    assert f"carries only {CARRIED}" in done.stderr
    assert list(alone.folder.iterdir()) == []


def test_a_call_without_a_url_says_so(alone: Shell) -> None:
    done = alone.wget("-q", "-P", "x")
    assert (done.returncode, done.stderr) == (1, "wget: missing URL\n")


def test_the_machines_own_wget_gets_what_the_image_does_not_carry(tmp_path: Path) -> None:
    shell = Shell(tmp_path, real=True)
    done = shell.wget("-T", "5", "-P", "x", CARRIED, "https://example.org/other.tar")
    assert done.returncode == 8, "the exit code is the real one's"
    assert (shell.folder / "called").read_text() == "-T 5 -P x https://example.org/other.tar\n"
