"""Links in a pod's answer are rewritten to lead through the proxy again: the header Location, and those of HTML. Pure.

As apimachinery/pkg/util/proxy/transport.go: only links to the pod itself that begin with `/` are changed. Pods are
untrusted: the time taken is linear in the length of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

_ATTRIBUTES = {
    name: frozenset(attributes.split())
    for names, attributes in {
        "a area base link": "href",
        "audio script source": "src",
        "applet": "codebase",
        "blockquote del ins q": "cite",
        "body": "background",
        "button": "formaction",
        "command": "icon",
        "embed": "src",
        "form": "action",
        "frame iframe": "longdesc src",
        "head": "profile",
        "html": "manifest",
        "img": "longdesc src usemap",
        "input": "src usemap formaction",
        "object": "classid codebase data usemap",
        "video": "poster src",
    }.items()
    for name in names.split()
}
_TAG = re.compile(rb"<(?:(!--)|([a-zA-Z][^\s/>]*))")
_ATTRIBUTE = re.compile(rb"""[\s/]*([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+)))?""")
_RAW_TEXT = (b"script", b"style", b"textarea", b"title")
"""Elements whose content has no tags, but for their own end."""

Rewrite = Callable[[str], str]


def rewriter(prefix: str, *, pod: str, host: str) -> Rewrite:
    """`prefix` is the path that leads to the pod, `pod` its address and port, `host` the one the client asked."""

    def rewrite(link: str) -> str:
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if parts.netloc not in ("", pod, host) or not parts.path.startswith("/") or parts.path.startswith(prefix):
            return link
        if not parts.netloc:
            return prefix + link if link.startswith("/") else link
        scheme, netloc = (parts.scheme, host) if parts.netloc == host else ("", "")
        return SplitResult(scheme, netloc, prefix + parts.path, parts.query, parts.fragment).geturl()

    return rewrite


def rewrite_html(page: bytes, rewrite: Rewrite) -> bytes:
    pieces: list[bytes] = []
    lowered = page.lower()
    done = at = 0
    while (tag := _TAG.search(page, at)) is not None:
        at = tag.end()
        if tag[1]:
            end = page.find(b"-->", at)
            if end < 0:
                break
            at = end
            continue
        name = tag[2].lower()
        links = _ATTRIBUTES.get(name.decode("latin-1"), frozenset())
        while (attribute := _ATTRIBUTE.match(page, at)) is not None:
            at = attribute.end()
            which = attribute.lastindex or 1
            if which > 1 and attribute[1].lower().decode("latin-1") in links:
                link = attribute[which].decode("utf-8", "surrogateescape")
                pieces += [page[done : attribute.start(which)], rewrite(link).encode("utf-8", "surrogateescape")]
                done = attribute.end(which)
        if name in _RAW_TEXT:
            end = lowered.find(b"</" + name, at)
            if end < 0:
                break
            at = end
    return b"".join([*pieces, page[done:]])
