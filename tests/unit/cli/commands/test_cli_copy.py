"""Which side of `pdc cp` is in a pod, and which port `pdc port-forward` means."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.cli.commands.cp import Side, parse
from paddlecloud.cli.commands.port_forward import Pair
from paddlecloud.cli.commands.port_forward import parse as parse_ports
from paddlecloud.cli.failures import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file", Side("", "file")),
        ("./a:b", Side("", "./a:b")),
        ("/tmp/a:b", Side("", "/tmp/a:b")),
        ("dir/sub/x:y", Side("", "dir/sub/x:y")),
        ("pod:/tmp/x", Side("pod", "/tmp/x")),
        ("pod:relative/x", Side("pod", "relative/x")),
        ("ns/pod:/tmp/x", Side("pod", "/tmp/x", "ns")),
        ("pod:/a:b", Side("pod", "/a:b")),
    ],
)
def test_sides_of_a_copy(text: str, expected: Side) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["pod:", ":/x", "ns/:/x"])
def test_half_a_side_is_a_mistake(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


POD = {
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a"}, {"ports": [{"name": "http", "containerPort": 8080}]}]},
}
SERVICE: dict[str, Any] = {
    "kind": "Service",
    "metadata": {"name": "s"},
    "spec": {"ports": [{"name": "web", "port": 80, "targetPort": "http"}, {"name": "raw", "port": 90}]},
}


@pytest.mark.parametrize(
    ("owner", "text", "expected"),
    [
        (POD, "8080", Pair(8080, 8080)),
        (POD, "80:8080", Pair(80, 8080)),
        (POD, ":8080", Pair(0, 8080)),
        (POD, "http", Pair(8080, 8080)),
        (POD, "9000:http", Pair(9000, 8080)),
        (SERVICE, "80", Pair(80, 8080)),
        (SERVICE, "web", Pair(8080, 8080)),
        (SERVICE, ":90", Pair(0, 90)),
        (SERVICE, "1234:raw", Pair(1234, 90)),
    ],
)
def test_pairs_of_ports(owner: dict[str, Any], text: str, expected: Pair) -> None:
    assert parse_ports(text, owner, POD) == expected


@pytest.mark.parametrize(
    ("owner", "text"),
    [(POD, "smtp"), (POD, "0"), (POD, "70000"), (POD, "99999:80"), (POD, "a:80"), (POD, "80:"), (SERVICE, "8080")],
)
def test_ports_that_are_none(owner: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError):
        parse_ports(text, owner, POD)
