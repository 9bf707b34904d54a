"""The control plane's end of the gateways."""

from __future__ import annotations

import json
from pathlib import Path

from paddlecloud.local.knative.gateway.sockets import connect_unix
from paddlecloud.local.knative.supervisor import Gateways

NOBODY = 1 << 23
"""A number that no process has."""


async def test_a_gateway_that_comes_back_is_told_of_everything_at_once(tmp_path: Path) -> None:
    """One that was told of an empty table would answer 404 until the first route is published again."""
    gateways = Gateways(
        tmp_path / "gateway",
        changed=lambda: None,
        report=lambda report: None,
        wake=lambda name: None,
        count=1,
    )
    published = {"host:a.example.com": [["default/a", 100]]}
    control = tmp_path / "gateway" / "control"

    def fill() -> None:
        assert not control.exists(), "nobody can ask yet"
        gateways.publish(published)

    await gateways.ensure(fill)
    try:
        reader, writer = await connect_unix(str(control))
        hello = {"pid": NOBODY, "number": 7, "port": gateways.port}
        writer.write(json.dumps({"hello": hello}).encode() + b"\n")
        assert json.loads(await reader.readline()) == {"all": published, "version": 1}
        writer.close()
    finally:
        await gateways.stop(processes=True)
