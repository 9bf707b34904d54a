"""What pages say, in English and Chinese: one table for each page, `common` for what several of them use.

Verdicts are not here: they are those of `cli.phrases`, which `pdc explain` prints. What a server or scheduler said is
quoted as it is.
"""

from __future__ import annotations

from paddlecloud.cli.phrases import LANGUAGES as LANGUAGES
from paddlecloud.ui.words import (
    common,
    curves,
    job,
    jobs,
    models,
    nodes,
    overview,
    pipelines,
    queues,
    samplesets,
    services,
)

Table = dict[str, tuple[str, str]]
"""Key → (English, Chinese). Keys of a page begin with its name: `job.timeline`."""

TABLES: tuple[Table, ...] = (
    common.WORDS,
    overview.WORDS,
    jobs.WORDS,
    job.WORDS,
    curves.WORDS,
    pipelines.WORDS,
    services.WORDS,
    models.WORDS,
    samplesets.WORDS,
    queues.WORDS,
    nodes.WORDS,
)
WORDS: Table = {key: texts for table in TABLES for key, texts in table.items()}


def text(language: str, key: str, /, **values: object) -> str:
    return WORDS[key][LANGUAGES.index(language)].format(**values)


def has(key: str) -> bool:
    return key in WORDS


def preferred(accepted: str) -> str:
    """The language of an Accept-Language header that comes first there and is one of ours."""
    for part in accepted.split(",")[:20]:
        name = part.partition(";")[0].strip().lower()
        for language in LANGUAGES:
            if name == language or name.startswith(f"{language}-"):
                return language
    return LANGUAGES[0]
