#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tool against other implementations of gRPC: grpcio with reflection, grpc-js without, and etcd. One
that is not installed is said, and is a failure.

usage: tool_peers_test.py TOOL SERVER PROTOC HERE
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import tool
from tool import HERE, PROTOC, Program, Run

TOP = pathlib.Path(HERE).parent.parent
sys.path.insert(0, str(TOP / "tests" / "peers"))
from peers_build import npm  # noqa: E402

NOTE = {"text": "tea", "number": "-7", "tags": ["a"], "counts": {"x": 1}, "data": "AAE="}


@contextlib.contextmanager
def running(*command, env=None):
    if env is not None:
        os.environ.update(env)
    program = Program(*command)
    try:
        yield f"grpc:127.0.0.1:{program.port()}"
    finally:
        program.close()


def all_kinds(target, *options):
    assert json.loads(Run("call", target, "desk.Desk/Echo", json.dumps(NOTE), *options).ok()) == NOTE
    assert json.loads(Run("call", target, "desk.Desk/Sum", '{"number":4}{"number":5}',
                          *options).ok()) == {"number": "9"}
    assert Run("call", target, "desk.Desk/Count", '{"n": 2}', *options).ok() == (
        '{"number":"1"}\n{"number":"2"}\n')
    assert Run("call", target, "desk.Desk/Chat", "-", *options, text='{"text":"a"}\n').ok() == (
        '{"text":"a"}\n')
    Run("call", target, "desk.Desk/Work", '{"failCode": 5}', *options).failed(
        64 + 5, "NOT_FOUND: as was asked")
    told, = Run("bench", target, "desk.Desk/Echo", "-n", "200", "-c", "8", "--json",
                *options).json()
    assert told["statuses"] == {"OK": 200}, told


def test_grpcio_with_reflection():
    reflection = TOP / "rpc" / "services" / "protos" / "grpc" / "reflection" / "v1alpha"
    with tempfile.TemporaryDirectory() as folder:
        text = (reflection / "reflection.proto").read_text(encoding="utf-8")
        kept = text[:text.index("import ")] + text[text.index("};", text.index("option (pb_c")) + 2:]
        pathlib.Path(folder, "reflection.proto").write_text(kept, encoding="utf-8")
        for proto, where in (("desk.proto", HERE), ("reflection.proto", folder)):
            subprocess.run([PROTOC, f"-I{where}", f"--python_out={folder}", proto], check=True)
        with running("/usr/bin/python3", f"{HERE}/desk_server_grpcio.py", folder) as target:
            assert Run("list", target).ok() == "desk.Desk\n"
            assert "rpc Sum(stream Note) returns (Note);" in Run("describe", target, "desk.Desk").ok()
            all_kinds(target)
            for options, authority in (((), target[5:]),
                                       (("--authority", "shop.example:8443"), "shop.example:8443")):
                run = Run("call", target, "desk.Desk/Echo", "-v", *options)
                assert run.code == 0 and f"  x-authority: {authority}\n" in run.err, run
            Run("call", target, "desk.Desk/Ecko").failed(2, "did you mean desk.Desk/Echo")
            Run("health", target).failed(64 + 12, "does not tell its health")
            assert "gRPC over HTTP/2" in Run("ping", target, "-n", "1").ok()
            Run("ping", target[5:], "-n", "1").failed(64 + 14, "speaks gRPC: put grpc: in front")


def test_grpcjs_without():
    with tempfile.TemporaryDirectory() as folder:
        modules = npm(pathlib.Path(folder), "node")
        with running("node", f"{HERE}/desk_server_grpcjs.js", f"{HERE}/desk.proto",
                     env={"NODE_PATH": str(modules)}) as target:
            all_kinds(target, "--proto", f"{HERE}/desk.proto")
            Run("list", target).failed(64 + 12, "has no reflection")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def test_etcd():
    assert shutil.which("etcd"), "etcd-server is not installed"
    protos = ("--proto", "etcd.proto", "-I", str(TOP / "examples" / "etcd"))
    client, peer = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        etcd = subprocess.Popen(
            ["etcd", "--data-dir", folder, "--listen-client-urls", f"http://127.0.0.1:{client}",
             "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls",
             f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
             "--initial-cluster", f"default=http://127.0.0.1:{peer}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in etcd.stdout:
                if b"ready to serve client requests" in line or b"serving insecure client" in line:
                    break
            target = f"grpc:127.0.0.1:{client}"
            assert Run("health", target).ok() == "SERVING\n"
            Run("call", target, "etcdserverpb.KV/Put", '{"key":"Zm9v","value":"YmFy"}', *protos).ok()
            got = json.loads(Run("call", target, "etcdserverpb.KV/Range", '{"key":"Zm9v"}',
                                 *protos).ok())
            assert got["kvs"][0]["value"] == "YmFy", got
            watch = Run("call", target, "etcdserverpb.Watch/Watch", "--deadline", "2s",
                        '{"createRequest":{"key":"Zm9v","startRevision":"1"}}', *protos)
            assert '"value":"YmFy"' in watch.out, watch
        finally:
            etcd.kill()
            etcd.wait()
            etcd.stdout.close()


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
