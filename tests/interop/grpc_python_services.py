#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's own client, from Python, and curl ask a Bowline server for its health and what it serves,
and call it by what they were told alone.

Usage: grpc_python_services.py SERVICES_SERVER [unittest options]; needs health_pb2.py and
reflection_pb2.py on PYTHONPATH.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import health_pb2
import reflection_pb2

SERVER = sys.argv.pop(1)
SERVICE = "interop.Interop"
Status = health_pb2.HealthCheckResponse
SERVICES = [SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection"]


class Services(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([SERVER, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:" + self.process.stdout.readline().strip()
        self.channel = grpc.insecure_channel(self.address)

    def tearDown(self):
        self.channel.close()
        # A lame duck for an hour once it is told to end, and then again.
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
        self.assertEqual(self.process.returncode, 0)
        self.process.stdout.close()

    def health(self, kind, name, answer=Status):
        return getattr(self.channel, kind)(
            f"/grpc.health.v1.Health/{name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=answer.FromString)

    def check(self, service):
        request = health_pb2.HealthCheckRequest(service=service)
        return self.health("unary_unary", "Check")(request, timeout=20).status

    def set_health(self, state):
        """By a call whose message is its field 4."""
        echo = self.channel.unary_unary(f"/{SERVICE}/Echo")
        text = f"health={state}".encode()
        echo(b"\x22" + bytes([len(text)]) + text, timeout=20)

    def test_health_is_told_and_watched_until_the_server_ends(self):
        self.assertEqual(self.check(""), Status.SERVING)
        self.assertEqual(self.check(SERVICE), Status.SERVING)
        with self.assertRaises(grpc.RpcError) as caught:
            self.check("nobody")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        listed = self.health("unary_unary", "List", health_pb2.HealthListResponse)
        statuses = listed(health_pb2.HealthListRequest(), timeout=20).statuses
        self.assertEqual({name: told.status for name, told in statuses.items()},
                         {"": Status.SERVING, SERVICE: Status.SERVING})

        watching = self.health("unary_stream", "Watch")(
            health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
        self.assertEqual(next(watching).status, Status.SERVING)
        self.set_health(Status.NOT_SERVING)
        self.assertEqual(next(watching).status, Status.NOT_SERVING)
        self.set_health(Status.SERVING)
        self.assertEqual(next(watching).status, Status.SERVING)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(next(watching).status, Status.NOT_SERVING)
        self.set_health(Status.SERVING)
        self.assertEqual(self.check(SERVICE), Status.NOT_SERVING)
        self.process.send_signal(signal.SIGTERM)
        with self.assertRaises(grpc.RpcError):
            next(watching)
        self.assertEqual(watching.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("shutting down", watching.details())
        # Watching has not held it up, whose grace is an hour.
        self.assertEqual(self.process.wait(timeout=20), 0)

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_health_is_told_to_curl(self):
        with tempfile.TemporaryDirectory() as folder:
            body, answer = os.path.join(folder, "body"), os.path.join(folder, "answer")
            request = health_pb2.HealthCheckRequest(service=SERVICE).SerializeToString()
            with open(body, "wb") as file:
                file.write(b"\x00" + len(request).to_bytes(4, "big") + request)
            subprocess.run(
                ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20",
                 "-H", "content-type: application/grpc", "-H", "te: trailers",
                 "--data-binary", f"@{body}", "-o", answer,
                 f"http://{self.address}/grpc.health.v1.Health/Check"],
                check=True, timeout=30)
            with open(answer, "rb") as file:
                self.assertEqual(file.read(), b"\x00\x00\x00\x00\x02\x08\x01")

    def reflect(self, version, *requests):
        ask = self.channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
        return list(ask(iter(requests), timeout=20))

    def pool_of(self, version, names):
        """All that the server tells of services, as a pool, which wants each import."""
        pool = descriptor_pool.DescriptorPool()
        files = {}
        Request = reflection_pb2.ServerReflectionRequest
        for response in self.reflect(version, *(Request(file_containing_symbol=name)
                                                for name in names)):
            self.assertEqual(response.WhichOneof("message_response"), "file_descriptor_response")
            for encoded in response.file_descriptor_response.file_descriptor_proto:
                file = descriptor_pb2.FileDescriptorProto.FromString(encoded)
                files[file.name] = file
        added = set()

        def add(name):
            if name not in added:
                added.add(name)
                for dependency in files[name].dependency:
                    add(dependency)
                pool.Add(files[name])
        for name in files:
            add(name)
        return pool

    def test_reflection_is_enough_to_list_describe_and_call(self):
        for version in ("v1", "v1alpha"):
            listed = self.reflect(version, reflection_pb2.ServerReflectionRequest(list_services=""))
            names = [service.name for service in listed[0].list_services_response.service]
            self.assertEqual(sorted(names), sorted(SERVICES))
            pool = self.pool_of(version, names)
            for name in names:
                self.assertEqual(pool.FindServiceByName(name).full_name, name)
            method = pool.FindServiceByName(SERVICE).methods_by_name["Echo"]
            factory = message_factory.MessageFactory(pool)
            Request, Reply = map(factory.GetPrototype, (method.input_type, method.output_type))
            echo = self.channel.unary_unary(
                f"/{SERVICE}/{method.name}", request_serializer=Request.SerializeToString,
                response_deserializer=Reply.FromString)
            self.assertEqual(echo(Request(body=b"by reflection"), timeout=20).body, b"by reflection")

    def test_reflection_goes_on_after_what_it_does_not_know(self):
        Request = reflection_pb2.ServerReflectionRequest
        answers = self.reflect("v1", Request(file_by_filename="no.proto"), Request(),
                               Request(file_containing_symbol=SERVICE))
        self.assertEqual([answer.error_response.error_code for answer in answers],
                         [grpc.StatusCode.NOT_FOUND.value[0],
                          grpc.StatusCode.INVALID_ARGUMENT.value[0], 0])
        self.assertIn("no.proto", answers[0].error_response.error_message)
        self.assertEqual(answers[0].original_request.file_by_filename, "no.proto")


if __name__ == "__main__":
    unittest.main()
