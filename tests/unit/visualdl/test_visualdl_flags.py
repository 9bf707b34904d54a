"""VisualDL's flags: what its program is called with, and what is refused before there is a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlecloud.visualdl.flags import FlagError, Flags, check

PLAIN = Flags(logdirs=("/logs",))


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, []),
        ({"model": "/m/inference.json"}, ["--model", "/m/inference.json"]),
        ({"language": "zh"}, ["--language", "zh"]),
        ({"public_path": "/curves"}, ["--public-path", "/curves"]),
        ({"cache_timeout": 0.5}, ["--cache-timeout", "0.5"]),
        ({"cache_timeout": 0}, ["--cache-timeout", "0"]),
        ({"api_only": True}, ["--api-only"]),
    ],
)
def test_flags_are_written_as_visualdl_reads_them(given: dict[str, Any], more: list[str]) -> None:
    beginning = ["--logdir", "/logs", "--host", "0.0.0.0", "--port", "8040"]
    assert replace(PLAIN, **given).arguments() == [*beginning, *more]


def test_folders_are_one_flag_with_several_values() -> None:
    assert Flags(logdirs=("/a", "/b c")).arguments()[:3] == ["--logdir", "/a", "/b c"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "/app"),
        ({"api_only": True}, ""),
        ({"public_path": "/curves/"}, "/curves"),
        ({"public_path": "/", "api_only": True}, ""),
    ],
)
def test_the_page_begins_where_visualdl_puts_it(given: dict[str, Any], path: str) -> None:
    assert replace(PLAIN, **given).path == path


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"logdirs": ()}, "--logdir: name at least one folder"),
        ({"logdirs": ("--host",)}, "'--host' would be read as a flag"),
        ({"model": "-m"}, "'-m' would be read as a flag"),
        ({"port": 0}, "--port: 0 is no port"),
        ({"port": 65536}, "--port: 65536 is no port"),
        ({"host": ""}, "--host: '' is no address"),
        ({"host": "a b"}, "--host: 'a b' is no address"),
        ({"language": "fr"}, "--language: VisualDL has en and zh, not 'fr'"),
        ({"cache_timeout": -1.0}, "--cache-timeout: -1 is not a number of seconds"),
        ({"cache_timeout": float("nan")}, "--cache-timeout: nan is not a number of seconds"),
        ({"public_path": "curves"}, "--public-path: 'curves' does not begin with /"),
        ({"public_path": "/"}, "--public-path: VisualDL's page cannot be at /"),
    ],
)
def test_what_visualdl_would_refuse_or_ignore_is_refused_here(given: dict[str, Any], says: str) -> None:
    with pytest.raises(FlagError) as refused:
        check(replace(PLAIN, **given))
    assert says in str(refused.value)


@pytest.mark.parametrize(("host", "private"), [("0.0.0.0", False), ("127.0.0.1", True), ("localhost", True)])
def test_a_loopback_host_is_private_to_the_pod(host: str, private: bool) -> None:
    check(replace(PLAIN, host=host))
    assert replace(PLAIN, host=host).is_private is private
