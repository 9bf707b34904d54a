"""What the flags about nodes accept: `cpu=8,memory=32Gi`, `zone=a`, `gpu=yes:NoSchedule`. argparse types."""

from __future__ import annotations

import argparse
from typing import Any

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def quantities(text: str) -> dict[str, str]:
    """`cpu=8,memory=32Gi,nvidia.com/gpu=4`."""
    from paddlecloud.kube.quantity import QuantityError, parse

    found = pairs(text)
    for name, value in found.items():
        try:
            if parse(value) < 0:
                raise argparse.ArgumentTypeError(f"{name}={value} is negative")
        except QuantityError as error:
            raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    return found


def taint(text: str) -> dict[str, Any]:
    """`key=value:Effect` or `key:Effect`, as kubectl writes it."""
    pair, colon, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not colon or not key or effect not in EFFECTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY[=VALUE]:EFFECT with one of {', '.join(EFFECTS)}")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
