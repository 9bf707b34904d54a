"""Code, pages and tests use the words of Kubernetes and of the field: no riddles, no personification.

People read them in a second language and under stress. A program reports, sends and watches; it does not speak or hear.
`docs/glossary.md` has the word for each thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("src", "docs", "tests", "charts", "suites", "examples", "bench")
SUFFIXES = (".go", ".md", ".py", ".txt", ".yaml")
THIS = Path(__file__).name

INSTEAD = {
    r"told": "report, message, event",
    r"hears?|heard|hearing": "observe, receive, is called with",
    r"se(?:en?|es|eing) to": "reconciled, current; says who does it",
    r"has the (?:last )?word": "decides, takes precedence",
    r"doors?": "name the subresource, the port or the check",
    r"speaks?|speaking|spoken?|speakers?": "use, support, send",
    r"the one who|whoever": "name who it is: the user, the administrator, the writer",
    r"boasts?": "report success",
    r"made up for": "run later",
    r"ears?|interview\w*|furnish\w*|furniture|farewell": "the noun of Kubernetes or of the domain",
}
PHRASES = {
    "may be overtaken by what was not": "already-reconciled objects get low priority during the initial list",
    "who decided, who decides again": "on failure the pod is requeued",
    "a failure that is only a consequence": "attribute secondary failures (PeerLost) to the primary one",
    "what training takes when data is there": "samples/s when not waiting for data",
    "accepted for kubectl's sake": "ignored; pdc always applies server-side",
    "a peer went first": "another rank died first",
    "nobody told why": "its cause was not known in time",
    "where that name leads": "on the address that name resolves to",
    "missed while nobody was there": "missed while the controller was down",
    "what a server has it keeps": "only files whose partition changed are copied",
    "only what moved is brought": "only files whose partition changed are copied",
    "has time for its rows": "name the limit and its new value",
}
"""Sentences that had to be read twice."""
FILES = {"beside.py", "care.py", "crowds.py", "figures.py", "here.py", "social.py"}
"""Names that do not say what a file holds."""
KEPT = {("src/paddlecloud/controllers/sampledata/sampleset/server_pods.py", "farewell")}
"""Part of an id that cache servers of earlier releases have stored."""

WORDS = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b")
BETWEEN_WORDS = r"\s+(?:(?:#|//)\s+)?"
"""Where a line of text or of comment may end."""
SENTENCES = {re.compile(BETWEEN_WORDS.join(map(re.escape, phrase.split()))): phrase for phrase in PHRASES}
INSIDE_NAMES = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


def _words(text: str) -> str:
    """In lower case, with the words of names apart: `test_is_told`, `NamespaceFurnisher`."""
    return INSIDE_NAMES.sub(" ", text).lower()


def _texts() -> Iterator[tuple[str, str]]:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    pages = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]  # what was released keeps its words
    for path in sorted([*files, *pages]):
        if path.name != THIS:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def _instead(word: str) -> str:
    return next(better for pattern, better in INSTEAD.items() if re.fullmatch(pattern, word))


def test_all_that_people_read_is_in_plain_words() -> None:
    hits = [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]!r}, rather: {_instead(found[0])}"
        for name, text in ((name, _words(text)) for name, text in _texts())
        for found in WORDS.finditer(text)
        if (name, found[0]) not in KEPT
    ]
    assert not hits, "\n".join(hits)


def test_no_sentence_is_left_that_had_to_be_read_twice() -> None:
    hits = [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {phrase!r}, rather: {PHRASES[phrase]}"
        for name, text in ((name, _words(text)) for name, text in _texts())
        for pattern, phrase in SENTENCES.items()
        for found in pattern.finditer(text)
    ]
    assert not hits, "\n".join(hits)


def test_no_file_has_a_name_that_must_be_decoded() -> None:
    assert not [path for path in (ROOT / "src").rglob("*.py") if path.name in FILES]


@pytest.mark.parametrize(
    "line",
    [
        "the pod is told to end",
        "class NamespaceFurnisher",
        "def test_the_old_api_speaks_as_it_always_did",
        "status has a door of its own",
        "_was_seen_to",
        "the shim sees to that",
    ],
)
def test_a_word_is_found_in_sentences_and_in_names(line: str) -> None:
    assert WORDS.search(_words(line))


@pytest.mark.parametrize(
    "text",
    [
        "What training takes when data is there",
        "gloo listens where that\n    name leads",
        "# a peer\n    # went first",
        "// a peer\n\t// went first",
        "def test_a_peer_went_first",
    ],
)
def test_a_sentence_is_found_also_where_lines_break(text: str) -> None:
    assert any(pattern.search(_words(text)) for pattern in SENTENCES)


@pytest.mark.parametrize("line", ["a heartbeat", "clear(early)", "a doorway", "Seen, to be", "FastEarly"])
def test_parts_of_other_words_are_not_found(line: str) -> None:
    assert not WORDS.search(_words(line))
