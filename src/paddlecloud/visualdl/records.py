"""Scalars in VisualDL's record files, without VisualDL.

A file whose name contains `vdlrecords` is a sequence of records: eight bytes with the length, little-endian, and a
message of protocol buffers. Of its fields (record.proto of VisualDL 2) these are read:

    Record    1 values, repeated
    Value     1 id (the step) · 2 tag · 3 timestamp (milliseconds) · 4 value (a float of 4 bytes)
              10 meta data (1 display name of the run) · 14 value of a group (1 tag within the group · 2 value)

A folder with record files is a *run*. A job that was restarted wrote one file after the other into it: its curves go
on from one to the next, and what it computed again counts as the newer file says. A record that is not complete is
being written; reading ends before it.

Jobs that run in one folder write into one another's runs. With `since` and `until`, the bounds of a job's life in
seconds since 1970, files of which the last write is older, or the beginning (in the name that LogWriter gives them) is
newer, are left out and named: they are another job's.

This file is also run as a program inside pods (`python records.py [--since=N] [--until=N] FOLDER…`), which have no
other file of the project and any Python since 3.7: the standard library alone. It prints one line of JSON for each
curve and each problem.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

MARK = "vdlrecords"
"""In the name of every record file."""
BEGUN = re.compile(r"vdlrecords\.([0-9]{10})\.log")
"""When LogWriter made the file, in seconds; a file that the program named itself does not say it."""
LARGEST = 1 << 20
"""Bytes of the largest record that can be a scalar; pictures and the like are skipped without being read."""
MOST_FILES = 10_000
MOST_FOLDERS, DEEPEST = 100_000, 100
"""Folders that are looked into: a link may lead to the whole machine."""
MOST_POINTS = 5_000_000
"""Of all files together; each takes some 150 bytes of memory."""
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5


class RecordError(ValueError):
    """What a file holds is no record of VisualDL; the text says at which byte."""


class Scalar(NamedTuple):
    tag: str
    step: int
    time: int
    """Milliseconds since 1970."""
    value: float


class Curve(NamedTuple):
    """One tag of one run, in the order of its steps."""

    run: str
    tag: str
    steps: list[int]
    times: list[int]
    values: list[float]


class Contents(NamedTuple):
    scalars: list[Scalar]
    display_name: str
    problem: str


def read_file(file: BinaryIO, most: int = MOST_POINTS) -> Contents:
    """Everything up to the first record that is not complete, or is none. An empty one is none: a file that a crash, or
    somebody on purpose, made longer than what was written holds zeros."""
    scalars: list[Scalar] = []
    name, problem = "", ""
    size = file.seek(0, os.SEEK_END)
    position = file.seek(0)
    while position + 8 <= size:
        (length,) = struct.unpack("<Q", file.read(8))
        if position + 8 + length > size:
            break
        if length == 0:
            problem = f"zeros instead of a record of VisualDL at byte {position}"
            break
        if length <= LARGEST:
            try:
                found, given = _record(file.read(length))
            except (RecordError, UnicodeDecodeError, struct.error):
                problem = f"no record of VisualDL at byte {position}"
                break
            scalars += found
            name = given or name
        if len(scalars) > most:
            problem = (
                f"the rest of it is not read, since there are more than {MOST_POINTS:,} points: name fewer folders"
            )
            del scalars[most:]
            break
        position += 8 + length
        file.seek(position)
    return Contents(scalars, name, problem)


def curves(folders: Iterable[str], since: float = -math.inf, until: float = math.inf) -> tuple[list[Curve], list[str]]:
    """All runs in and below these folders, by name, and what could not be read or is left out."""
    found: list[Curve] = []
    problems: list[str] = []
    left = MOST_POINTS
    for run, files in _runs(folders, problems):
        name = run
        series: dict[str, list[Scalar]] = {}
        others: dict[str, list[str]] = {}
        for path in files:
            try:
                with open(path, "rb", opener=_open_file) as file:
                    why = _of_another(path, os.fstat(file.fileno()).st_mtime, since, until)
                    if why:
                        others.setdefault(why, []).append(os.path.basename(path))
                        continue
                    contents = read_file(file, left)
            except OSError as error:
                problems.append(f"{path}: {error.strerror}")
                continue
            left -= len(contents.scalars)
            if contents.problem:
                problems.append(f"{path}: {contents.problem}")
            name = contents.display_name or name
            _continue(series, contents.scalars)
        for why, names in others.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            problems.append(f"{run}: left out {names[0]}{more}: {why}")
        for tag in sorted(series):
            points = series[tag]
            columns = [one.step for one in points], [one.time for one in points], [one.value for one in points]
            found.append(Curve(name, tag, *columns))
    return found, problems


def _open_file(path: str, flags: int) -> int:
    """A pipe without a writer would never open, and is no file of records."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file")


