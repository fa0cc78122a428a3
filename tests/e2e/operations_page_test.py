#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page of the operations listener in a browser: it shows what is called and how often, and breaks
nothing of its own policy.

    operations_page_test.py OPERATIONS_SERVER [FOLDER FOR PICTURES]
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import operations_world

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--enable-logging=stderr", "--v=0")
PICTURES = (("phone", "390,1900", ()), ("desktop", "1280,1150", ()),
            ("phone-dark", "390,1900", ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")),
            ("desktop-dark", "1280,1150", ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")))


def browse(browser, *arguments):
    with tempfile.TemporaryDirectory() as profile:
        # Its clock runs ahead while it waits for nothing else: seconds of polling.
        return subprocess.run([browser, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=8000",
                               *arguments], capture_output=True, text=True, timeout=300, check=True)


def main():
    browser = shutil.which("chromium")
    if browser is None:
        print("skipped: chromium is not there")
        sys.exit(77)
    with operations_world.server(sys.argv[1]) as server:
        server.until("calls", lambda: "waiting for a thread" in server.get("/debug/calls"))
        done = browse(browser, "--dump-dom", server.url + "/")
        assert "Content Security Policy" not in done.stderr, done.stderr
        assert "Uncaught" not in done.stderr, done.stderr
        shown = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", re.sub(
            r"<(script|style)>.*?</\1>", "", done.stdout, flags=re.DOTALL))))
        for words in ("serving", "calls. Echo/Say", "/s", "Slowest calls in flight", "waiting for a thread",
                      "in the handler", "Calls in progress on the server"):
            assert words in shown, f"\"{words}\" is not in\n{shown}"
        assert re.search(r"[1-9][\d.]*( k)?/s", shown), shown
        if len(sys.argv) > 2:
            folder = pathlib.Path(sys.argv[2])
            for name, size, flags in PICTURES:
                browse(browser, *flags, f"--window-size={size}", f"--screenshot={folder / name}.png", server.url + "/")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
