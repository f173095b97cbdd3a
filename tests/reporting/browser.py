"""A headless Chromium that tests drive by its own protocol (CDP): sizes, media, console, requests, pictures."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*"]
SECONDS = 60.0
COMPLAINTS = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}


class Browser:
    """One page; `complaints` has what its console shows, `requests` the addresses it asked for."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self.complaints: list[Any] = []
        self.requests: list[str] = []
        self.loaded = 0

    def __enter__(self) -> Browser:
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._run(self._connect())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._run(self._close())
        self._process.terminate()
        self._process.wait(SECONDS)
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, SECONDS))

    async def _connect(self) -> None:
        file = self._profile / "DevToolsActivePort"
        while not file.exists() or "\n" not in file.read_text():
            await asyncio.sleep(0.05)
        port = file.read_text().splitlines()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            (page,) = [one for one in await answer.json() if one["type"] == "page"]
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    async def _close(self) -> None:
        await self._socket.close()
        await self._session.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command and wait for its answer."""
        return self._run(self._call(method, parameters))

    async def _call(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive()).data)
            self._note(message)
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") in COMPLAINTS:
            self.complaints.append(message["params"])
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message.get("method") == "Page.loadEventFired":
            self.loaded += 1

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        before, until = self.loaded, time.monotonic() + SECONDS
        self.call("Page.navigate", url=path.as_uri())
        while self.loaded == before and time.monotonic() < until:
            self.evaluate("new Promise(done => setTimeout(done, 30))")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def media(self, scheme: str = "light", media: str = "") -> None:
        """Prefer light or dark, and take screen or paper."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, target: Path) -> None:
        """Take a picture of the whole page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        target.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self) -> bytes:
        """Print the page."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])
