#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's implementation for Python in the public interoperability cases, as server and client.

Usage: interop.py server --port=N [--use_tls=true --cert_file=FILE --key_file=FILE]
       interop.py client --server_host=HOST --server_port=N --test_case=NAME [--use_tls=true --ca_file=FILE
                         --server_host_override=NAME]

A server prints its port and ends with its standard input. What Python cannot see is how a message came, and a
load report (orca_per_rpc): it expects nothing of those.
"""
import os
import signal
import socket
import sys
import threading
import time
from concurrent import futures

import grpc

import testing_pb2 as pb

SERVICE = "grpc.testing.TestService"
ECHO_INITIAL, ECHO_TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"
LOAD = "endpoint-load-metrics-bin"
CODES = {code.value[0]: code for code in grpc.StatusCode}
PATIENCE_S = 20


def zeros(size):
    return pb.Payload(body=bytes(size))


# The server


def echo_metadata(context):
    for key, value in context.invocation_metadata():
        if key == ECHO_INITIAL:
            context.send_initial_metadata(((key, value),))
        elif key == ECHO_TRAILING:
            context.set_trailing_metadata(((key, value),))


def fail_as_asked(request, context):
    if request.HasField("response_status") and request.response_status.code:
        context.abort(CODES[request.response_status.code], request.response_status.message)


def report_load(request, context):
    if not request.HasField("orca_per_query_report"):
        return
    asked = request.orca_per_query_report
    report = pb.LoadReport(cpu_utilization=asked.cpu_utilization,
                           mem_utilization=asked.memory_utilization,
                           request_cost=asked.request_cost, utilization=asked.utilization)
    context.set_trailing_metadata(((LOAD, report.SerializeToString()),))


def unary_call(request, context):
    echo_metadata(context)
    fail_as_asked(request, context)
    report_load(request, context)
    if request.response_compressed.value:
        context.set_compression(grpc.Compression.Gzip)
    return pb.SimpleResponse(
        payload=zeros(request.response_size), hostname=socket.gethostname(),
        server_id=f"python-{os.getpid()}" if request.fill_server_id else "")


def cacheable_unary_call(request, context):
    context.send_initial_metadata((("cache-control", "max-age=60, public"),))
    return pb.SimpleResponse(payload=zeros(request.response_size))


def pour(request, context):
    """The responses that are asked for. A stream that is not to be compressed at all says nothing."""
    for parameters in request.response_parameters:
        time.sleep(parameters.interval_us / 1e6)
        if parameters.HasField("compressed") and not parameters.compressed.value:
            context.disable_next_message_compression()
        yield pb.StreamingOutputCallResponse(payload=zeros(parameters.size))


def streaming_output_call(request, context):
    echo_metadata(context)
    fail_as_asked(request, context)
    if any(parameters.compressed.value for parameters in request.response_parameters):
        context.set_compression(grpc.Compression.Gzip)
    yield from pour(request, context)


def streaming_input_call(requests, _context):
    return pb.StreamingInputCallResponse(
        aggregated_payload_size=sum(len(request.payload.body) for request in requests))


def full_duplex_call(requests, context):
    echo_metadata(context)
    for request in requests:
        fail_as_asked(request, context)
        yield from pour(request, context)


def half_duplex_call(requests, context):
    for request in list(requests):
        yield from pour(request, context)


# name: (function, kind, request, response)
METHODS = {
    "EmptyCall": (lambda request, context: echo_metadata(context) or request, "unary_unary",
                  pb.Empty, pb.Empty),
    "UnaryCall": (unary_call, "unary_unary", pb.SimpleRequest, pb.SimpleResponse),
    "CacheableUnaryCall": (cacheable_unary_call, "unary_unary", pb.SimpleRequest, pb.SimpleResponse),
    "StreamingOutputCall": (streaming_output_call, "unary_stream", pb.StreamingOutputCallRequest,
                            pb.StreamingOutputCallResponse),
    "StreamingInputCall": (streaming_input_call, "stream_unary", pb.StreamingInputCallRequest,
                           pb.StreamingInputCallResponse),
    "FullDuplexCall": (full_duplex_call, "stream_stream", pb.StreamingOutputCallRequest,
                       pb.StreamingOutputCallResponse),
    "HalfDuplexCall": (half_duplex_call, "stream_stream", pb.StreamingOutputCallRequest,
                       pb.StreamingOutputCallResponse),
}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def serve(flags):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
        name: getattr(grpc, kind + "_rpc_method_handler")(
            function, request_deserializer=request.FromString,
            response_serializer=response.SerializeToString)
        for name, (function, kind, request, response) in METHODS.items()}),))
    address = f"127.0.0.1:{flags['port']}"
    if flags.get("use_tls") == "true":
        credentials = grpc.ssl_server_credentials(
            [(read(flags["key_file"]), read(flags["cert_file"]))])
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    server.start()
    print(port, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the input ends as well
    sys.stdin.read()
    server.stop(None).wait()


# The client


class Calls:
    """The methods of TestService on one channel."""

    def __init__(self, flags):
        target = f"{flags['server_host']}:{flags['server_port']}"
        if flags.get("use_tls") == "true":
            self.channel = grpc.secure_channel(
                target, grpc.ssl_channel_credentials(read(flags["ca_file"])),
                options=[("grpc.ssl_target_name_override", flags["server_host_override"])])
        else:
            self.channel = grpc.insecure_channel(target)

    def __getattr__(self, name):
        _, kind, request, response = METHODS[name]
        return getattr(self.channel, kind)(f"/{SERVICE}/{name}",
                                           request_serializer=request.SerializeToString,
                                           response_deserializer=response.FromString)


def failure(call):
    """The error that it ends with."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("it went well")


