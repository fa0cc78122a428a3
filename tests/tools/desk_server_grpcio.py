# SPDX-License-Identifier: Apache-2.0 OR MIT
"""desk.proto served by grpcio, with reflection v1alpha alone, which answers with the one file that was
asked for: what it imports has to be asked for by name.

usage: desk_server_grpcio.py FOLDER     of desk_pb2.py and reflection_pb2.py
"""
import sys
from concurrent import futures

import grpc

sys.path.insert(0, sys.argv[1])
import desk_pb2  # noqa: E402
import reflection_pb2  # noqa: E402
from google.protobuf import descriptor_pool  # noqa: E402


def answer(pool, request):
    response = reflection_pb2.ServerReflectionResponse(original_request=request)
    kind = request.WhichOneof("message_request")
    try:
        if kind == "list_services":
            response.list_services_response.service.add(name="desk.Desk")
        elif kind == "file_containing_symbol":
            file = pool.FindFileContainingSymbol(request.file_containing_symbol)
            response.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)
        else:
            file = pool.FindFileByName(request.file_by_filename)
            response.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)
    except KeyError:
        response.error_response.error_code = grpc.StatusCode.NOT_FOUND.value[0]
        response.error_response.error_message = "not here"
    return response


def reflect(requests, context):
    pool = descriptor_pool.Default()
    for request in requests:
        yield answer(pool, request)


def echo(request, context):
    # What a call was for has no public name in grpcio.
    authority = context._rpc_event.call_details.host.decode()
    context.send_initial_metadata((("x-seen", dict(context.invocation_metadata()).get("x-note", "")),
                                   ("x-authority", authority)))
    return request


def work(request, context):
    if request.fail_code:
        context.abort(grpc.StatusCode.NOT_FOUND, "as was asked")
    return desk_pb2.Note(text="done")


def add(requests, context):
    return desk_pb2.Note(number=sum(request.number for request in requests))


def count(request, context):
    for number in range(1, request.n + 1):
        yield desk_pb2.Note(number=number)


def chat(requests, context):
    yield from requests


def handlers():
    note, task = desk_pb2.Note, desk_pb2.Task

    def made(kind, fn, request):
        return kind(fn, request_deserializer=request.FromString,
                    response_serializer=lambda message: message.SerializeToString())

    return {
        "Echo": made(grpc.unary_unary_rpc_method_handler, echo, note),
        "Work": made(grpc.unary_unary_rpc_method_handler, work, task),
        "Sum": made(grpc.stream_unary_rpc_method_handler, add, note),
        "Count": made(grpc.unary_stream_rpc_method_handler, count, task),
        "Chat": made(grpc.stream_stream_rpc_method_handler, chat, note),
    }


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    reflection = grpc.stream_stream_rpc_method_handler(
        reflect, request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=lambda message: message.SerializeToString())
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler("desk.Desk", handlers()),
        grpc.method_handlers_generic_handler("grpc.reflection.v1alpha.ServerReflection",
                                             {"ServerReflectionInfo": reflection})))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"listening on 127.0.0.1, port {port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
