"""A browser's part of JupyterHub: forms with their cookies, and the WebSocket of a kernel."""

from __future__ import annotations

import asyncio
import html
import re
import time
import uuid
from types import TracebackType
from typing import Any

import aiohttp

FIELD = re.compile(r'name="_xsrf" value="([^"]+)"')
ERROR = re.compile(r'<p class="login_error">(.*?)</p>', re.DOTALL)


class Browser:
    """One person at one hub."""

    def __init__(self, hub: str, user: str) -> None:
        self.hub, self.user, self.kernel = hub, user, ""
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._session.close()

    async def sign_in(self, password: str, *, token: str = "") -> tuple[int, str]:
        """The status, and what the form says was wrong. With a one-time token the password is a new one."""
        async with self._session.get(f"{self.hub}/hub/login") as page:
            found = FIELD.search(await page.text())
            assert found, "the page has a form"
        new = {"token": token, "new_password": password, "password": ""} if token else {"password": password}
        form = {"username": self.user, "_xsrf": found[1], **new}
        async with self._session.post(f"{self.hub}/hub/login?next=%2Fhub%2Fhome", data=form) as answer:
            said = ERROR.search(await answer.text())
            return answer.status, html.unescape(said[1]) if said else ""

    async def get(self, path: str) -> tuple[int, str, str]:
        """Status, address and text of what a browser ends at."""
        async with self._session.get(f"{self.hub}{path}") as answer:
            return answer.status, answer.url.path, await answer.text()

    async def start(self, *, timeout: float = 300) -> None:
        """The notebook, until its page is there."""
        deadline, path = time.monotonic() + timeout, "/hub/spawn"
        while True:
            status, place, text = await self.get(path)
            if (status, place) == (200, f"/user/{self.user}/lab"):
                return
            assert time.monotonic() < deadline, f"no notebook after {timeout:g} s: {status} at {place}\n{text[-2000:]}"
            await asyncio.sleep(0.5)
            path = f"/user/{self.user}/lab"

    async def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        """With the token against forged requests of the part of the site that is asked."""
        place = "/hub/" if path.startswith("/hub/") else f"/user/{self.user}/"
        tokens = [
            cookie.value for cookie in self._session.cookie_jar if (cookie.key, cookie["path"]) == ("_xsrf", place)
        ]
        headers = {"X-XSRFToken": tokens[0] if tokens else "", "Referer": f"{self.hub}{place}"}
        async with self._session.post(f"{self.hub}{path}", json=body or {}, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def run(self, code: str) -> str:
        """What a cell prints, in the kernel that this browser has; the first one starts it."""
        if not self.kernel:
            status, made = await self.post(f"/user/{self.user}/api/kernels")
            assert status == 201, made
            self.kernel = made["id"]
        address = self.hub.replace("http", "ws", 1)
        channels = f"{address}/user/{self.user}/api/kernels/{self.kernel}/channels"
        async with self._session.ws_connect(channels) as socket:
            number, printed = uuid.uuid4().hex, ""
            header = {"msg_id": number, "msg_type": "execute_request", "username": self.user, "version": "5.3"}
            content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
            message = {"header": {**header, "session": uuid.uuid4().hex}, "parent_header": {}, "metadata": {}}
            await socket.send_json({**message, "content": content, "channel": "shell", "buffers": []})
            while True:
                said = await socket.receive_json(timeout=120)
                if said["parent_header"].get("msg_id") != number:
                    continue
                if said["msg_type"] == "stream":
                    printed += said["content"]["text"]
                elif said["msg_type"] == "error":
                    raise AssertionError("\n".join(said["content"]["traceback"]))
                elif said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
                    return printed  # the reply itself comes on another channel, and may overtake what was printed