def large(**fields):
    return pb.SimpleRequest(response_size=314159, payload=zeros(271828), **fields)


def expect_large(response):
    assert response.payload.body == bytes(314159), f"{len(response.payload.body)} bytes came"


def empty_unary(calls):
    calls.EmptyCall(pb.Empty(), timeout=PATIENCE_S)


def large_unary(calls):
    expect_large(calls.UnaryCall(large(), timeout=PATIENCE_S))


def cacheable_unary(calls):
    request = pb.SimpleRequest(payload=pb.Payload(body=str(time.time_ns()).encode()))
    one, other = (calls.CacheableUnaryCall.with_call(
        request, metadata=(("x-user-ip", "1.2.3.4"),), timeout=PATIENCE_S) for _ in range(2))
    assert one[0].payload == other[0].payload
    assert ("cache-control", "max-age=60, public") in one[1].initial_metadata()


def client_compressed_unary(calls):
    lies = failure(lambda: calls.UnaryCall(large(expect_compressed=pb.BoolValue(value=True)),
                                           timeout=PATIENCE_S))
    assert lies.code() is grpc.StatusCode.INVALID_ARGUMENT, lies
    expect_large(calls.UnaryCall(large(expect_compressed=pb.BoolValue(value=True)),
                                 compression=grpc.Compression.Gzip, timeout=PATIENCE_S))
    expect_large(calls.UnaryCall(large(expect_compressed=pb.BoolValue()), timeout=PATIENCE_S))


def server_compressed_unary(calls):
    for compressed in (True, False):
        expect_large(calls.UnaryCall(large(response_compressed=pb.BoolValue(value=compressed)),
                                     timeout=PATIENCE_S))


def inputs(*sizes, **fields):
    return (pb.StreamingInputCallRequest(payload=zeros(size), **fields) for size in sizes)


def client_streaming(calls):
    response = calls.StreamingInputCall(inputs(27182, 8, 1828, 45904), timeout=PATIENCE_S)
    assert response.aggregated_payload_size == 74922, response


def client_compressed_streaming(calls):
    says = {"expect_compressed": pb.BoolValue(value=True)}
    lies = failure(lambda: calls.StreamingInputCall(inputs(27182, **says), timeout=PATIENCE_S))
    assert lies.code() is grpc.StatusCode.INVALID_ARGUMENT, lies
    response = calls.StreamingInputCall(inputs(27182, 45904, **says), timeout=PATIENCE_S,
                                        compression=grpc.Compression.Gzip)
    assert response.aggregated_payload_size == 73086, response


def output(*sizes, **fields):
    return pb.StreamingOutputCallRequest(
        response_parameters=[pb.ResponseParameters(size=size) for size in sizes], **fields)


def sizes_of(responses):
    return [len(response.payload.body) for response in responses]


def server_streaming(calls):
    sizes = [31415, 9, 2653, 58979]
    assert sizes_of(calls.StreamingOutputCall(output(*sizes), timeout=PATIENCE_S)) == sizes


def server_compressed_streaming(calls):
    request = output(31415, 92653)
    request.response_parameters[0].compressed.value = True
    request.response_parameters[1].compressed.value = False
    assert sizes_of(calls.StreamingOutputCall(request, timeout=PATIENCE_S)) == [31415, 92653]


class Duplex:
    """A FullDuplexCall whose requests are sent one by one."""

    def __init__(self, calls, **options):
        self.requests, self.there, self.ended = [], threading.Semaphore(0), False
        self.call = calls.FullDuplexCall(self.next_requests(), **{"timeout": PATIENCE_S, **options})

    def next_requests(self):
        while True:
            self.there.acquire()
            if self.ended:
                return
            yield self.requests.pop(0)

    def send(self, request):
        self.requests.append(request)
        self.there.release()

    def end(self):
        self.ended = True
        self.there.release()


