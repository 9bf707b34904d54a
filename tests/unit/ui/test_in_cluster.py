"""The dashboard on a cluster: whose token is taken from whom, and what it may then do."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import aiohttp
import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.resource import PADDLEJOBS, SERVICEACCOUNTS
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.ui.exposure import Exposure
from paddlecloud.ui.in_cluster import ClusterDashboard
from paddlecloud.ui.server import COOKIE
from unit.ui import hostile
from unit.ui.world import stored

HOST = "dashboard.example.com"
TRUSTED = Exposure((HOST,), https=True, proxies=("127.0.0.0/8", "::1/128"))
FEED = ("Impersonate-User", "system:serviceaccount:kube-system:dashboard")


class Site(NamedTuple):
    url: str
    http: aiohttp.ClientSession

    async def ask(
        self, path: str, token: str = "", data: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, str, aiohttp.ClientResponse]:
        sent = {"Host": HOST, **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        method = "GET" if data is None else "POST"
        answer = await self.http.request(method, self.url + path, headers=sent, data=data, allow_redirects=False)
        return answer.status, await answer.text(), answer


Serve = Callable[[Exposure], AbstractAsyncContextManager[Site]]


@pytest.fixture
def serve(platform: ControlPlane) -> Serve:
    token = (platform.data / "pki" / "admin.token").read_text().strip()
    source = Static(Credential(authorization=f"Bearer {token}"))
    config = Config(platform.url, ca=platform.certs.ca_cert.read_bytes(), source=source, headers=(FEED,))

    @asynccontextmanager
    async def running(exposure: Exposure) -> AsyncIterator[Site]:
        dashboard = ClusterDashboard(config, exposure)
        port = await dashboard.start("127.0.0.1", 0)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
            yield Site(f"http://127.0.0.1:{port}", http)
        await dashboard.stop()

    return running


@pytest.fixture
async def token(admin: Client) -> str:
    """Of a member of team-a; there is a job in each team."""
    for team in ("team-a", "team-b"):
        job = hostile.job(f"of-{team}")
        job["metadata"]["namespace"] = team
        await stored(admin, job)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.raw("POST", SERVICEACCOUNTS.path("team-a", "member", "token"), body=body)
    return str(json.loads(answer.body)["status"]["token"])


async def test_a_token_that_a_trusted_proxy_hands_on_is_the_viewer(serve: Serve, token: str) -> None:
    async with serve(TRUSTED) as site:
        status, text, _ = await site.ask("/jobs", token)
        assert (status, "of-team-a" in text, "of-team-b" in text) == (200, True, False)
        assert (await site.ask("/jobs"))[0] == 401, "the next request without it is nobody's"


async def test_the_header_of_anybody_else_means_nothing(serve: Serve, token: str) -> None:
    for proxies in ((), ("10.0.0.0/8",)):
        async with serve(TRUSTED._replace(proxies=proxies)) as site:
            assert (await site.ask("/jobs", token))[0] == 401
            forged = {"X-Forwarded-For": "10.0.0.1", "X-Real-IP": "10.0.0.1", "Forwarded": "for=10.0.0.1"}
            assert (await site.ask("/jobs", token, **forged))[0] == 401


async def test_a_name_without_a_token_is_nobody(serve: Serve, token: str) -> None:
    names = {"X-Forwarded-User": "admin", "X-Remote-User": "admin", "X-Auth-Request-User": "admin"}
    async with serve(TRUSTED) as site:
        assert (await site.ask("/jobs", **names))[0] == 401
        assert "of-team-b" not in (await site.ask("/jobs", token, **{"Impersonate-User": "admin", **names}))[1]


async def test_a_token_that_the_api_server_refuses_is_refused(serve: Serve, token: str) -> None:
    async with serve(TRUSTED) as site:
        status, text, _ = await site.ask("/jobs", "made-up")
        assert (status, "does not accept this token" in text) == (401, True)


async def test_actions_run_with_the_rights_of_the_token(serve: Serve, token: str, admin: Client) -> None:
    async with serve(TRUSTED) as site:
        path = "/jobs/team-a/of-team-a/do/suspend"
        secret = re.findall(r'name="secret" value="([^"]+)"', (await site.ask(path, token))[1])[0]
        assert (await site.ask(path, token, {"secret": "guessed"}))[0] == 403
        assert (await site.ask(path, token, {"secret": secret}, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
        status, text, _ = await site.ask(path, token, {"secret": secret})
        assert (status, "Done" in text) == (200, True), text
        assert (await admin.get(PADDLEJOBS, "of-team-a", "team-a"))["spec"]["suspend"] is True
        assert (await site.ask("/jobs/team-b/of-team-b/do/suspend", token, {"secret": secret}))[0] == 404


async def test_who_pastes_a_token_gets_a_cookie_for_tls_alone(serve: Serve, token: str) -> None:
    for https in (True, False):
        async with serve(Exposure((HOST,), https=https)) as site:
            status, _, answer = await site.ask("/-/sign-in", "", {"token": token, "back": "/jobs"})
            cookie = answer.cookies[COOKIE]
            assert (status, bool(cookie["secure"]), cookie["samesite"]) == (303, https, "Strict")
            text = (await site.ask("/jobs", Cookie=f"{COOKIE}={cookie.value}"))[1]
            assert ("of-team-a" in text, "of-team-b" in text) == (True, False)


async def test_it_answers_under_its_names_alone_and_to_probes(serve: Serve, token: str) -> None:
    async with serve(TRUSTED) as site:
        assert (await site.ask("/jobs", token, Host="evil.example"))[0] == 421
        assert (await site.ask("/-/healthz", Host="10.0.0.7:8480"))[0] == 200


def test_what_is_no_network_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="everywhere"):
        ClusterDashboard(Config("https://127.0.0.1:1"), TRUSTED._replace(proxies=("everywhere",)))
