"""Objects as YAML and lines of logs on a page: large ones cost little time and memory."""

from __future__ import annotations

import time
from typing import Any

import pytest

from paddlecloud.kube.yamlio import load_all
from paddlecloud.ui.logs import MOST_CHARACTERS, shortened
from paddlecloud.ui.yaml_text import yaml_text


def _of(variables: int) -> Any:
    env = [{"name": f"A{number}", "value": "yes"} for number in range(variables)]
    return {"kind": "PaddleJob", "spec": {"env": env, "line": "a\nb: c"}}


@pytest.mark.parametrize("variables", [1, 5000])
async def test_what_is_shown_is_yaml_of_the_object(variables: int) -> None:
    obj = _of(variables)
    assert [value for _, value in load_all(await yaml_text(obj))] == [obj]


async def test_a_large_object_holds_up_nobody() -> None:
    obj = _of(40_000)
    began = time.process_time()
    await yaml_text(obj)
    assert time.process_time() - began < 0.5


def test_of_a_very_long_line_of_a_log_the_beginning_is_kept() -> None:
    assert shortened("short") == "short"
    kept = shortened("x" * 3_000_000)
    assert kept.startswith("x" * MOST_CHARACTERS)
    assert len(kept) < MOST_CHARACTERS + 20