def ping_pong(calls):
    duplex = Duplex(calls)
    for request, response in ((27182, 31415), (8, 9), (1828, 2653), (45904, 58979)):
        duplex.send(output(response, payload=zeros(request)))
        assert len(next(duplex.call).payload.body) == response
    duplex.end()
    assert not list(duplex.call)


def empty_stream(calls):
    assert not list(calls.FullDuplexCall(iter(()), timeout=PATIENCE_S))


def custom_metadata(calls):
    sent = ((ECHO_INITIAL, "test_initial_metadata_value"), (ECHO_TRAILING, b"\xab\xab\xab"))
    response, unary = calls.UnaryCall.with_call(large(), metadata=sent, timeout=PATIENCE_S)
    expect_large(response)
    stream = calls.FullDuplexCall(iter([output(314159, payload=zeros(271828))]), metadata=sent,
                                  timeout=PATIENCE_S)
    assert sizes_of(stream) == [314159]
    for call in (unary, stream):
        assert sent[0] in call.initial_metadata(), call.initial_metadata()
        assert sent[1] in call.trailing_metadata(), call.trailing_metadata()


def expect_status(error, message):
    assert error.code() is grpc.StatusCode.UNKNOWN and error.details() == message, error


def status_code_and_message(calls):
    status = pb.EchoStatus(code=2, message="test status message")
    expect_status(failure(lambda: calls.UnaryCall(pb.SimpleRequest(response_status=status),
                                                  timeout=PATIENCE_S)), status.message)
    expect_status(failure(lambda: list(calls.FullDuplexCall(
        iter([output(response_status=status)]), timeout=PATIENCE_S))), status.message)


def special_status_message(calls):
    status = pb.EchoStatus(
        code=2, message="\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n")
    expect_status(failure(lambda: calls.UnaryCall(pb.SimpleRequest(response_status=status),
                                                  timeout=PATIENCE_S)), status.message)


def unimplemented(calls, path):
    error = failure(lambda: calls.channel.unary_unary(path)(b"", timeout=PATIENCE_S))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED, error


def unimplemented_method(calls):
    unimplemented(calls, f"/{SERVICE}/UnimplementedCall")


def unimplemented_service(calls):
    unimplemented(calls, "/grpc.testing.UnimplementedService/UnimplementedCall")


def cancel_after_begin(calls):
    ended = threading.Event()

    def none():
        ended.wait(PATIENCE_S)
        yield from ()
    call = calls.StreamingInputCall.future(none(), timeout=PATIENCE_S)
    call.cancel()
    assert call.code() is grpc.StatusCode.CANCELLED, call.code()
    ended.set()


def cancel_after_first_response(calls):
    duplex = Duplex(calls)
    duplex.send(output(31415, payload=zeros(27182)))
    assert len(next(duplex.call).payload.body) == 31415
    duplex.call.cancel()
    duplex.end()
    assert duplex.call.code() is grpc.StatusCode.CANCELLED, duplex.call.code()


def timeout_on_sleeping_server(calls):
    duplex = Duplex(calls, timeout=0.001)
    duplex.send(pb.StreamingOutputCallRequest(payload=zeros(27182)))
    error = failure(lambda: next(duplex.call))
    duplex.end()
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED, error


def pick_first_unary(calls):
    request = pb.SimpleRequest(response_size=1, fill_server_id=True)
    ids = {calls.UnaryCall(request, timeout=PATIENCE_S).server_id for _ in range(100)}
    assert len(ids) == 1 and "" not in ids, ids


CASES = (
    empty_unary, large_unary, cacheable_unary, client_compressed_unary, server_compressed_unary,
    client_streaming, client_compressed_streaming, server_streaming, server_compressed_streaming,
    ping_pong, empty_stream, custom_metadata, status_code_and_message, special_status_message,
    unimplemented_method, unimplemented_service, cancel_after_begin, cancel_after_first_response,
    timeout_on_sleeping_server, pick_first_unary,
)


def run_case(flags):
    if flags["test_case"] == "list":
        print(*(case.__name__ for case in CASES), sep="\n")
        return
    case = {case.__name__: case for case in CASES}[flags["test_case"]]
    calls = Calls(flags)
    case(calls)
    calls.channel.close()


def main(role, *words):
    flags = dict(word[2:].split("=", 1) for word in words)
    if role == "server":
        serve(flags)
    else:
        run_case(flags)


if __name__ == "__main__":
    main(*sys.argv[1:])
