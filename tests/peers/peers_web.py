#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Connect's client for Node, gRPC-Web's of pages, and buf curl call the service of tests/web.

Usage: peers_web.py node|buf WEB_SERVER FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys

from peers_build import HERE, Missing, need, npm
from peers_run import Process

PROTOS = HERE.parent / "web"


def node(port, folder):
    need("protoc")
    folder.mkdir(parents=True, exist_ok=True)
    descriptors = folder / "web.bin"
    subprocess.run(["protoc", "-I", PROTOS, f"--descriptor_set_out={descriptors}", "web.proto"],
                   check=True, timeout=60)
    env = {**os.environ, "NODE_MODULES": str(npm(folder, "web"))}
    return subprocess.run(["node", HERE / "web/web.mjs", str(port), descriptors], env=env, check=False,
                          timeout=600).returncode


def buf(port, folder):
    folder = folder.parent / "buf"
    program = npm(folder, "buf") / ".bin/buf"
    failed = passed = 0
    for protocol in ("connect", "grpcweb"):
        for version in ([], ["--http2-prior-knowledge"]):
            for method, data, wanted in (
                    ("Say", {"name": "Ada"}, [{"text": "Hello, Ada"}]),
                    ("Look", {"name": "Ada"}, [{"text": "Hello, Ada"}]),
                    ("Pour", {"count": 2}, [{"text": "Hello, "}, {"text": "Hello, ", "number": 1}]),
            ):
                done = subprocess.run(
                    [program, "curl", "--protocol", protocol, *version, "--schema", PROTOS, "-d",
                     json.dumps(data), f"http://127.0.0.1:{port}/web.Shop/{method}"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False, timeout=60,
                    env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)})
                found = "".join(done.stdout.split()).replace("}{", "}\n{").splitlines()
                found = [json.loads(line.replace("Hello,", "Hello, ")) for line in found]
                if found == wanted:
                    passed += 1
                else:
                    failed += 1
                    print(f"buf curl, {protocol} {version} {method}: {found} instead of {wanted}")
    print(f"{passed} passed, {failed} failed")
    return failed


def main():
    kind, server, folder = sys.argv[1:]
    try:
        serving = Process([server, "127.0.0.1:0"])
        rc = {"node": node, "buf": buf}[kind](serving.line(), pathlib.Path(folder) / "web")
    except Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    serving.child.terminate()
    return rc != 0 or serving.child.wait(timeout=60) != 0


if __name__ == "__main__":
    sys.exit(main())
