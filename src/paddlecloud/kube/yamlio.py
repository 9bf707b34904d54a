"""YAML in and out, as kubectl understands it and within bounds.

Why not `yaml.safe_load`: it turns `2026-01-01` into a date and `22:22` into 1342, keeps the last of two equal keys
without a word, dies with the process on deep nesting, and lets ten lines of aliases become gigabytes. This reader walks
the parser's events with its own stack, so depth and expansion are counted while they happen.

Scalars follow the YAML 1.1 that Kubernetes tools share: true/yes/on are booleans, 0755 is octal, timestamps are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

MAX_DEPTH = 200
MAX_NODES = 500_000
"""After aliases are expanded; 64 characters of a text count as one more. A list of 10,000 pods has about as many."""
MAX_SPARE = 16
"""Documents without content that may stand beside those that a text is read for."""
MAX_DOCUMENTS = 20_000
"""Of one text, empty ones too. They cost more than values: half a second for so many."""
MAX_MISTAKES = 20
"""Of one text that are looked for, one after the other."""
MAX_DIGITS = 400
"""Of a number: a longer one is text."""

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_INT = re.compile(r"[-+]?(0b_*[01][01_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0o_*[0-7][0-7_]*|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}


class YamlError(ValueError):
    """The text is not YAML, or not YAML that an object can be made of. `line` counts from one."""

    def __init__(self, problem: str, line: int, *, also: Sequence[YamlError] = ()) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem = problem
        self.line = line
        self.also = tuple(also)
        """Further mistakes of the same document."""


class TooManyDocuments(YamlError):
    """Nothing after them is read."""


def load_all(text: str, most: int = MAX_DOCUMENTS) -> Iterator[tuple[int, Any]]:
    """(line, value) of every document that is not empty; at most so many with the empty ones."""
    for count, (line, value) in enumerate(_documents(text)):
        if count >= most:
            raise TooManyDocuments(f"there are more than {most:,} documents", line)
        if value is not None:
            yield line, value


def read_all(text: str) -> tuple[list[tuple[int, Any]], list[YamlError]]:
    """(line, value) of every document that is not empty, and what is wrong with those that cannot be read.

    After a mistake that ends a document, reading goes on where the next one begins (`---`).
    """
    found: list[tuple[int, Any]] = []
    mistakes: list[YamlError] = []
    lines, above = text.splitlines(keepends=True), 0
    while len(mistakes) < MAX_MISTAKES:
        try:
            for line, value in load_all("".join(lines[above:])):
                found.append((above + line, value))
            break
        except YamlError as error:
            mistakes += [YamlError(one.problem, above + one.line) for one in (error, *error.also)]
            if isinstance(error, TooManyDocuments):
                break
            last = above + max(one.line for one in (error, *error.also))
            # A bracket that is not closed is noticed only at the line that begins the next document.
            begin = max(above + 1, last - 1)
            above = next((at for at in range(begin, len(lines)) if lines[at].startswith("---")), len(lines))
    return found, mistakes


def load_one(text: str) -> Any:
    """The value of the only document that is not empty. After a second one nothing more is read."""
    found: Any = None
    for count, (line, value) in enumerate(_documents(text)):
        if count > MAX_SPARE or (value is not None and found is not None):
            raise YamlError("there is more than one document", line)
        found = value if found is None else found
    if found is None:
        raise YamlError("there is no document", 1)
    return found


def _documents(text: str) -> Iterator[tuple[int, Any]]:
    try:
        reader = _Reader()
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            document = reader.feed(event)
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(what, mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:  # characters that no YAML may hold
        character = yaml.reader.Reader.NON_PRINTABLE.search(text)
        line = text.count("\n", 0, character.start()) + 1 if character else 1
        raise YamlError(str(error).splitlines()[0], line) from error


def dump(value: Any) -> str:
    """Block style, keys in the order of the object, multi-line text as literal blocks, no aliases."""
    return str(yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True))


def dump_all(values: list[Any]) -> str:
    return "---\n".join(dump(value) for value in values)


class _Frame:
    """A mapping or sequence under construction; `size` counts it and everything below, aliases expanded."""

    __slots__ = ("anchor", "key", "line", "merges", "merging", "size", "target")

    def __init__(self, target: dict[str, Any] | list[Any], anchor: str | None, line: int) -> None:
        self.target = target
        self.anchor = anchor
        self.line = line
        self.key: str | None = None
        self.merging = False
        self.merges: list[dict[str, Any]] = []
        self.size = 1


class _Reader:
    """Turns events into values. One instance reads one stream; anchors live as long as their document."""

    def __init__(self) -> None:
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._line = 1
        self._root: Any = None
        self._twice: list[YamlError] = []

    def feed(self, event: Any) -> tuple[int, Any] | None:
        """The finished document with its first line, or None while it is not finished."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            merge = event.value == "<<" and not event.style  # in quotes it is a key like others
            size = 1 + len(event.value) // 64
            self._add(_scalar(event, line), size=size, anchor=event.anchor, line=line, merge=merge)
        elif isinstance(event, yaml.MappingStartEvent):
            self._push({}, event.anchor, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._push([], event.anchor, line)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._pop()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise YamlError(f"alias *{event.anchor} has no anchor before it", line)
            value, size = self._anchors[event.anchor]
            self._add(value, size=size, anchor=None, line=line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors, self._root, self._line, self._twice = {}, None, line, []
        elif isinstance(event, yaml.DocumentEndEvent):
            if self._twice:
                first, *others = self._twice
                raise YamlError(first.problem, first.line, also=others)
            return self._line, self._root
        return None

    def _push(self, target: dict[str, Any] | list[Any], anchor: str | None, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", line)
        if self._stack and isinstance(self._stack[-1].target, dict) and self._stack[-1].key is None:
            raise YamlError("a mapping or list cannot be a key", line)
        self._stack.append(_Frame(target, anchor, line))

    def _pop(self) -> None:
        frame = self._stack.pop()
        if isinstance(frame.target, dict):
            for merge in frame.merges:
                for key, value in merge.items():
                    frame.target.setdefault(key, value)
        self._add(frame.target, size=frame.size, anchor=frame.anchor, line=frame.line)

    def _add(self, value: Any, *, size: int, anchor: str | None, line: int, merge: bool = False) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self._root = value
            return
        parent = self._stack[-1]
        parent.size += size
        # Checked on every node, so a bomb is refused at the first alias that would cross the line.
        if parent.size > MAX_NODES:
            raise YamlError(f"more than {MAX_NODES} values, or as much text, once aliases are expanded", line)
        target = parent.target
        if isinstance(target, list):
            target.append(value)
        elif parent.key is None:
            parent.key, parent.merging = _key(value, line), merge
        else:
            key, parent.key = parent.key, None
            if parent.merging and isinstance(value, (dict, list)):
                parent.merges.extend(_merges(value, line))
            elif key in target:
                if len(self._twice) < MAX_MISTAKES:
                    self._twice.append(YamlError(f'key "{key}" already set in map', line))
            else:
                target[key] = value


def _merges(value: Any, line: int) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise YamlError("<< takes a mapping or a list of mappings", line)
    return sources


def _key(value: Any, line: int) -> str:
    """Keys of objects are text; `8080: x` is what its author means by it, `[a]: x` is not."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise YamlError("a key must be text", line)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(event: Any, line: int) -> Any:
    text = str(event.value)
    tag = event.tag
    if tag in (None, "!"):
        return _finite(resolve(text), line) if event.implicit[0] else text
    short = str(tag).rpartition(":")[2]
    if short == "str":
        return text
    if short == "binary":  # base64 stays base64: that is how JSON carries bytes
        return "".join(text.split())
    if short in ("int", "float", "bool", "null"):
        return _finite(resolve(text), line)
    raise YamlError(f"tag {tag} has no meaning in a Kubernetes object", line)


def _finite(value: Any, line: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise YamlError("infinity and NaN cannot be sent to an API server", line)
    return value


def resolve(text: str) -> Any:
    """The value of a plain (unquoted) scalar."""
    if text in _NULL:
        return None
    first = text[0]
    if first in "0123456789+-.":
        return _number(text)
    if text in _TRUE:
        return True
    return False if text in _FALSE else text


def _number(text: str) -> Any:
    if len(text) > MAX_DIGITS:
        return text
    if _INT.fullmatch(text):
        digits = text.replace("_", "")
        unsigned = digits.lstrip("+-")
        if len(unsigned) > 1 and unsigned[0] == "0" and unsigned[1].isdigit():
            value = int(unsigned, 8)
            return -value if digits[0] == "-" else value
        return int(digits, 0)
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    if not _FLOAT.fullmatch(text):
        return text
    real = float(text.replace("_", ""))
    # 1e3 is sent as 1000, because Go's decoder takes 1000.0 for no integer.
    return int(real) if real.is_integer() and abs(real) < 2**53 else real


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_str(dumper: Any, text: str) -> Any:
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    # Text that this reader, unlike PyYAML's own, would take for something else must be quoted (1e3).
    style = "'" if not isinstance(resolve(text), str) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_str)
