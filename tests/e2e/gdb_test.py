#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""tools/gdb/bowline-gdb.py on a live process and on its core file.

    gdb_test.py OPERATIONS_SERVER SCRIPT
"""

import re
import shutil
import subprocess
import sys
import tempfile

import operations_world

WANTED = (
    r"^loop bow-server-0: thread \d+ .* channels",
    r"^loop load: ",
    r"connection from 127\.0\.0\.1:\d+ \(native\): \d+ streams",
    r"connection to 127\.0\.0\.1:\d+ \(native\): \d+ streams",
    r"call /calls\.Echo/Hold with 127\.0\.0\.1:\d+: in the handler, for \d+\.\d+ s, \d+\.\d+ s left",
    r"call /calls\.Echo/Later with 127\.0\.0\.1:\d+: waiting for a thread, for ",
    r"stream /calls\.Echo/Stream with 127\.0\.0\.1:\d+: in the handler, for .*, [1-9]\d* bytes wait",
    r"call /calls\.Echo/Hold to 127\.0\.0\.1:\d+: waiting for the server, for ",
    r"call /calls\.Echo/Say without a connection: waiting for a connection or a stream, for ",
)


def gdb(*arguments, script):
    command = ["gdb", "-nx", "-batch", *arguments, "-x", script, "-ex", "bowline"]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400,
                          check=False).stdout


def check(where, shown):
    for pattern in WANTED:
        assert re.search(pattern, shown, re.MULTILINE), f"{where}: nothing like {pattern} in\n{shown}"


def main():
    program, script = sys.argv[1:]
    if shutil.which("gdb") is None:
        print("skipped: gdb is not there")
        sys.exit(77)
    with operations_world.server(program) as server, tempfile.TemporaryDirectory() as folder:
        server.until("calls", lambda: "waiting for a thread" in server.get("/debug/calls"))
        pid = str(server.process.pid)
        live = gdb("-p", pid, script=script)
        if "the library has no debug information" in live:
            print("skipped: the library was built without its types (-g1)")
            sys.exit(77)
        check("live", live)
        subprocess.run(["gdb", "-nx", "-batch", "-p", pid, "-ex", f"generate-core-file {folder}/core"],
                       capture_output=True, timeout=400, check=True)
        check("core", gdb(program, f"{folder}/core", script=script))
        # It goes on as if nothing had been.
        assert server.get("/livez") == "ok\n"
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
