"""Chromium without a window, spoken to over two pipes (the DevTools protocol): no driver and no package needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

#: Quiet, offline, and without what a browser does for people.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
#: Seconds after which an answer does not come any more.
PATIENCE = 60


def binary():
    """The browser of this machine, or None; `apt-get install chromium` brings Debian's."""
    return next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)


class Browser:
    """A browser that is closed at the end of a `with` block."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-browser-")
        read, self.to = os.pipe()
        self.source, write = os.pipe()
        command = [binary(), *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        # The browser reads from descriptor 3 and writes to descriptor 4.
        script = f'exec 8<&{read} 9>&{write}; exec "$@" 3<&8 4>&9'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read), os.close(write)
        self.number, self.rest, self.events = 0, b"", []
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        os.close(self.to), os.close(self.source)
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, method, session=None, **params):
        """Send a command and return its result; what happens meanwhile is kept in `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        os.write(self.to, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def wait(self, method, session):
        """Wait for something to happen."""
        while not any(each.get("method") == method and each.get("sessionId") == session for each in self.events):
            self.events.append(self._next())

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.source], [], [], max(0, end - time.monotonic()))
            found = os.read(self.source, 1 << 20) if ready else b""
            assert found, "the browser does not answer"
            self.rest += found
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def page(self, path, width=1280, height=900, dark=False):
        """Open a file of the disk, or an address."""
        address = path if isinstance(path, str) else Path(path).resolve().as_uri()
        return Page(self, address, width, height, dark)


class Page:
    """One open page."""

    def __init__(self, browser, address, width, height, dark):
        self.browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{room}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.address = address
        self.send("Page.navigate", url=self.address)
        browser.wait("Page.loadEventFired", self.session)

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def seen(self, *methods):
        """What happened on this page."""
        return [
            each["params"]
            for each in self.browser.events
            if each.get("sessionId") == self.session and each.get("method") in methods
        ]

    def __call__(self, script):
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path, whole=True):
        found = self.send(
            "Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self._all()} if whole else {})
        )
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def _all(self):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def pdf(self, width=8.27, height=11.69):
        """The page printed, A4 unless told."""
        found = self.send("Page.printToPDF", paperWidth=width, paperHeight=height, preferCSSPageSize=False)
        return base64.b64decode(found["data"])
