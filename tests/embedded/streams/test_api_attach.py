"""attach and `run -i`: clients that join a running container, its output and its input."""

from __future__ import annotations

import asyncio
import json

import pytest

from embedded.streams.shop import Shop, answered, gate
from harness import PATIENCE
from paddlecloud.kube.resource import PODS


async def test_attach_shows_what_is_printed_from_now_on(shop: Shop) -> None:
    await shop.pod("echo before; read line < /shared/go; echo after; echo wrong >&2", **gate(shop))
    await shop.machine.printed("pod", "before")
    attached = await shop.start("attach", "pod")
    await answered(shop, 'subresource="attach",code="101"')
    (shop.machine.data / "gate" / "go").write_text("now\n")
    out, err = await asyncio.wait_for(attached.communicate(), PATIENCE)
    assert (attached.returncode, out) == (0, b"after\n")
    assert b"wrong" in err


@pytest.mark.parametrize("websockets", ["true", "false"])
async def test_a_container_with_an_input_reads_what_a_client_types(shop: Shop, websockets: str) -> None:
    reads = "while read line; do echo got $line; done; echo over"
    await shop.pod(reads, container={"stdin": True, "stdinOnce": True})
    done = await shop.kubectl("attach", "-i", "pod", input=b"one\ntwo\n", websockets=websockets)
    assert (done.code, done.text) == (0, "got one\ngot two\nover\n"), done.err
    await shop.machine.phase("pod", "Succeeded")


async def test_an_input_that_may_be_joined_again_outlives_a_client(shop: Shop) -> None:
    await shop.pod("while read line; do echo got $line; done", container={"stdin": True})
    for word in (b"one", b"two"):
        attached = await shop.start("attach", "-i", "pod")
        assert attached.stdin is not None
        assert attached.stdout is not None
        attached.stdin.write(word + b"\n")
        assert await asyncio.wait_for(attached.stdout.readline(), PATIENCE) == b"got " + word + b"\n"
        attached.kill()
        await attached.communicate()
    assert (await shop.kubectl("logs", "pod")).text == "got one\ngot two\n"


async def test_a_container_with_a_terminal_has_one(shop: Shop) -> None:
    script = "test -t 0 && test -t 1 && echo terminal $(stty size); read line; echo got $line"
    await shop.pod("read go; " + script, container={"stdin": True, "tty": True})
    attached = await shop.start("attach", "-i", "pod")
    assert attached.stdin is not None
    attached.stdin.write(b"go\nword\n")
    out, _ = await asyncio.wait_for(attached.communicate(), PATIENCE)
    assert b"terminal 0 0\r\n" in out
    assert b"got word\r\n" in out


async def test_a_container_without_an_input_reads_nothing(shop: Shop) -> None:
    await shop.pod("cat; echo over; sleep 600")
    await shop.machine.printed("pod", "over")
    attached = await shop.start("attach", "-i", "pod")
    await answered(shop, 'subresource="attach",code="101"')
    attached.kill()
    await attached.communicate()


async def test_run_gives_a_program_its_input_and_takes_its_output(shop: Shop) -> None:
    """What `kubectl run -i --rm` users type; the node is named because nobody schedules here."""
    overrides = json.dumps({"spec": {"nodeName": "node-1"}})
    command = ("run", "one", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox", f"--overrides={overrides}")
    done = await shop.kubectl(*command, "--command", "--", "sort", input=b"b\na\n")
    assert (done.code, done.text) == (0, "a\nb\n"), done.err


async def test_kubectl_debug_joins_a_container_that_it_adds_to_a_running_pod(shop: Shop) -> None:
    await shop.pod("sleep 600")
    program = ("sh", "-c", "read word; echo $word from $(hostname)")
    done = await shop.kubectl("debug", "-i", "pod", "--image=busybox", "-c", "look", "--", *program, input=b"hello\n")
    assert done.out.decode().splitlines()[-1] == "hello from pod"
    log = await shop.kubectl("logs", "pod", "-c", "look")
    assert log.out == b"hello from pod\n"
    pod = await shop.machine.client.get(PODS, "pod", "default")
    assert pod["status"]["phase"] == "Running"
    assert [c["name"] for c in pod["status"]["ephemeralContainerStatuses"]] == ["look"]
    assert (await shop.kubectl("exec", "pod", "--", "echo", "on")).out == b"on\n"
