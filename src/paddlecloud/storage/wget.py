"""`wget` of images that carry some downloads themselves, because what a published example fetches is not to be had.

`/opt/downloads.json` lists them by URL: what the answer really is (`is`), and either the file (`copy`) or the program
that writes it to the path it is given (`run`). Every such answer says on standard error where it came from. All other
URLs go to the network: through the wget of the machine, or without one by a plain request.

Standard library only. Options of wget that decide where a file goes (`-P`, `-O`) hold for carried files too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOWNLOADS = Path("/opt/downloads.json")
TIMEOUT = 60.0
USAGE, NETWORK_FAILURE = 1, 4  # wget's own exit codes


def main(arguments: Sequence[str], *, program: str, downloads: Path = DOWNLOADS) -> int:
    """`program` is the path this runs as: another wget is looked for behind it."""
    known: dict[str, Any] = json.loads(downloads.read_text(encoding="utf-8"))
    carried = [word for word in arguments if word in known]
    for url in carried:
        target = _target(url, arguments)
        _write(known[url], target)
        print(f"answered from inside the image: {url} is {known[url]['is']}; saved as {target}", file=sys.stderr)
    rest = [word for word in arguments if word not in known]
    elsewhere = [word for word in rest if "://" in word]
    if carried and not elsewhere:
        return 0
    if real := _real_wget(program):
        sys.stderr.flush()
        os.execv(real, ["wget", *rest])  # noqa: S606 - it takes over with its own options and exit codes
    if not elsewhere:
        print("wget: missing URL", file=sys.stderr)
        return USAGE
    return max(_fetch(url, _target(url, rest), known) for url in elsewhere)


def _target(url: str, arguments: Sequence[str]) -> str:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-P", "--directory-prefix", default=".")
    parser.add_argument("-O", "--output-document", default="")
    asked, _ = parser.parse_known_args(list(arguments))
    if asked.output_document:
        return "/dev/stdout" if asked.output_document == "-" else str(asked.output_document)
    return os.path.join(asked.directory_prefix, url.partition("?")[0].rpartition("/")[2] or "index.html")


def _write(answer: Mapping[str, Any], target: str) -> None:
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if "copy" in answer:
        with open(answer["copy"], "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
    else:
        subprocess.run([*answer["run"], target], check=True)


def _real_wget(program: str) -> str | None:
    own = os.path.realpath(program)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("wget", path=folder)
        if found and os.path.realpath(found) != own:
            return found
    return None


def _fetch(url: str, target: str, known: Mapping[str, Any]) -> int:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - wget takes any URL its caller gives
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            with open(target, "wb") as file:
                shutil.copyfileobj(answer, file)
    except (OSError, ValueError) as error:
        print(f"wget: {url}: {error}. The image itself carries only {', '.join(known)}", file=sys.stderr)
        return NETWORK_FAILURE
    print(f"{url} saved as {target}", file=sys.stderr)
    return 0
