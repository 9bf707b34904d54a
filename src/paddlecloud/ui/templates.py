"""Pages from templates: everything that is inserted is escaped, and what is missing is an error, not an empty text.

What of a page may change while it is open is in blocks whose names begin with `live_`; `live_parts` renders them alone.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import jinja2.nodes

from paddlecloud.ui import formatting, words

FOLDER = Path(__file__).parent
LIVE = "live_"


@functools.cache
def environment(language: str) -> jinja2.Environment:
    """One for each language: macros have no other way to know it."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.globals.update(
        t=functools.partial(words.text, language),
        has_text=words.has,
        language=language,
        now=time.time,
        path=path,
        static=static,
        share=formatting.share,
        size=formatting.bytes_of,
    )
    made.filters.update(
        tone=formatting.tone,
        duration=formatting.duration,
        number=formatting.number,
        percent=formatting.percent,
        age=lambda moment: formatting.age(moment, time.time()),
    )
    made.globals["ui"] = made.get_template("macros.html").module
    return made


def compile_all() -> None:
    """Before the first page is asked for: each template takes milliseconds, once."""
    for language in words.LANGUAGES:
        made = environment(language)
        for name in made.list_templates():
            made.get_template(name)


def page(name: str, language: str, values: Mapping[str, Any]) -> str:
    return environment(language).get_template(name).render(values)


def live_parts(name: str, language: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Block → HTML, of the blocks that change."""
    context = environment(language).get_template(name).new_context(dict(values))
    blocks = _blocks(name, language)
    context.blocks = {block: [render] for block, render in blocks.items()}
    return {block: "".join(render(context)) for block, render in blocks.items() if block.startswith(LIVE)}


@functools.cache
def _blocks(name: str, language: str) -> dict[str, Any]:
    """Of a template and of those that it extends; its own replace theirs."""
    made = environment(language)
    extends = made.parse((FOLDER / "templates" / name).read_text()).find(jinja2.nodes.Extends)
    around = _blocks(extends.template.value, language) if extends is not None else {}  # type: ignore[attr-defined]
    return {**around, **made.get_template(name).blocks}


def path(*segments: object, **query: object) -> str:
    """An address on this site. Names become segments here and nowhere else; empty values of the query are left out."""
    made = "/" + "/".join(quote(str(segment), safe="") for segment in segments)
    asked = {key: str(value) for key, value in query.items() if value not in (None, "")}
    return f"{made}?{urlencode(asked)}" if asked else made


@functools.cache
def static(name: str) -> str:
    """The address of a file, with its content in it: browsers keep it for good."""
    digest = hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest()[:12]
    return f"/-/static/{name}?v={digest}"
