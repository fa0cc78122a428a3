#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""bowline call, list, describe, ping and health, over both protocols, plain, TLS and Unix sockets.

usage: tool_call_test.py TOOL SERVER PROTOC HERE
"""
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

import tool
from tool import HERE, PROTOC, Run, server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop" / "public"))
from certificate import NAME, Certificate  # noqa: E402

NOTE = {"text": "tea", "number": "-7", "tags": ["a", "b"], "counts": {"x": 1}, "data": "AAE=",
        "kind": "URGENT"}
BOTH = ("", "grpc:")


def all_kinds(target, *options):
    assert json.loads(Run("call", target, "desk.Desk/Echo", json.dumps(NOTE), *options).ok()) == NOTE
    total = Run("call", target, "desk.Desk/Sum", "-", *options,
                text='{"number": 4}\n{"number":\n 5}').ok()
    assert json.loads(total) == {"number": "9"}, total
    counted = Run("call", target, "desk.Desk/Count", '{"n": 3}', *options).ok()
    assert counted == '{"number":"1"}\n{"number":"2"}\n{"number":"3"}\n', counted
    chat = Run("call", target, "desk.Desk/Chat", *options, text='{"text":"a"} {"text":"b"}').ok()
    assert chat == '{"text":"a"}\n{"text":"b"}\n', chat


def test_all_kinds_over_tcp():
    with server("127.0.0.1:0", "--reflection") as desk:
        for protocol in BOTH:
            all_kinds(protocol + desk.address)


def test_all_kinds_over_a_unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        with server(f"unix:{folder}/desk", "--reflection") as desk:
            for protocol in BOTH:
                all_kinds(protocol + desk.address)


def test_all_kinds_over_tls():
    with tempfile.TemporaryDirectory() as folder:
        files = Certificate(folder)
        with server("127.0.0.1:0", "--reflection", "--tls", files.certificate, files.key) as desk:
            for protocol in BOTH:
                all_kinds(protocol + desk.address, "--ca", files.ca, "--authority", NAME)
                all_kinds(protocol + desk.address, "--insecure")
                told, = Run("ping", protocol + desk.address, "--ca", files.ca, "--authority", NAME,
                            "-n", "1", "--json").json()
                assert told["subject"] == "CN=a test server" and told["tls"] == "TLSv1.3", told
                Run("ping", protocol + desk.address, "--ca", files.ca, "-n", "1").failed(78)


def test_methods_from_files_need_no_reflection():
    proto = os.path.join(HERE, "desk.proto")
    with tempfile.TemporaryDirectory() as folder, server() as desk:
        protoset = os.path.join(folder, "desk.set")
        subprocess.run([PROTOC, f"-I{HERE}", f"--descriptor_set_out={protoset}", proto], check=True)
        for protocol in BOTH:
            all_kinds(protocol + desk.address, "--protoset", protoset)
            all_kinds(protocol + desk.address, "--proto", proto)
            all_kinds(protocol + desk.address, "--proto", "desk.proto", "-I", HERE)


def test_a_conversation_ends_when_the_server_ends_it():
    """Though nobody ends standard input."""
    with server("127.0.0.1:0", "--reflection") as desk:
        for protocol in BOTH:
            process = subprocess.Popen(
                [tool.TOOL, "call", protocol + desk.address, "desk.Desk/Chat"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            process.stdin.write('{"text":"hello"}\n')
            process.stdin.flush()
            assert process.stdout.readline() == '{"text":"hello"}\n'
            process.stdin.write('{"text":"bye"}\n')
            process.stdin.flush()
            assert process.wait(tool.PATIENCE_S) == 0
            process.stdin.close()
            process.stdout.close()


def test_metadata_goes_and_comes():
    with server("127.0.0.1:0", "--reflection") as desk:
        for protocol in BOTH:
            run = Run("call", protocol + desk.address, "desk.Desk/Echo", "-v", "-H", "X-Note: hey")
            assert run.code == 0, run
            for part in ("headers:\n  x-seen: hey", "trailers:\n  x-end: hey",
                         "desk.Desk/Echo(desk.Note) returns (desk.Note)", "time: "):
                assert part in run.err, run
            lines = Run("call", protocol + desk.address, "desk.Desk/Echo", "--json", "-H",
                        "x-note: hey").json()
            assert lines[0] == {"message": {}}, lines
            assert lines[1]["status"] == "OK" and lines[1]["code"] == 0, lines
            assert lines[1]["headers"] == [{"key": "x-seen", "value": "hey"}], lines
            assert lines[1]["trailers"] == [{"key": "x-end", "value": "hey"}], lines


def test_status_is_the_exit_code():
    with server("127.0.0.1:0", "--reflection") as desk:
        for protocol in BOTH:
            Run("call", protocol + desk.address, "desk.Desk/Work", '{"failCode": 9}').failed(
                64 + 9, "FAILED_PRECONDITION: as was asked")
            run = Run("call", protocol + desk.address, "desk.Desk/Count", '{"n": 2, "failCode": 5}',
                      "--json")
            lines = [json.loads(line) for line in run.out.splitlines()]
            assert run.code == 64 + 5 and run.err == "", run
            assert lines[-1]["status"] == "NOT_FOUND" and len(lines) <= 3, lines


def test_list_and_describe():
    with server("127.0.0.1:0", "--reflection") as desk:
        services = Run("list", desk.address).ok().split()
        assert services[:2] == ["desk.Desk", "grpc.health.v1.Health"], services
        assert Run("list", desk.address, "--json").json() == [{"services": services}]
        methods = Run("list", "grpc:" + desk.address, "desk.Desk").ok().split()
        assert methods == [f"desk.Desk/{name}" for name in ("Echo", "Work", "Sum", "Count", "Chat")]
        kinds = Run("list", desk.address, "desk.Desk", "--json").json()[0]["methods"]
        assert [one["kind"] for one in kinds] == [
            "unary", "unary", "client_stream", "server_stream", "bidi"], kinds
        assert Run("describe", desk.address, "desk.Kind").ok() == (
            "enum Kind {\n  PLAIN = 0;\n  URGENT = 1;\n}\n")
        assert Run("describe", desk.address, "desk.Desk/Count").ok() == (
            "rpc Count(Task) returns (stream Note);\n")
        assert "rpc Chat(stream Note) returns (stream Note);" in Run("describe", desk.address).ok()


def test_list_and_describe_files_ask_nobody():
    """With a target, too, where nobody listens."""
    proto = ("--proto", "desk.proto", "-I", HERE)
    for target in ((), ("127.0.0.1:1",), ("grpc:127.0.0.1:1",)):
        assert Run("list", *target, *proto).ok() == "desk.Desk\n"
        assert "service Desk {" in Run("describe", *target, *proto).ok()
        assert Run("list", *target, "desk.Desk", *proto).ok().startswith("desk.Desk/Echo\n")
    Run("list", "desk.Dsk", *proto).failed(2, "did you mean desk.Desk?")


def test_what_is_described_is_the_same_proto():
    """What describe writes, protoc reads as the same descriptors."""
    top = pathlib.Path(HERE).parent
    for proto in (top / "tools" / "desk.proto", top / "rpc" / "protos" / "codec2.proto",
                  top / "rpc" / "protos" / "codec3.proto", top / "rpc" / "protos" / "json.proto",
                  top / "rpc" / "protos" / "kinds.proto"):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (os.path.join(folder, name) for name in ("first.set", "second.set"))
            protoc = [PROTOC, "--include_imports", f"-I{folder}", f"-I{proto.parent}"]
            subprocess.run([*protoc, f"--descriptor_set_out={first}", str(proto)], check=True)
            text = Run("describe", "--protoset", first, proto.name).ok()
            pathlib.Path(folder, proto.name).write_text(text, encoding="utf-8")
            subprocess.run([*protoc, f"--descriptor_set_out={second}", proto.name], check=True)
            a, b = (pathlib.Path(name).read_bytes() for name in (first, second))
            assert sorted(a) == sorted(b), f"{proto} is described as another one:\n{text}"


def test_ping_tells_the_protocol():
    with server("127.0.0.1:0") as desk:
        assert "Bowline's own protocol\n1: " in Run("ping", desk.address, "-n", "1").ok()
        told, = Run("ping", "grpc:" + desk.address, "-n", "3", "--interval", "1ms", "--json").json()
        assert (told["protocol"], told["sent"], told["answered"]) == ("grpc", 3, 3), told


def test_health_is_a_probe():
    with server("127.0.0.1:0") as desk:
        for protocol in BOTH:
            assert Run("health", protocol + desk.address).ok() == "SERVING\n"
            assert Run("health", protocol + desk.address, "desk.Desk", "--json").json() == [
                {"service": "desk.Desk", "status": "SERVING"}]
            Run("health", protocol + desk.address, "no.Such").failed(64 + 5, "no service \"no.Such\"")
    with server("127.0.0.1:0", "--not-serving") as desk:
        run = Run("health", desk.address, "desk.Desk")
        assert (run.code, run.out) == (4, "NOT_SERVING\n"), run


def test_health_is_watched_to_the_end():
    with server("127.0.0.1:0") as desk:
        process = subprocess.Popen([tool.TOOL, "health", "--watch", desk.address],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "SERVING\n"
        desk.process.terminate()
        assert process.stdout.readline() == "NOT_SERVING\n"
        process.communicate(timeout=tool.PATIENCE_S)
        # A second signal might come when the server no longer listens to any.
        assert desk.process.wait(timeout=tool.PATIENCE_S) == 0


def on_a_terminal(*args, **env):
    master, slave = pty.openpty()
    done = subprocess.run([tool.TOOL, *args], stdout=slave, check=True, timeout=tool.PATIENCE_S,
                          env={**os.environ, "TERM": "xterm", **env})
    os.close(slave)
    text = os.read(master, 4096)
    os.close(master)
    assert done.returncode == 0
    return text


def test_colours_are_for_terminals():
    with server("127.0.0.1:0") as desk:
        assert b"\x1b[32mSERVING\x1b[0m" in on_a_terminal("health", desk.address, NO_COLOR="")
        assert on_a_terminal("health", desk.address, NO_COLOR="1") == b"SERVING\r\n"


def test_completion_knows_commands_and_methods():
    script = pathlib.Path(HERE).parent.parent / "tools" / "bowline" / "completions" / "bowline.bash"
    folder = os.path.dirname(os.path.abspath(tool.TOOL))
    with server("127.0.0.1:0", "--reflection") as desk:
        def complete(*words):
            done = subprocess.run(
                ["bash", "-c", f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                 '_bowline; printf "%s\\n" "${COMPREPLY[@]}"', "bash", *words],
                capture_output=True, text=True, check=True,
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            return done.stdout.split()
        assert complete("bowline", "de") == ["describe"]
        assert complete("bowline", "bench", "--conn") == ["--connect-timeout", "--connections"]
        assert complete("bowline", "call", "--in") == ["--insecure"]  # not what the help mentions
        assert complete("bowline", "call", desk.address, "desk.Desk/C") == [
            "desk.Desk/Count", "desk.Desk/Chat"]


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
