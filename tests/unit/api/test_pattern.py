"""Expressions of schemas: the same answers as an ordinary engine, without its worst case."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api.pattern import PatternError, TooCostly, compile_pattern
from paddlecloud.local.apiserver.schema.formats import format_check


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("abc", ["xabcx"], ["ab", ""]),
        ("^abc$", ["abc"], ["abcd", "abc\n"]),
        ("", ["", "x"], []),
        ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
        ("^a{2}$", ["aa"], ["aaa"]),
        ("^a{2,}$", ["aaaa"], ["a"]),
        ("^a{,2}$", ["a{,2}"], ["a"]),
        ("^(a|bc)+?$", ["abca"], ["b"]),
        (r"^\d+\.\w\s$", ["12.x\t"], ["x.x "]),
        (r"^[^a-c\d]$", ["d"], ["a", "5"]),
        (r"^[\W_]$", ["-", "_"], ["a"]),
        (r"^[]a-]+$", ["]a-"], ["b"]),
        (r"^[[:alpha:][:^digit:]]$", ["a", "-"], ["1"]),
        (r"^\x41\x{42}\n$", ["AB\n"], ["AC\n"]),
        (r"^\Qa.b\E$", ["a.b"], ["axb"]),
        ("(?i)^straße$", ["STRAßE"], ["strasse"]),
        ("^(?i:a)b$", ["Ab"], ["AB"]),
        ("^.$", ["x", "é"], ["\n", ""]),
        ("(?s)^.$", ["\n"], [""]),
        ("(?m)^b$", ["a\nb\nc"], ["ab"]),
        (r"\bfoo\b", ["a foo b", "foo"], ["food"]),
        (r"o\Bo", ["foo"], ["o o"]),
        (r"^\p{Lu}\pL+$", ["Été"], ["été"]),
        (r"^\P{L}$", ["1"], ["a"]),
        ("^(?P<year>[0-9]{4})-(?:x|y)$", ["2026-x"], ["26-x"]),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", ["my-name.x"], ["My", "a-", "a..b"]),
    ],
)
def test_search(pattern: str, yes: list[str], no: list[str]) -> None:
    compiled = compile_pattern(pattern)
    assert [text for text in yes if not compiled.search(text)] == []
    assert [text for text in no if compiled.search(text)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[a", "a**", "*a", "a{1001}", "a{3,2}", r"\1", "(?=a)", "(?<=a)", "(?<name", "\\", r"\y", "[b-a]",
     r"\p{Greek}", "[[:no:]]", "((a{99}){99}){99}", "(" * 5000],
)  # fmt: skip
def test_what_re2_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(a*)*b$", "^a*a*a*a*a*b$", "(x+x+)+y"])
def test_the_classics_of_catastrophic_backtracking_are_quick(pattern: str) -> None:
    started = time.process_time()
    compile_pattern(pattern).search("a" * 20_000 + "!")
    assert time.process_time() - started < 1


def test_a_match_beyond_its_budget_stops() -> None:
    text = "".join(random.Random(1).choices("ab", k=5000))
    with pytest.raises(TooCostly):
        compile_pattern("^[ab]*a[ab]{1000}$").search(text)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", r"\w", "-"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds("".join, st.lists(inner, min_size=1, max_size=3))
        | st.builds("({}|{})".format, inner, inner)
        | st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"]))
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(pattern=EXPRESSIONS, text=st.text("ab-\n", max_size=6))
def test_agrees_with_the_standard_library(pattern: str, text: str) -> None:
    # `$` of Python also matches before a final newline, `\Z` is what RE2 means by it.
    expected = re.search(pattern.replace("$", r"\Z"), text) is not None
    assert compile_pattern(pattern).search(text) == expected


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", ["2026-11-15T09:46:56Z", "2026-11-15t09:46:56.5+08:00"], ["2026-11-15", "2026-13-15T09:46:56Z"]),
        ("date", ["2024-02-29"], ["2023-02-29", "20240229"]),
        ("duration", ["1h30m", "2 days", "0", "-1.5h"], ["1", "abc", ""]),
        ("ipv4", ["10.0.0.1"], ["10.0.0.256", "::1"]),
        ("ipv6", ["::1", "2001:db8::"], ["10.0.0.1", "fe80::1%eth0"]),
        ("cidr", ["10.0.0.1/24", "2001:db8::/32"], ["10.0.0.1", "10.0.0.0/33"]),
        ("uuid", ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"], ["6ba7b810"]),
        ("uuid4", ["6ba7b810-9dad-41d1-80b4-00c04fd430c8"], ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]),
        ("byte", ["aGk=", ""], ["aGk", "a b="]),
        ("email", ["a@b.org", "A <a@b>"], ["a", "@b", "a@"]),
        ("hostname", ["a-b.example.com", "localhost"], ["-a", "a..b", "a_b"]),
        ("uri", ["https://x/y", "/path"], ["x", "http://a:b/"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab"], ["01:23", "01:23-45:67:89:ab"]),
        ("isbn10", ["0321751043"], ["0321751044"]),
        ("isbn", ["978-0321751041"], ["978-0321751042"]),
        ("creditcard", ["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
        ("hexcolor", ["#FFF", "abcdef"], ["#FF"]),
        ("rgbcolor", ["rgb(255, 0,12)"], ["rgb(256,0,0)"]),
        ("ssn", ["111-22-3333"], ["111-22-333"]),
        ("bsonobjectid", ["507f1f77bcf86cd799439011"], ["507f"]),
        ("k8s-short-name", ["my-name"], ["My", "a" * 64]),
        ("k8s-long-name", ["a.b-c"], ["a..b"]),
    ],
)
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    check = format_check(name)
    assert check is not None
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


def test_a_format_kubernetes_ignores_is_not_checked() -> None:
    assert format_check("int32") is None
