"""Refuses a key of `-o KEY=VALUE` that the suite does not know. The suites themselves set it and go on without a word.

A key is known if the configuration has it, or if its last part occurs as a name in the suite's own code: suites read
settings that no file of theirs lists.
"""

import difflib
import os
import re

import yaml

from paddle_suite.errors import refuse


def read(path):
    """The configuration as the suite reads it, before it is changed."""
    if not os.path.isfile(path):
        beside = os.path.dirname(path) or "."
        there = sorted(os.listdir(beside)) if os.path.isdir(beside) else []
        near = difflib.get_close_matches(os.path.basename(path), there, n=1, cutoff=0.5)
        hint = f"did you mean {os.path.join(beside, near[0])}?" if near else "look with: find configs -name '*.y*ml'"
        refuse(f"there is no configuration {path} in {os.getcwd()}; {hint}")
    with open(path, encoding="utf-8") as file:
        try:
            body = yaml.safe_load(file)
        except yaml.YAMLError as error:
            refuse(f"{path} is no YAML: {' '.join(str(error).split())}")
    if not isinstance(body, dict):
        refuse(f"{path} is not a configuration: it must map keys to values")
    return body


def check(options, config, *, path, source):
    """`options` are `A.b=value`, `source` is the folder of the suite's code."""
    for option in options:
        key, equals, _ = option.partition("=")
        if not equals:
            refuse(f"{option!r} is not KEY=VALUE: write -o {key}=…")
        _check_key(key.strip(), config, path, source)


def _check_key(key, config, path, source):
    here, done = config, []
    for part in key.split("."):
        known = _keys_of(here)
        if known is None or part in known:
            here = _step(here, part)
            done.append(part)
            continue
        if part not in names_in(source):
            where = ".".join(done) or "its first level"
            near = difflib.get_close_matches(part, [*known, *sorted(names_in(source))], n=1, cutoff=0.7)
            said = ".".join([*done, near[0], *key.split(".")[len(done) + 1 :]]) if near else ""
            hint = f"did you mean {said}?" if near else f"known there: {', '.join(sorted(known))}"
            refuse(f"{path} has no key {key!r} ({part!r} is missing in {where}), and the suite reads none; {hint}")
        return  # it is set anew, and what lies below it is the user's


def _keys_of(here):
    """None where a key cannot be judged: below a list, or a value that is to be replaced."""
    return {str(key) for key in here} if isinstance(here, dict) else None


def _step(here, part):
    return here.get(part) if isinstance(here, dict) else None


_names = {}


def names_in(folder):
    """Every name and every quoted word in the Python files of a folder."""
    if folder not in _names:
        found = set()
        for place, _, files in os.walk(folder):
            for name in files:
                if name.endswith(".py"):
                    with open(os.path.join(place, name), encoding="utf-8", errors="replace") as file:
                        found.update(re.findall(r"[A-Za-z_]\w*", file.read()))
        _names[folder] = found
    return _names[folder]


# mypy: ignore-errors
