#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page of the web example in a browser, and pages of other origins.

    web.py WEB_SERVER [FOLDER FOR PICTURES]

Exits with 77 when there is no chromium.
"""
import http.server
import pathlib
import shutil
import sys
import threading

import browser
import example

PICTURES = (("phone", 390, 1000, "light"), ("desktop", 1280, 800, "light"),
            ("phone-dark", 390, 1000, "dark"), ("desktop-dark", 1280, 800, "dark"))
# As a page elsewhere would call: its answer, or that the browser did not give it.
CALL = """fetch("http://127.0.0.1:%d/demo.Launch/Greet", {method: "POST", body: '{"name":"Ada"}',
    headers: {"content-type": "application/json", "x-of-mine": "1"}})
    .then((response) => response.text(), (error) => error.name)"""


def text(page, name):
    return page.run(f'document.getElementById("{name}").textContent')


def set_value(page, name, value):
    page.run(f'void (document.getElementById("{name}").value = "{value}")')


def click(page, selector):
    page.run(f"document.querySelector('{selector}').click()")


def look_at(server, page, protocol, start):
    """All that the page does, by one protocol."""
    click(page, f"[value={protocol}]")
    set_value(page, "name", "Zoë")
    click(page, "#greet button")
    page.until('document.getElementById("greet-said").textContent')
    assert (text(page, "greeting"), text(page, "greet-said")) == ("Hello, Zoë", "ok"), text(page, "greet-said")

    click(page, "#nobody")
    page.until('document.getElementById("greet-said").textContent.includes(":")')
    assert text(page, "greet-said") == "invalid_argument: nobody can be greeted without a name"

    # Each number is seen before the stream has ended.
    seen = """new Promise((resolve) => {
        const seen = [];
        new MutationObserver(() => {
            seen.push(document.getElementById("count").textContent);
            if (seen.at(-1) === "0") { resolve(seen.filter((n) => n !== "").join(" ")); }
        }).observe(document.getElementById("count"), {childList: true});
        document.getElementById("start").click();
    })"""
    set_value(page, "from", "5")
    set_value(page, "interval", "20")
    assert page.run(seen) == "5 4 3 2 1 0"
    page.until('document.getElementById("count-said").textContent === "ok"')

    # A stream that would last for hours ends at the server when it is stopped here.
    set_value(page, "from", str(start))
    set_value(page, "interval", "10000")
    click(page, "#start")
    page.until(f'document.getElementById("count").textContent === "{start}"')
    click(page, "#stop")
    page.until('document.getElementById("count-said").textContent === "canceled"')
    # Over HTTP/1.1 that is the end of its connection.
    server.wait_line(f"^a countdown ended before {start - 1}: CANCELLED$")

    set_value(page, "from", "1001")
    click(page, "#start")
    page.until('document.getElementById("count-said").textContent.includes(":")')
    assert text(page, "count-said").startswith("out_of_range: a countdown is from at most 1000"), text(page, "count-said")


class Elsewhere(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><title>elsewhere</title>")

    def log_message(self, *_):
        pass


def serve_elsewhere():
    """A page of another origin; returns it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def port_of(server):
    return int(server.wait_line(r"^listening on port (\d+)$")[1])


def take_pictures(page, folder):
    set_value(page, "from", "10")
    set_value(page, "interval", "500")
    click(page, "#greet button")
    click(page, "#start")
    page.until('document.getElementById("count").textContent === "7"')
    for name, width, height, scheme in PICTURES:
        page.picture(folder / f"{name}.png", width, height, scheme)


def main():
    chromium = shutil.which("chromium")
    if chromium is None:
        print("skipped: chromium is not there")
        return 77
    elsewhere, origin = serve_elsewhere()
    with example.program(sys.argv[1], "127.0.0.1:0") as own, \
            example.program(sys.argv[1], "127.0.0.1:0", origin) as allowing, browser.page(chromium) as page:
        page.go(f"http://127.0.0.1:{port_of(own)}/")
        look_at(own, page, "connect", 1000)
        look_at(own, page, "grpc-web", 900)
        assert not [words for words in page.complaints if "400" not in words], page.complaints
        if len(sys.argv) > 2:
            take_pictures(page, pathlib.Path(sys.argv[2]))
        page.go(origin)
        assert page.run(CALL % port_of(own)) == "TypeError"
        assert page.run(CALL % port_of(allowing)) == '{"message":"Hello, Ada"}'
    elsewhere.shutdown()
    print("2 protocols, 2 origins: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
