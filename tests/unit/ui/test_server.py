"""The server over HTTP: who gets in, under which name, with which headers, and which forms it accepts."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from html import unescape
from typing import NamedTuple

import aiohttp
import pytest

from harness import eventually
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import MODELS, PADDLEJOBS, SERVICEACCOUNTS, resource_of
from paddlecloud.kube.server import request_limits
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.ui import action_pages, actions, forms, server
from paddlecloud.ui.asked import Missing
from paddlecloud.ui.running import LOOPBACK, Dashboard, host_of, listen, new_label
from paddlecloud.ui.server import COOKIE, MOST_STREAMS
from paddlecloud.ui.sessions import MOST, Identity
from unit.ui import hostile
from unit.ui.pages.objects import model, model_version
from unit.ui.world import stored


class Site(NamedTuple):
    """The dashboard as a browser reaches it; `host` is what it sends as its name."""

    url: str
    host: str
    token: str
    http: aiohttp.ClientSession
    dashboard: Dashboard

    async def get(self, path: str, cookie: str = "", **headers: str) -> aiohttp.ClientResponse:
        return await self._send("GET", path, cookie, headers)

    async def post(
        self, path: str, cookie: str = "", data: dict[str, str] | None = None, **headers: str
    ) -> aiohttp.ClientResponse:
        return await self._send("POST", path, cookie, headers, data)

    async def _send(
        self, method: str, path: str, cookie: str, headers: dict[str, str], data: dict[str, str] | None = None
    ) -> aiohttp.ClientResponse:
        sent = {"Host": self.host, **({"Cookie": f"{COOKIE}={cookie}"} if cookie else {}), **headers}
        answer = await self.http.request(method, self.url + path, headers=sent, data=data, allow_redirects=False)
        await answer.read()
        return answer

    async def signed_in(self) -> str:
        """A cookie of the owner."""
        identity = await self.dashboard.own_identity()
        answer = await self.get(f"/?code={self.dashboard.server.sessions.new_code(identity)}")
        return answer.cookies[COOKIE].value


@pytest.fixture
async def site(platform: ControlPlane) -> AsyncIterator[Site]:
    token = (platform.data / "pki" / "admin.token").read_text().strip()
    source = Static(Credential(authorization=f"Bearer {token}"))
    config = Config(platform.url, ca=platform.certs.ca_cert.read_bytes(), source=source)
    label, listening = new_label(), listen()
    port = listening.getsockname()[1]
    dashboard = Dashboard(config, label=label, feed_as="system:serviceaccount:kube-system:dashboard")
    await dashboard.start(listening)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield Site(f"http://{LOOPBACK}:{port}", host_of(label, port), token, http, dashboard)
    await dashboard.stop()


async def test_a_code_opens_one_session_and_leaves_the_address(site: Site) -> None:
    code = site.dashboard.server.sessions.new_code(await site.dashboard.own_identity())
    answer = await site.get(f"/jobs?code={code}&status=Failed")
    cookie = answer.cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert code not in await answer.text()
    assert "url=/jobs?status=Failed" in await answer.text()
    assert (await site.get("/", cookie.value)).status == 200
    assert (await site.get(f"/?code={code}")).status == 401


async def test_without_a_cookie_there_is_nothing(site: Site) -> None:
    for path in ("/", "/jobs", "/jobs/default/words", "/-/live?path=/", "/-/logs?namespace=default&name=words"):
        assert (await site.get(path)).status == 401
        assert (await site.get(path, "made-up")).status == 401


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "pdc-0.localhost:{port}", "evil.example"])
async def test_it_answers_under_its_own_name_alone(site: Site, host: str) -> None:
    cookie = await site.signed_in()
    port = site.host.rpartition(":")[2]
    answer = await site.get("/", cookie, Host=host.format(port=port))
    assert answer.status == 421
    assert site.host not in await answer.text()


async def test_every_answer_has_the_policy(site: Site) -> None:
    cookie = await site.signed_in()
    for path in ("/", "/jobs", "/nothing", "/-/static/page.js", "/-/sign-in"):
        answer = await site.get(path, cookie)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_a_token_signs_in_and_a_wrong_one_does_not(site: Site) -> None:
    good = await site.post("/-/sign-in", data={"token": site.token, "back": "/jobs"})
    assert (good.status, good.headers["Location"]) == (303, "/jobs")
    assert (await site.get("/jobs", good.cookies[COOKIE].value)).status == 200
    bad = await site.post("/-/sign-in", data={"token": "made-up"})
    assert bad.status == 401
    assert COOKIE not in bad.cookies
    for scheme in ("Bearer made-up", "Basic eDp5", ""):
        assert (await site.post("/-/codes", Authorization=scheme)).status == 401
    code = (await (await site.post("/-/codes", Authorization=f"Bearer {site.token}")).json())["code"]
    assert COOKIE in (await site.get(f"/?code={code}")).cookies


@pytest.mark.parametrize(
    "back",
    [
        "/\t/evil.example",
        "/\n/evil.example",
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
    ],
)
async def test_nobody_is_sent_to_another_site(site: Site, back: str) -> None:
    answer = await site.post("/-/preferences", data={"language": "zh", "back": back})
    assert answer.headers["Location"] == "/"


async def test_a_form_without_the_secret_of_its_session_changes_nothing(site: Site, admin: Client) -> None:
    await stored(admin, hostile.job())
    cookie, other = await site.signed_in(), await site.signed_in()
    theirs = _secret(await (await site.get("/jobs/default/words/do/suspend", other)).text())
    for data in ({}, {"secret": ""}, {"secret": theirs}):
        assert (await site.post("/jobs/default/words/do/suspend", cookie, data)).status == 403
        assert (await site.post("/-/sign-out", cookie, data)).status == 403
    job = await admin.get(PADDLEJOBS, "words", "default")
    assert not job["spec"].get("suspend")
    assert (await site.get("/", cookie)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "null"},
        {"Origin": "http://127.0.0.1:8000"},
    ],
)
async def test_no_form_of_another_site_is_taken(site: Site, headers: dict[str, str]) -> None:
    """A program on another port of the name is another site, too; nor is anybody signed in by it as somebody else."""
    cookie = await site.signed_in()
    secret = _secret(await (await site.get("/", cookie)).text())
    assert (await site.post("/-/sign-out", cookie, {"secret": secret}, **headers)).status == 403
    answer = await site.post("/-/sign-in", data={"token": site.token}, **headers)
    assert (answer.status, COOKIE in answer.cookies) == (403, False)
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}
    assert (await site.post("/-/sign-in", data={"token": site.token}, **own)).status == 303


async def test_a_code_behind_a_link_of_another_site_says_first_whose_it_is(site: Site) -> None:
    """It may be that of somebody who would like others to work under another name."""
    code = site.dashboard.server.sessions.new_code(await site.dashboard.own_identity())
    answer = await site.get(f"/jobs?code={code}", **{"Sec-Fetch-Site": "cross-site"})
    assert COOKIE not in answer.cookies
    text = await answer.text()
    assert "Sign in as " in text
    assert f'name="code" value="{code}"' in text
    assert COOKIE in (await site.get(f"/jobs?code={code}", **{"Sec-Fetch-Site": "same-origin"})).cookies


async def test_bodies_that_never_end_keep_nobody_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_UNFINISHED", 2)
    head = f"POST /-/sign-in HTTP/1.1\r\nHost: {site.host}\r\nContent-Length: 100\r\n\r\ntoken="
    opened = [await asyncio.open_connection(LOOPBACK, int(site.url.rpartition(":")[2])) for _ in range(3)]
    for _, writer in opened:
        writer.write(head.encode())
    first = await asyncio.wait_for(opened[0][0].readline(), 30)
    assert first.split()[1] == b"400"
    assert (await site.post("/-/sign-in", data={"token": site.token})).status == 303
    for _, writer in opened:
        writer.close()


async def test_a_compressed_form_is_not_inflated(site: Site) -> None:
    body = gzip.compress(f"token={site.token}".encode())
    sent = {"Host": site.host, "Content-Encoding": "gzip"}
    async with site.http.post(f"{site.url}/-/sign-in", headers=sent, data=body) as answer:
        assert answer.status == 400


async def test_a_tenant_with_very_many_actions_is_refused_more(
    site: Site, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = asyncio.Semaphore(0)

    async def run(*_: object) -> actions.Outcome:
        await running.acquire()
        return actions.Outcome(0, "")

    monkeypatch.setattr(actions, "run", run)
    monkeypatch.setattr(request_limits, "MOST_WAITING", 0)
    await stored(admin, hostile.job())
    cookie = await site.signed_in()
    secret = {"secret": _secret(await (await site.get("/", cookie)).text())}
    path = "/jobs/default/words/do/suspend"
    waiting = [asyncio.ensure_future(site.post(path, cookie, secret)) for _ in range(action_pages.ACTIONS_AT_ONCE + 1)]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert [one.result().status for one in done] == [429]
    for _ in range(action_pages.ACTIONS_AT_ONCE):
        running.release()
    assert sorted([(await one).status for one in waiting]) == [200, 200, 429]


async def test_a_tenant_with_very_many_pages_waits_for_its_own(
    site: Site, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = asyncio.Semaphore(0)

    async def load(_: object) -> object:
        await drawn.acquire()
        raise Missing

    known = server.page_of
    slow = server.PAGES[0]._replace(load=load)
    monkeypatch.setattr(server, "page_of", lambda path: (slow, {}) if path == "/slow" else known(path))
    monkeypatch.setattr(request_limits, "MOST_WAITING", 0)
    cookie = await site.signed_in()
    waiting = [asyncio.ensure_future(site.get("/slow", cookie)) for _ in range(server.PAGES_AT_ONCE + 1)]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert [one.result().status for one in done] == [429]
    token = await _token(admin, "reader")
    other = (await site.post("/-/sign-in", data={"token": token})).cookies[COOKIE].value
    assert (await site.get("/jobs", other)).status == 200
    for _ in range(server.PAGES_AT_ONCE):
        drawn.release()
    assert sorted([(await one).status for one in waiting]) == [*[404] * server.PAGES_AT_ONCE, 429]


def test_the_command_of_another_viewer_gets_nothing_that_lends_rights() -> None:
    own = {"PATH": "/bin", "LC_ALL": "C", "PADDLECLOUD_HOME": "/data", "PADDLECLOUD_MODEL_HUB": "http://hub"}
    lent = {"PADDLECLOUD_MODEL_HUB_TOKEN": "t", "PADDLECLOUD_MODEL_STORE": "s3://b", "AWS_SECRET_ACCESS_KEY": "k"}
    lent |= {"KUBECONFIG": "/root/.kube/config", "MINIO_ROOT_PASSWORD": "p"}
    anyone = Identity("ada", Config("https://127.0.0.1:1"), Client(HttpTransport(Config("https://127.0.0.1:1"))))
    assert actions.environment(anyone, {**own, **lent}) == own
    assert actions.environment(anyone._replace(flags=("--context", "own")), {**own, **lent}) == {**own, **lent}


async def test_what_a_viewer_types_in_is_one_line_of_the_command(site: Site, admin: Client) -> None:
    await stored(admin, model())
    cookie = await site.signed_in()
    secret = _secret(await (await site.get("/", cookie)).text())
    chosen = {"version": "1", "alias": "production", "reason": "a\0b\n2026 ada: pdc delete all", "secret": secret}
    answer = await site.post("/models/default/words/do/promote", cookie, chosen)
    assert answer.status in (200, 409)
    assert "a b 2026 ada: pdc delete all" in unescape(await answer.text())


@pytest.mark.parametrize("path", ["http://[", "//[", "%00", "/jobs/%00/x"])
async def test_live_parts_of_no_page_are_refused(site: Site, path: str) -> None:
    answer = await site.get(f"/-/live?path={path}", await site.signed_in())
    assert answer.status in (200, 404)
    assert b"log has the reason" not in await answer.read()


async def test_an_action_shows_its_command_then_runs_it_with_the_rights_of_the_viewer(
    site: Site, admin: Client, platform: ControlPlane
) -> None:
    await stored(admin, hostile.job())
    cookie = (await site.post("/-/sign-in", data={"token": site.token})).cookies[COOKIE].value
    page = await (await site.get("/jobs/default/words/do/suspend", cookie)).text()
    assert "pdc suspend paddlejob/words -n default" in page
    done = await site.post("/jobs/default/words/do/suspend", cookie, {"secret": _secret(page)})
    assert done.status == 200, await done.text()
    assert (await admin.get(PADDLEJOBS, "words", "default"))["spec"]["suspend"] is True


async def test_what_a_viewer_chooses_is_part_of_the_command_that_is_shown_and_runs(site: Site, admin: Client) -> None:
    await stored(admin, model(), model_version())
    cookie = await site.signed_in()
    page = await (await site.get("/models/default/words/do/promote?version=1&alias=beta&reason=-x --y", cookie)).text()
    command = "pdc model promote words:1 --to=beta '--reason=-x --y' -n default"
    assert command in unescape(page)
    chosen = {"version": "1", "alias": "beta", "reason": "-x --y", "other": "--kubeconfig"}
    done = await site.post("/models/default/words/do/promote", cookie, {"secret": _secret(page), **chosen})
    answer = await done.text()
    assert done.status == 200, answer
    assert command in unescape(answer)
    assert "/models/default/words/do/rollback?alias=beta" in answer
    changed = (await admin.get(MODELS, "words", "default"))["spec"]
    assert (changed["aliases"]["beta"], changed["moves"][-1]["reason"]) == ("1", "-x --y")


async def test_a_viewer_without_the_right_is_refused_by_the_command(
    site: Site, admin: Client, platform: ControlPlane
) -> None:
    """A reader sees the job and its buttons; the API server refuses what they do."""
    job = hostile.job()
    job["metadata"]["namespace"] = "team-a"
    await stored(admin, job)
    cookie = (await site.post("/-/sign-in", data={"token": await _token(admin, "reader")})).cookies[COOKIE].value
    page = await (await site.get("/jobs/team-a/words/do/suspend", cookie)).text()
    done = await site.post("/jobs/team-a/words/do/suspend", cookie, {"secret": _secret(page)})
    assert done.status == 409
    assert "may not" in await done.text() or "forbidden" in await done.text()
    assert not (await admin.get(PADDLEJOBS, "words", "team-a"))["spec"].get("suspend")


async def test_signing_out_ends_the_session(site: Site) -> None:
    cookie = await site.signed_in()
    secret = _secret(await (await site.get("/", cookie)).text())
    assert (await site.post("/-/sign-out", cookie, {"secret": secret})).status == 303
    assert (await site.get("/", cookie)).status == 401


async def test_open_streams_end_with_their_session(site: Site, admin: Client) -> None:
    """Of logs, too, which are read with the viewer's own credentials and would go on."""
    await stored(admin, hostile.job())
    cookie = await site.signed_in()
    secret = _secret(await (await site.get("/", cookie)).text())
    sent = {"Host": site.host, "Cookie": f"{COOKIE}={cookie}"}
    async with site.http.get(f"{site.url}/-/logs?namespace=default&name=words", headers=sent) as stream:
        assert (await site.post("/-/sign-out", cookie, {"secret": secret})).status == 303
        assert '"status":401' in (await asyncio.wait_for(stream.read(), 30)).decode()


