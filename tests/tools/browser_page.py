"""A real browser that is driven (DevTools protocol): pages opened, keys pressed, elements clicked, and what is seen.

`tools.browser` shows what a page became once; here it stays open while the test changes things.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from harness import eventually
from tools import browser

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0")


_NUMBERS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "/": 191, "?": 191}
"""Of keys: by them a browser does what it does itself, such as closing a dialog."""


class PageError(AssertionError):
    pass


class Tab:
    """One page of the browser. `errors` are what its scripts and its policy complained about."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.errors: list[str] = []
        self._reader = asyncio.create_task(self._read())

    async def open(self, url: str) -> None:
        """And wait until it is loaded, hops included."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def js(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    async def until(self, expression: str, expected: Any = bool) -> Any:
        """What the expression gives once it is as expected; a page that is just left or entered gives nothing."""

        async def look() -> Any:
            try:
                return await self.js(expression)
            except PageError:
                return None

        return await eventually(look, expected, what=expression)

    async def text(self, selector: str = "body") -> str:
        found = await self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return str(found)

    async def sees(self, text: str, selector: str = "body") -> None:
        """Waits for a text to be on the page."""

        found = f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"
        await self.until(found, lambda seen: text in (seen or ""))

    async def click(self, selector: str) -> None:
        """As a person does: with the mouse, in the middle of the element."""
        which = json.dumps(selector)
        await self.until(f"!!document.querySelector({which})")
        await self.js(f"document.querySelector({which}).scrollIntoView({{block: 'center'}})")
        box = await self.js(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
                            f"(document.querySelector({which}).getBoundingClientRect())")  # fmt: skip
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            number = _NUMBERS.get(key) or ord(key.upper())
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=number, **text)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=number)

    async def dark(self, on: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def without_scripts(self) -> None:
        await self.call("Emulation.setScriptExecutionDisabled", value=True)

    async def screenshot(self, file: Path) -> Path:
        answer = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        file.write_bytes(base64.b64decode(answer["data"]))
        return file

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return await asyncio.wait_for(answer, 60)

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            body = json.loads(message.data)
            if "id" in body:
                answer = self._answers.pop(body["id"])
                if "error" in body:
                    answer.set_exception(PageError(str(body["error"])))
                else:
                    answer.set_result(body["result"])
            elif body["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(body["params"]["exceptionDetails"].get("exception", {}).get("description")))
            elif body["method"] == "Log.entryAdded" and body["params"]["entry"]["level"] == "error":
                self.errors.append(str(body["params"]["entry"]["text"]))


class Browser:
    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session, self._port = session, port

    @contextlib.asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        async with self._session.put(f"http://127.0.0.1:{self._port}/json/new?about:blank") as answer:
            target = await answer.json()
        tab = Tab(await self._session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0))
        try:
            for domain in ("Page", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            await tab.size(browser.WIDTH, browser.HEIGHT)
            yield tab
        finally:
            await tab.close()
            async with self._session.get(f"http://127.0.0.1:{self._port}/json/close/{target['id']}"):
                pass


@contextlib.asynccontextmanager
async def running(folder: Path, *flags: str) -> AsyncIterator[Browser]:
    """A browser of its own, with no cookies; it ends with the block."""
    program = browser.find()
    assert program is not None, browser.HINT
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        program, *_FLAGS, f"--user-data-dir={profile}", *flags,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        chosen = profile / "DevToolsActivePort"
        await eventually(lambda: chosen.is_file() and len(chosen.read_text().splitlines()) > 1)
        async with aiohttp.ClientSession() as session:
            yield Browser(session, int(chosen.read_text().splitlines()[0]))
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # Debian's program is a script, whose end alone would leave the browser
        await process.wait()
