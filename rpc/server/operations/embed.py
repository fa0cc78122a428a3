#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Embed the page of the operations listener.

    embed.py PAGE.html OUT.c

The page has one style and one script, inside of it; their hashes make the policy by which a browser
runs these two and nothing else. What would load anything from elsewhere is refused here.
"""

import base64
import hashlib
import pathlib
import re
import sys

LINE_BYTES = 20
FOREIGN = re.compile(r"""\b(?:src|href)\s*=\s*(?!["']data:,["'])|\bon[a-z]+\s*=\s*["']|\bstyle\s*=\s*["']""")


def only(pattern, text, what):
    found = re.findall(pattern, text, re.DOTALL)
    if len(found) != 1:
        sys.exit(f"the page has {len(found)} elements {what}, and may have one")
    return found[0]


def hash_of(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def c_array(data):
    lines = (data[at:at + LINE_BYTES] for at in range(0, len(data), LINE_BYTES))
    return "\n".join("    " + " ".join(f"{byte}," for byte in line) for line in lines)


def main():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    style = only(r"<style>(.*?)</style>", page, "style")
    script = only(r"<script>(.*?)</script>", page, "script")
    markup = page.replace(script, "").replace(style, "")
    foreign = FOREIGN.search(markup) or re.search(r"url\(|@import", style)
    if foreign:
        sys.exit(f"the page refers to something outside of it, or has code in its markup: {foreign[0]}")
    policy = "; ".join((
        "default-src 'none'", f"script-src 'sha256-{hash_of(script)}'", f"style-src 'sha256-{hash_of(style)}'",
        "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"))
    data = page.encode()
    pathlib.Path(sys.argv[2]).write_text(
        "/* Made by embed.py from page.html. */\n"
        '#include "rpc/server/operations/page.h"\n\n'
        f'const char bow__operations_page_policy[] = "{policy}";\n'
        f"const size_t bow__operations_page_bytes = {len(data)};\n"
        "const char bow__operations_page[] = {\n" + c_array([b if b < 128 else b - 256 for b in data]) + "\n};\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