async def test_nobody_signs_others_out_by_signing_in_very_often(site: Site, admin: Client) -> None:
    cookie = await site.signed_in()
    code = site.dashboard.server.sessions.new_code(await site.dashboard.own_identity())
    tokens = [await _token(admin, f"reader-{number}") for number in range(2)]
    first = (await site.post("/-/sign-in", data={"token": tokens[0]})).cookies[COOKIE].value
    sessions = site.dashboard.server.sessions
    identities = [await site.dashboard._by_token(token) for token in tokens]
    for number in range(MOST + 1):  # accounts of one namespace are one tenant
        sessions.open(identities[number % 2])
        sessions.new_code(identities[number % 2])
    assert (await site.get("/", cookie)).status == 200
    assert (await site.get("/", first)).status == 401
    assert COOKIE in (await site.get(f"/?code={code}")).cookies


async def test_a_tenant_has_so_many_streams_in_all_of_its_sessions(
    site: Site, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
    token = await _token(admin, "reader")
    cookies = [(await site.post("/-/sign-in", data={"token": token})).cookies[COOKIE].value for _ in range(2)]
    other = await site.signed_in()
    sent = {"Host": site.host, "Cookie": f"{COOKIE}={cookies[0]}"}
    async with site.http.get(f"{site.url}/-/live?path=/jobs", headers=sent) as stream:
        await _event(stream)
        assert (await site.get("/-/live?path=/jobs", cookies[1])).status == 429
        async with site.http.get(
            f"{site.url}/-/live?path=/jobs", headers={**sent, "Cookie": f"{COOKIE}={other}"}
        ) as its:
            assert "live_list" in await _event(its)


async def test_who_comes_from_another_site_is_let_in_by_a_page_of_this_one(site: Site) -> None:
    """The browser leaves the strict cookie out of a visit that another site began."""
    answer = await site.get("/jobs?status=Failed", **{"Sec-Fetch-Site": "cross-site"})
    assert (answer.status, COOKIE in answer.cookies) == (200, False)
    assert 'content="0;url=/jobs?status=Failed"' in await answer.text()


async def test_live_parts_come_first_whole_then_when_something_changes(site: Site, admin: Client) -> None:
    cookie = await site.signed_in()
    sent = {"Host": site.host, "Cookie": f"{COOKIE}={cookie}"}
    async with site.http.get(f"{site.url}/-/live?path=/jobs", headers=sent) as stream:
        assert stream.content_type == "text/event-stream"
        first = await _event(stream)
        assert "live_list" in first
        await stored(admin, hostile.job("new-one"))
        while "new-one" not in (changed := await _event(stream)):
            pass
        assert "live_list" in changed


async def test_a_hundred_open_pages_cost_the_api_server_one_watch_of_each_kind(site: Site, admin: Client) -> None:
    token = await _token(admin, "reader")
    cookies = [
        await site.signed_in(),
        (await site.post("/-/sign-in", data={"token": token})).cookies[COOKIE].value,
    ]
    async with AsyncExitStack() as opened:
        http = await opened.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))

        async def look(cookie: str, path: str) -> None:
            sent = {"Host": site.host, "Cookie": f"{COOKIE}={cookie}"}
            stream = await opened.enter_async_context(http.get(f"{site.url}/-/live?path={path}", headers=sent))
            await _event(stream)

        for number in range(100):
            await look(cookies[number % 2], ("/", "/jobs")[number // 2 % 2])
        begun = await _watches(admin)
        assert "paddlejobs" in begun
        assert set(begun.values()) == {1}


async def _watches(admin: Client) -> dict[str, int]:
    """Kind → watches that were begun, by the API server's own count."""
    text = (await admin.raw("GET", "/metrics")).body.decode()
    found = re.findall(r'apiserver_request_total{verb="WATCH",[^}]*resource="(\w+)"[^}]*} (\d+)', text)
    return {kind: int(count) for kind, count in found}


async def test_a_stream_ends_with_its_page(site: Site) -> None:
    """Who goes through many pages has not too many open."""
    cookie = await site.signed_in()
    sent = {"Host": site.host, "Cookie": f"{COOKIE}={cookie}"}
    for _ in range(MOST_STREAMS):
        stream = await site.http.get(f"{site.url}/-/live?path=/jobs", headers=sent)
        await _event(stream)
        stream.close()
    await eventually(lambda: site.dashboard.server.streams.total(), 0)
    async with site.http.get(f"{site.url}/-/live?path=/jobs", headers=sent) as stream:
        assert "live_list" in await _event(stream)


async def test_every_control_has_a_name_and_every_page_one_heading_and_a_language(site: Site, admin: Client) -> None:
    await stored(admin, hostile.job())
    cookie = await site.signed_in()
    for path in ("/", "/jobs", "/jobs/default/words", "/jobs/default/words/logs", "/queues", "/nodes", "/-/sign-in"):
        html = await (await site.get(path, cookie)).text()
        assert html.count("<h1>") == 1, path
        assert re.search(r'<html lang="(en|zh)"', html)
        assert all('alt="' in image for image in re.findall(r"<img[^>]*>", html))
        labelled = re.sub(r"<label.*?</label>", "", html, flags=re.DOTALL)
        for control in re.findall(r"<(?:input|select|textarea)\b[^>]*>", labelled):
            assert 'type="hidden"' in control or "aria-label=" in control, control
        for button in re.findall(r"<button[^>]*>(.*?)</button>", html, flags=re.DOTALL):
            assert button.strip(), path


async def _event(stream: aiohttp.ClientResponse) -> str:
    text = b""
    while not text.endswith(b"\n\n"):
        text += await stream.content.readline()
    return text.decode()


def _secret(html: str) -> str:
    found = re.search(r'name="secret" value="([^"]+)"', html)
    assert found, html[:2000]
    return found[1]


async def _token(admin: Client, account: str) -> str:
    """Of an account of team-a that may look, and change nothing."""
    meta = {"name": account, "namespace": "team-a"}
    rbac = "rbac.authorization.k8s.io"
    await admin.create(SERVICEACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", **meta}],
    }
    await admin.create(resource_of(binding), binding)
    path = SERVICEACCOUNTS.path("team-a", account, "token")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.raw("POST", path, body=body)
    return str(json.loads(answer.body)["status"]["token"])
