"""How far the build of an image is, from what its installer prints and what can be measured of its process.

uv and pip print the name and size of every download when it begins (uv only of large ones). So the total is what was
announced until now: packages whose size the installer has not printed yet are not in it. pip downloads into files of a
folder of ours: what has arrived is measured, and so rate and time left are known. uv unpacks what arrives at once:
of it only whole downloads are known, and the bytes that it has written, which are more than those that arrived. What
cannot be known is left out of the sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from paddlecloud.kube.sizes import size

SHOWN = 3
_DOWNLOADING = re.compile(r"\s*Downloading (\S+) \(([\d.]+) ?(bytes|[kKMG]?i?B)\)")
_DOWNLOADED = re.compile(r"\s*Downloaded (\S+)")
_INSTALLING = re.compile(r"\s*(Installing collected packages|Prepared \d+ package)")
_FACTORS = {"bytes": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_BINARY_FACTORS = {"KiB": 2**10, "kiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def is_news(line: str) -> bool:
    """Whether a line of pip says what is done; upon a base it first lists dozens of packages that are there already."""
    return not line.lstrip().startswith("Requirement already satisfied")


class BuildProgress:
    """Reads the lines of the installer; `text` is the progress message now. The caller gives the time, in seconds."""

    def __init__(self, requirements: Sequence[str], clock: Callable[[], float], *, folder: Path) -> None:
        """`folder` is where the installer puts files while it downloads them, if it is one that does (pip)."""
        self._what = contents(requirements)
        self._clock = clock
        self._began = clock()
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._finished: set[str] = set()
        self._since = 0.0
        self._written = 0
        self._written_before = 0
        self._installing = False

    def line(self, text: str) -> None:
        if (found := _DOWNLOADING.match(text)) and not found[1].endswith(".metadata"):
            if not self._sizes:
                self._since, self._written_before = self._clock(), self._written
            factors = {**_FACTORS, **_BINARY_FACTORS}
            self._sizes[os.path.basename(found[1])] = int(float(found[2]) * factors.get(found[3], 1))
        elif found := _DOWNLOADED.match(text):
            self._finished.add(found[1])
        elif _INSTALLING.match(text):
            self._installing = True

    def written(self, count: int) -> None:
        """The installer's process has written so many bytes since it began."""
        self._written = count

    def text(self) -> str:
        now = self._clock()
        so_far = f"{now - self._began:.0f} s so far"
        if self._installing:
            return f"{self._what}: downloads are complete, installing, {so_far}"
        if not self._sizes:
            return f"{self._what}: {so_far}"
        arrived = self._in_files()
        elapsed = max(0.001, now - self._since)
        parts = self._whole(elapsed) if arrived is None else self._measured(arrived, elapsed)
        return f"{self._what}: {', '.join([*parts, so_far])}"

    def _measured(self, arrived: int, elapsed: float) -> list[str]:
        total = sum(self._sizes.values())
        done = min(total, arrived)
        parts = [f"downloaded {size(done)} of {size(total)} announced by now"]
        if 0 < done < total:  # of what is complete no time is left, and more may come
            rate = done / elapsed
            parts += [f"{size(rate)}/s", f"{(total - done) / rate:.0f} s left for these"]
        return parts

    def _whole(self, elapsed: float) -> list[str]:
        complete = [count for name, count in self._sizes.items() if name in self._finished]
        total = size(sum(self._sizes.values()))
        parts = [f"{len(complete)} of {len(self._sizes)} downloads complete ({size(sum(complete))} of {total})"]
        if wrote := self._written - self._written_before:
            parts.append(f"{size(wrote)} unpacked at {size(wrote / elapsed)}/s")
        return parts

    def _in_files(self) -> int | None:
        """pip downloads one file after the other: those before the last have arrived. None where it is not pip."""
        *before, last = self._sizes
        files = list(self._folder.glob(f"*/{last}"))
        if not files:
            return None
        return sum(self._sizes[name] for name in before) + max(map(_length, files))


def contents(requirements: Sequence[str]) -> str:
    """`installing paddlepaddle==3.3.1, numpy<2.4, setuptools and 7 more packages`."""
    names = [os.path.basename(item).partition(";")[0].strip() for item in requirements]
    more = len(names) - SHOWN
    return f"installing {', '.join(names[:SHOWN])}" + (f" and {more} more packages" if more > 0 else "")


def bytes_written(pid: int) -> int:
    """What a process has written; 0 where the kernel does not count it."""
    try:
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0
    return int(fields.get("wchar", 0))


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # moved away: it has arrived
