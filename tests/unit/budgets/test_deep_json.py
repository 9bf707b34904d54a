"""Text that is nested deeper than a parser goes is treated as text that is no JSON, by every reader of foreign JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.controllers.paddleservice import observe
from paddlecloud.kube import client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.transport import Response, refusal
from paddlecloud.local.apiserver.streaming.remote_command import terminal_size
from paddlecloud.local.nodes.objects import CAPACITY, declared_capacity
from paddlecloud.sdk import remote
from paddlecloud.serving import paddle_program
from paddlecloud.serving.errors import ModelError

DEEP = "[" * 100_000

READERS: dict[str, Callable[[], object]] = {
    "annotation of a revision": lambda: observe._remark({"annotations": {"a": DEEP}}, "a") == {},
    "annotation of a node": lambda: declared_capacity({"metadata": {"annotations": {CAPACITY: DEEP}}}) == {},
    "size of a terminal": lambda: terminal_size(DEEP.encode()) is None,
    "end of an exec": lambda: remote._status(DEEP.encode())["status"] == "Failure",
    "refusal by a proxy": lambda: refusal(Response(502, DEEP.encode())).code == 502,
}


@pytest.mark.parametrize("reader", READERS)
def test_deep_text_counts_as_text_that_is_no_json(reader: str) -> None:
    assert READERS[reader]()


def test_a_server_that_answers_with_deep_text_is_no_kubernetes() -> None:
    with pytest.raises(ApiError, match="is not JSON"):
        client._decode(DEEP.encode())


def test_a_program_of_deep_text_is_damaged(tmp_path: Path) -> None:
    program = tmp_path / "inference.json"
    program.write_text(DEEP)
    with pytest.raises(ModelError, match="is damaged"):
        paddle_program.check(program)
