"""Aliases that programs move: the same references are refused as on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.model.reference import BadReference
from paddlecloud.sdk.models import AsyncModels


@pytest.mark.parametrize("verb", ["rollback", "untag"])
@pytest.mark.parametrize("text", ["line", "line:2", "line:latest"])
async def test_what_names_no_alias_moves_none(verb: str, text: str) -> None:
    """`line` means `line@latest` where something is read; nobody who says rollback("line") means that alias."""
    nobody: Any = None
    with pytest.raises(BadReference, match="names no alias: NAME@ALIAS, as line@production"):
        await getattr(AsyncModels(nobody), verb)(text)
