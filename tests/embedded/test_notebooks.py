"""JupyterHub on the embedded platform: real hub, proxy and notebooks, two tenants, the forms of a browser.

One platform serves all tests of this file, in their order: a notebook takes seconds to start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.hub_browser import Browser
from harness import Completed, pdc, until

PASSWORD = "nine green bottles"
START = 300.0
"""Seconds for a hub to start and to see its servers: on two idle cores three, on very busy ones a minute."""
SETTINGS: dict[str, Any] = {
    "singleuser": {"memory": {"guarantee": "64M"}, "cpu": {"guarantee": 0.01}},
    "hub": {"config": {"KubeSpawner": {"poll_interval": 2}}},
    "proxy": {"secretToken": "of another chart"},
}
JOB = """
import paddlecloud as pc
client = pc.connect()
with open("train.py", "w") as file:
    file.write("import paddle; print('trained with', paddle.__version__)")
job = client.jobs.run("train.py", name="from-a-cell")
print(client.namespace, job.wait(timeout=100))
print("".join(str(line) for line in job.logs()))
"""


class Hub:
    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, ""
        self._env = {**os.environ, "KUBECONFIG": str(folder / "data" / "kubeconfig")}

    def pdc(self, *words: str, check: bool = True, timeout: float = 90) -> Completed:
        return pdc(*words, env=self._env, check=check, timeout=timeout)

    def up(self, settings: dict[str, Any]) -> Completed:
        file = self.folder / "settings.json"
        file.write_text(json.dumps(settings))
        done = self.pdc("notebooks", "up", "-f", str(file), timeout=1500)
        self.url = done.stdout.split()[-1]
        return done

    def get(self, *words: str) -> Any:
        return json.loads(self.pdc("get", *words, "-o", "json").stdout)

    def invite(self, name: str, *flags: str) -> str:
        made = json.loads(self.pdc("notebooks", "user", name, *flags, "-o", "json").stdout)
        return str(made["token"])

    def pods(self, tenant: str) -> dict[str, str]:
        """Notebooks there: name → uid of the pod."""
        found = self.get("pods", "-n", tenant, "-l", "component=singleuser-server")["items"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}

    async def signed_in(self, name: str) -> Browser:
        browser = Browser(self.url, name)
        status, said = await browser.sign_in(PASSWORD)
        assert (status, said) == (200, "")
        return browser


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = Hub(tmp_path_factory.mktemp("hub"))
    data = str(running.folder / "data")
    try:
        pdc("up", "--data", data, "--port", "0")
        running.pdc("tenant", "create", "vision", "--owner", "ada")
        running.pdc("tenant", "create", "speech", "--owner", "grace")
        running.pdc("tenant", "add", "speech", "bob", "--role", "view")
        running.pdc("tenant", "create", "full", "--owner", "dave", "--quota", "pods=0")
        done = running.up(SETTINGS)
        assert "proxy means nothing here" in done.stderr
        assert "nobody can sign in yet" in done.stderr
        yield running
    finally:
        pdc("down", "--data", data)


pytestmark = pytest.mark.timeout(1800)
"""The first run on a machine builds two images."""


async def test_a_user_chooses_a_password_and_a_cell_trains_and_reads_the_log(hub: Hub) -> None:
    token = hub.invite("ada")
    async with Browser(hub.url, "ada") as ada:
        status, said = await ada.sign_in(PASSWORD, token="wrong")
        assert (status, "not the one-time token" in said) == (403, True)
        assert await ada.sign_in(PASSWORD, token=token) == (200, "")
        await ada.start()
        printed = await ada.run(JOB)
        assert "vision Completed" in printed
        assert "trained with 3.3" in printed
    async with Browser(hub.url, "ada") as other:
        assert (await other.sign_in("another password", token=token))[0] == 403, "a token is used once"
    assert list(hub.pods("vision")) == ["jupyter-ada"]
    assert hub.get("pvc", "notebook-ada", "-n", "vision")["status"]["phase"] == "Bound"


async def test_a_user_of_another_tenant_gets_no_server_there_and_reads_nothing(hub: Hub) -> None:
    async with Browser(hub.url, "bob") as bob:
        assert await bob.sign_in(PASSWORD, token=hub.invite("bob")) == (200, "")
        status, said = await bob.post("/hub/api/users/bob/server", {"tenant": "vision"})
        assert (status, said["message"]) == (403, "bob is no member of a tenant vision; yours: speech")
        assert (await bob.get("/user/ada/lab"))[0] == 403
        await bob.start()
        look = "import paddlecloud as pc\nclient = pc.connect()\n"
        assert await bob.run(look + "print(client.namespace)") == "speech\n"
        with pytest.raises(AssertionError, match=r"(?i)forbidden"):
            await bob.run(look + "print(client.jobs.list(namespace='vision'))")
        with pytest.raises(AssertionError, match=r"(?i)forbidden"):
            await bob.run("open('train.py', 'w').close()\n" + look + "client.jobs.run('train.py')")
    assert list(hub.pods("vision")) == ["jupyter-ada"]


def test_the_token_of_a_server_is_in_no_pod_that_viewers_read(hub: Hub) -> None:
    (container,) = hub.get("pod", "jupyter-ada", "-n", "vision")["spec"]["containers"]
    tokens = {each["name"]: each for each in container["env"] if each["name"].endswith("API_TOKEN")}
    assert "JUPYTERHUB_API_TOKEN" in tokens
    assert not any("value" in each for each in tokens.values())
    name = tokens["JUPYTERHUB_API_TOKEN"]["valueFrom"]["secretKeyRef"]["name"]
    owner = hub.get("secret", name, "-n", "vision")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == hub.pods("vision")["jupyter-ada"], "it goes with the pod"


async def test_people_without_a_tenant_a_token_that_ended_and_a_full_quota_are_refused_with_the_reason(
    hub: Hub,
) -> None:
    token = hub.invite("eve", "--ends-in", "1ms")
    async with Browser(hub.url, "eve") as eve:
        status, said = await eve.sign_in(PASSWORD, token=token)
        assert (status, "has ended" in said) == (403, True)
        assert await eve.sign_in(PASSWORD, token=hub.invite("eve")) == (200, "")
        status, _, page = await eve.get("/hub/spawn")
        assert (status, "no tenant has eve as a member yet" in page) == (403, True)
    async with Browser(hub.url, "dave") as dave:
        assert await dave.sign_in(PASSWORD, token=hub.invite("dave")) == (200, "")
        status, said = await dave.post("/hub/api/users/dave/server")
        assert "exceeded quota: kf-resource-quota" in said["message"]
    assert hub.pods("full") == {}


async def test_wrong_tries_are_slowed_down_for_their_name_alone(hub: Hub) -> None:
    async with Browser(hub.url, "mallory") as mallory:
        tries = [await mallory.sign_in("a guess, the first") for _ in range(4)]
    assert [status for status, _ in tries] == [403, 403, 403, 429]
    assert tries[3][1].startswith("Too many wrong tries for this name.")
    async with await hub.signed_in("ada"):
        pass


async def test_who_loses_the_role_loses_the_notebook_and_who_is_removed_is_signed_out(hub: Hub) -> None:
    async with await hub.signed_in("bob") as bob:
        assert list(hub.pods("speech")) == ["jupyter-bob"]
        hub.pdc("tenant", "drop", "speech", "bob")
        until(lambda: hub.pods("speech"), {}, timeout=START)
    hub.pdc("notebooks", "user", "bob", "--rm")
    async with Browser(hub.url, "bob") as bob:
        assert await bob.sign_in(PASSWORD) == (403, "Invalid username or password")


async def test_a_kernel_outlives_the_hub_which_finds_it_again(hub: Hub) -> None:
    async with await hub.signed_in("ada") as ada:
        await ada.start()
        await ada.run("kept = 41")
        before = hub.pods("vision")
        hub.pdc("delete", "pod", "-n", "jhub", "-l", "component=hub", "--grace-period", "0", "-y")
        assert await ada.run("print(kept + 1)") == "42\n", "the proxy leads there without the hub"
        until(lambda: json.loads(hub.pdc("notebooks", "status", "-o", "json").stdout)["ready"], timeout=START)
        assert (await ada.get("/hub/home"))[0] == 200, "who was signed in still is"
        assert await ada.run("print(kept)") == "41\n"
        assert hub.pods("vision") == before


async def test_an_idle_notebook_is_culled_and_comes_back_with_its_files(hub: Hub) -> None:
    hub.up({**SETTINGS, "cull": {"timeout": 2, "every": 1}})
    until(lambda: hub.pods("vision"), {}, timeout=START)
    hub.up(SETTINGS)
    async with await hub.signed_in("ada") as ada:
        await ada.start()
        assert "trained with" in await ada.run("print(open('train.py').read())")


def test_down_ends_notebooks_and_keeps_their_files(hub: Hub) -> None:
    hub.pdc("notebooks", "down", "-y")
    until(lambda: hub.pods("vision"), {})
    assert hub.get("pvc", "notebook-ada", "-n", "vision")["status"]["phase"] == "Bound"
    assert hub.pdc("notebooks", "status", check=False).returncode == 3
