#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The guarded greeter, called by gRPC's own client: a token in the metadata, and a log of the calls.

usage: guarded.py SERVER
"""
import json
import sys
import tempfile

import grpc

import example

TOKEN = "open-sesame"
GREETING = b"\x0a\x1cHello, Ada, sent by ada@ship"
EVIL = 'a" code="OK'


def call(channel, *metadata):
    """The code, and the reply's bytes or the status's words."""
    hello = channel.unary_unary("/demo.Greeter/SayHello", request_serializer=bytes,
                                response_deserializer=bytes)
    try:
        return grpc.StatusCode.OK, hello(b"\x0a\x03Ada", timeout=example.PATIENCE_S,
                                         metadata=metadata)
    except grpc.RpcError as error:
        return error.code(), error.details()


def logged(server, name):
    """The log's object for the call of that id."""
    return json.loads(server.wait_line(rf'^\{{.*"id":"{name}.*\}}$')[0])


def main(command):
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write(f"# whoever may call\nada@ship:{TOKEN}\nunnamed\n")
        tokens.flush()
        with example.program(command, tokens.name, "127.0.0.1:0") as server:
            port = server.wait_line(r"^listening on port (\d+)$")[1]
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                code, words = call(channel, ("x-request-id", "none"))
                assert code == grpc.StatusCode.UNAUTHENTICATED and "needs a token" in words, words
                code, words = call(channel, ("authorization", "Bearer open"),
                                   ("x-request-id", "wrong"))
                assert code == grpc.StatusCode.UNAUTHENTICATED and TOKEN not in words, words
                code, reply = call(channel, ("authorization", f"Bearer {TOKEN}"),
                                   ("x-request-id", EVIL))
                assert code == grpc.StatusCode.OK and reply == GREETING, reply
                code, reply = call(channel, ("authorization", "Bearer unnamed"))
                assert code == grpc.StatusCode.OK and reply.endswith(b"nobody in particular"), reply
            assert logged(server, "none")["code"] == "UNAUTHENTICATED"
            wrong = logged(server, "wrong")
            assert "not accepted" in wrong["message"] and wrong["in"] == 0
            good = logged(server, "a")
            assert good["code"] == "OK" and good["id"] == EVIL and good["protocol"] == "grpc"
            assert good["method"] == "/demo.Greeter/SayHello"
            assert (good["in_bytes"], good["out_bytes"]) == (5, len(GREETING))
    print("4 calls, 3 lines looked at: passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