def _of_another(path: str, written: float, since: float, until: float) -> str:
    """Why a file is none of the job that existed between these seconds; empty if it may be."""
    begun = BEGUN.search(os.path.basename(path))
    if written < since:
        return "written before the job was created"
    if begun and int(begun.group(1)) > until:
        return "begun after the job had ended"
    return ""


def _continue(series: dict[str, list[Scalar]], newer: list[Scalar]) -> None:
    """Append a file's points. Of earlier files only what lies before its first step is kept."""
    added: dict[str, list[Scalar]] = {}
    for one in newer:
        added.setdefault(one.tag, []).append(one)
    for tag, points in added.items():
        points.sort(key=lambda one: one.step)
        curve = series.setdefault(tag, [])
        while curve and curve[-1].step >= points[0].step:
            curve.pop()
        curve += points


def _runs(folders: Iterable[str], problems: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Folders with record files and these, oldest first. Links are followed once, as VisualDL follows them."""
    seen = set()
    count = 0
    for top in folders:
        if not os.path.isdir(top):
            problems.append(f"{top}: there is no such folder")
        for folder, below, names in os.walk(top, followlinks=True):
            if os.path.realpath(folder) in seen:
                below.clear()
                continue
            seen.add(os.path.realpath(folder))
            if len(seen) > MOST_FOLDERS:
                problems.append(f"{top}: only the first {MOST_FOLDERS} folders are read")
                return
            if folder[len(top) :].count(os.sep) >= DEEPEST:
                problems.append(f"{top}: what lies below more than {DEEPEST} folders is not read")
                below.clear()
            below.sort()
            files = sorted(name for name in names if MARK in name)
            count += len(files)
            if count > MOST_FILES:
                problems.append(f"{top}: only the first {MOST_FILES} record files are read")
                return
            if files:
                yield os.path.normpath(folder), [os.path.join(folder, name) for name in files]


# Protocol buffers, as far as they are needed


def _record(message: bytes) -> tuple[list[Scalar], str]:
    """The scalars of a record, and the display name that it gives the run."""
    scalars: list[Scalar] = []
    name = ""
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):
            found, given = _value(value)
            name = given or name
            if found is not None:
                scalars.append(found)
    return scalars, name


def _value(message: bytes) -> tuple[Scalar | None, str]:
    step, tag, part, time, name = 0, "", "", 0, ""
    scalar: float | None = None
    for number, value in _fields(message):
        if isinstance(value, int):
            if number == 1:
                step = value - (1 << 64) if value >> 63 else value
            elif number == 3:
                time = value
        elif isinstance(value, float):
            if number == 4:
                scalar, part = value, ""
        elif isinstance(value, bytes):
            if number == 2:
                tag = value.decode("utf-8")
            elif number == 10:
                name = _text(value)
            elif number == 14:
                scalar, part = _of_group(value), _text(value)
    if scalar is None:
        return None, name
    # VisualDL writes the slashes of a tag as "%" in places, and refuses tags with a "%" of their own.
    whole = tag.replace("%", "/")
    return Scalar(f"{whole}/{part}" if part else whole, step, time, scalar), name


def _of_group(message: bytes) -> float:
    return next((value for number, value in _fields(message) if number == 2 and isinstance(value, float)), 0.0)


def _text(message: bytes) -> str:
    """The first field of a message, as text."""
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):
            return value.decode("utf-8")
    return ""


def _fields(message: bytes) -> Iterator[tuple[int, object]]:
    """Numbers of fields with their values: int, float or bytes."""
    position = 0
    value: object
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, position = _varint(message, position)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            width, form = (8, "<d") if kind == EIGHT_BYTES else (4, "<f")
            (value,) = struct.unpack_from(form, message, position)
            position += width
        elif kind == BYTES:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise RecordError("a field is longer than its message")
            value = message[position : position + length]
            position += length
        else:
            raise RecordError(f"there is no such type of field: {kind}")
        yield number, value


def _varint(message: bytes, position: int) -> tuple[int, int]:
    result = 0
    for count, byte in enumerate(message[position : position + 10]):
        result |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return result & ((1 << 64) - 1), position + count + 1
    raise RecordError("a number does not end")


def main(arguments: list[str]) -> None:
    bounds = dict(one[2:].split("=", 1) for one in arguments if one.startswith("--"))
    since, until = float(bounds.get("since", "-inf")), float(bounds.get("until", "inf"))
    found, problems = curves([one for one in arguments if not one.startswith("--")], since, until)
    for one in found:
        print(json.dumps(one._asdict()))
    for problem in problems:
        print(json.dumps({"problem": problem}))


if __name__ == "__main__":
    main(sys.argv[1:])
