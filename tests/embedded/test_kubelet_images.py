"""Images of pods through the real API: missing, built while the pod waits, stand-ins."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

from harness import PATIENCE, eventually
from paddlecloud.kube.resource import (
    EVENTS,
    Object,
)
from unit.local.images.wheels import write_wheel
from unit.local.kubelet.machine import TestMachine, is_ready, state_of, waiting_reason


async def test_an_image_without_a_recipe_says_what_would_fix_it(machine: TestMachine) -> None:
    await machine.run("true", container={"image": "example.com/team/unknown:v1"})
    pod = await machine.until("pod", lambda pod: waiting_reason(pod) in ("ErrImagePull", "ImagePullBackOff"))
    message = state_of(pod)["state"]["waiting"]["message"]
    assert "pdc image build -f image.yaml -t example.com/team/unknown:v1" in message
    assert pod["status"]["phase"] == "Pending"


async def test_a_digest_that_no_recipe_declares_is_not_served_by_its_tag(machine: TestMachine) -> None:
    await machine.run("true", container={"image": f"busybox:1@sha256:{'0' * 64}"})
    pod = await machine.until("pod", lambda pod: waiting_reason(pod) in ("ErrImagePull", "ImagePullBackOff"))
    assert "is asked for by digest, and no recipe declares that digest" in state_of(pod)["state"]["waiting"]["message"]
    assert pod["status"]["phase"] == "Pending"


async def test_a_stand_in_says_so_in_an_event_and_in_the_first_line_of_every_log(machine: TestMachine) -> None:
    recipe = machine.data / "images" / "small" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("names: [example.com/suite:v1]\nstands-for: a small program for a suite\n")
    script = "[ -e /tmp/again ] || { touch /tmp/again; exit 1; }; echo out; sleep 600"
    await machine.run(script, name="suite", policy="OnFailure", container={"image": "example.com/suite:v1"})
    sentence = "image example.com/suite:v1 here is a stand-in: a small program for a suite"
    await machine.until("suite", lambda pod: is_ready(pod) and state_of(pod)["restartCount"] == 1)
    await machine.printed("suite", "out\n")
    lines = (await machine.log("suite")).splitlines()
    assert lines[0] == f"note: {sentence}"
    assert await machine.log("suite", stream="Stdout") == "out\n", "nothing is added to what the program prints"
    assert await machine.exec("suite", "echo", "answer") == (0, "answer\n"), "nor to what exec runs"

    async def shown() -> list[Object]:
        events = (await machine.client.list(EVENTS, "default")).items
        return [event for event in events if event["reason"] == "StandInImage"]

    (event,) = await eventually(shown)
    assert (event["type"], event["message"]) == ("Normal", f"container main: {sentence}")
    assert event["involvedObject"]["name"] == "suite"


async def test_an_image_that_must_be_made_is_pulled_before_the_container_is_created(machine: TestMachine) -> None:
    recipe = machine.data / "images" / "small" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("names: [example.com/made:v1]\nbase: busybox\nfiles: {/app/hello: hello}\n")
    (recipe.parent / "hello").write_text("hello")
    await machine.run("true", name="made", container={"image": "example.com/made:v1"})
    await machine.phase("made", "Succeeded")
    steps = ["Pulling", "Pulled", "Created", "Started"]
    await eventually(lambda: _reasons(machine, "made"), steps)


@contextlib.contextmanager
def held_back(wheel: Path) -> Iterator[tuple[str, threading.Event]]:
    """A package index on this machine with one wheel, sent only after the event is set."""
    release = threading.Event()
    name = wheel.name.partition("-")[0]

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".whl"):
                release.wait(PATIENCE)
                body = wheel.read_bytes()
            else:
                body = f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode()
            self.send_response(200 if name in self.path else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the installer may be gone
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's own output is what counts."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple", release
        finally:
            release.set()
            server.shutdown()
            thread.join()


async def test_while_an_image_is_built_the_pod_says_what_is_installed_and_how_far_it_is(
    machine: TestMachine, tmp_path: Path
) -> None:
    recipe = machine.data / "images" / "slow" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    with held_back(write_wheel(tmp_path, "slowly")) as (index, release):
        body = {"names": ["example.com/slow:v1"], "pip": ["slowly"], "pip-options": ["--no-cache-dir", "-i", index]}
        recipe.write_text(json.dumps(body))
        await machine.run("true", name="slow", container={"image": "example.com/slow:v1"})
        pod = await machine.until("slow", lambda pod: "so far" in waiting_message(pod))
        assert waiting_reason(pod) == "ContainerCreating"
        assert waiting_message(pod).startswith('image "example.com/slow:v1": installing slowly: ')
        pulling = ("Normal", "Pulling", 'Pulling image "example.com/slow:v1": installing slowly')
        await eventually(lambda: _pulls(machine, "slow"), [pulling], what="a build on its way is no warning")
        release.set()
        await machine.phase("slow", "Succeeded")


def waiting_message(pod: Object) -> str:
    return str((state_of(pod).get("state", {}).get("waiting") or {}).get("message", ""))


async def _pulls(machine: TestMachine, name: str) -> list[tuple[str, str, str]]:
    return [event for event in await machine.events_of(name) if event[1] != "Scheduled"]


async def _reasons(machine: TestMachine, name: str) -> list[str]:
    return [reason for _, reason, _ in await machine.events_of(name)]
