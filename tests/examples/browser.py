# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Chromium without a window, told what to do by its DevTools protocol over pipes.

Nothing here sleeps: what is waited for is a promise in the page, or an event.
"""
import base64
import contextlib
import json
import os
import subprocess
import tempfile
import threading

PATIENCE_S = 120
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage")


class Page:
    """One page. What its console says against it is in `complaints`."""

    def __init__(self, out, back, profile):
        self.out = out
        self.back = back
        self.n = 0
        self.complaints = []
        self.profile = profile
        self.session = None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self(domain + ".enable")

    def _next(self):
        text = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        said = json.loads(text)
        if said.get("method") == "Log.entryAdded":
            self.complaints.append(said["params"]["entry"]["text"])
        if said.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["params"]["exceptionDetails"]))
        return said

    def __call__(self, command, **parameters):
        self.n += 1
        request = {"id": self.n, "method": command, "params": parameters}
        if self.session is not None:
            request["sessionId"] = self.session
        self.out.write(json.dumps(request).encode() + b"\0")
        self.out.flush()
        while (said := self._next()).get("id") != self.n:
            pass
        assert "error" not in said, f"{command}: {said}"
        return said["result"]

    def go(self, url):
        self("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        done = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, f"{script}: {done['exceptionDetails']}"
        return done["result"].get("value")

    def until(self, condition):
        """Wait until an expression holds, looking at it whenever the page changes."""
        self.run(f"""new Promise((resolve) => {{
            const look = () => {{ if ({condition}) {{ watch.disconnect(); resolve(); }} }};
            const watch = new MutationObserver(look);
            watch.observe(document, {{subtree: true, childList: true, characterData: true, attributes: true}});
            look();
        }})""")

    def picture(self, path, width, height, scheme):
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(self("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def page(browser):
    """A browser with one page; it is ended behind, and after PATIENCE_S in any case."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        to_browser, out = os.pipe()
        back, from_browser = os.pipe()
        # The descriptors 3 and 4 are what it is told by.
        command = 'in=$1 out=$2; shift 2; eval "exec \\"\\$@\\" 3<&$in 4>&$out"'
        process = subprocess.Popen(
            ["/bin/bash", "-c", command, "bash", str(to_browser), str(from_browser), browser, *FLAGS,
             "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        patience = threading.Timer(PATIENCE_S, process.kill)
        patience.start()
        try:
            with open(out, "wb") as writer, open(back, "rb") as reader:
                shown = Page(writer, reader, profile)
                yield shown
                shown.session = None
                shown("Browser.close")
        finally:
            patience.cancel()
            process.kill()
            process.wait()
