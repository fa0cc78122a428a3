#!/usr/bin/python3
# SPDX-License-Identifier: 0BSD
"""Greets each NAME over gRPC, with Debian's python3-grpcio. Usage: client.py ADDRESS NAME...

Needs greeter_pb2.py beside it or on PYTHONPATH: protoc --python_out=. greeter.proto
"""
import sys

import grpc

import greeter_pb2


def main(address, names):
    with grpc.insecure_channel(address) as channel:
        say_hello = channel.unary_unary(
            "/demo.Greeter/SayHello",
            request_serializer=greeter_pb2.HelloRequest.SerializeToString,
            response_deserializer=greeter_pb2.HelloReply.FromString,
        )
        for name in names:
            print(say_hello(greeter_pb2.HelloRequest(name=name), timeout=5).message)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
