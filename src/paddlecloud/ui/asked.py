"""What a page gets: who asks for what, and how it may read. And what a page is."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.ui.curve_reader import CurveReader
from paddlecloud.ui.reader import Reader
from paddlecloud.ui.verdicts import Examiner


class Missing(Exception):
    """There is no such object, or the viewer may not see it: the page says both in one sentence."""


class Asked(NamedTuple):
    reader: Reader
    examiner: Examiner
    curves: CurveReader
    params: Mapping[str, str]
    """Of the path: `/jobs/{namespace}/{name}`."""
    query: Mapping[str, str]
    language: str
    now: float
    quick: bool
    """Whether this is the first answer, which must not wait: what takes longer follows as a live part."""

    @property
    def namespace(self) -> str:
        """The namespace that the viewer chose for lists; empty for all."""
        return self.query.get("namespace", "")


LISTED_IN = {"modelversions": "models", "schedules": "pipelines"}
"""Sections without a list of their own → the one that leads to them."""


def home_of(section: str) -> str:
    return LISTED_IN.get(section, section)


class DashboardPage(NamedTuple):
    """`load` reads what the template shows, and returns it as a value that the template calls `page`."""

    name: str
    """Of its module, its template (NAME.html), its table of words, and in the navigation `nav.NAME`."""
    path: str
    load: Callable[[Asked], Awaitable[Any]]
    key: str = ""
    """`g` and this letter go to it; only of pages in the navigation."""

    @property
    def template(self) -> str:
        return f"{self.name}.html"

    @property
    def in_navigation(self) -> bool:
        return bool(self.key)

    @property
    def section(self) -> str:
        """The first segment of its path: pages of one section are one entry of the navigation."""
        return self.path.split("/")[1]

    @property
    def home(self) -> str:
        """The section of the list that leads to it."""
        return home_of(self.section)

    def match(self, path: str) -> dict[str, str] | None:
        """The parameters of a path that is of this page."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.path))
        found = re.fullmatch(pattern, path)
        return found.groupdict() if found else None


def found(obj: Object | None) -> Object:
    if obj is None:
        raise Missing
    return obj
