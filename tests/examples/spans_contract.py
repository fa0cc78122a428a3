#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold the span example's own .proto against OpenTelemetry's.

usage: spans_contract.py TOP PROTOC

Fills every field of one schema's export request, and lets the other schema decode
the bytes: what both know must arrive, what only one knows must survive a round trip.
Each schema lives in a Python process of its own, for their names are the same.
OpenTelemetry's files are looked for in $BOWLINE_PROTOS, then beside the tree
(../shared/protos); exit 77 where they are not.
"""
import os
import subprocess
import sys
import tempfile

OURS = ["common.proto", "resource.proto", "trace.proto", "trace_service.proto"]
THEIRS = ["opentelemetry/proto/" + name for name in (
    "common/v1/common.proto", "resource/v1/resource.proto", "trace/v1/trace.proto",
    "collector/trace/v1/trace_service.proto")]

# Runs in a process of its own: fill | echo, bytes in hexadecimal on standard streams.
CHILD = r'''
import sys
sys.path.insert(0, sys.argv[1])
module = __import__(sys.argv[2], fromlist=["x"])
Request = module.ExportTraceServiceRequest

def fill(message, depth):
    for number, field in enumerate(message.DESCRIPTOR.fields):
        repeated = field.label == field.LABEL_REPEATED
        if field.message_type is not None:
            if depth == 0:
                continue
            child = getattr(message, field.name)
            fill(child.add() if repeated else child, depth - 1)
            if not repeated:
                child.SetInParent()
            continue
        kinds = {field.CPPTYPE_STRING: "t%d" % number, field.CPPTYPE_BOOL: True,
                 field.CPPTYPE_DOUBLE: number + 0.5, field.CPPTYPE_FLOAT: number + 0.5}
        value = kinds.get(field.cpp_type, number % 2 + 1)
        if field.type == field.TYPE_BYTES:
            value = b"b%d" % number
        if repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)

request = Request()
if sys.argv[3] == "fill":
    fill(request, 9)
else:
    request.ParseFromString(bytes.fromhex(sys.stdin.read()))
print(request.SerializeToString(deterministic=True).hex())
print(request)
'''


def find_theirs(top):
    for base in (os.environ.get("BOWLINE_PROTOS"), os.path.join(top, "..", "shared", "protos")):
        folder = base and os.path.join(base, "opentelemetry-proto")
        if folder and os.path.isdir(folder):
            return folder
    return None


class Schema:
    def __init__(self, protoc, where, files, out):
        subprocess.run([protoc, "-I", where, f"--python_out={out}"] + files, check=True)
        self.out = out
        self.module = files[-1][:-len(".proto")].replace("/", ".") + "_pb2"

    def run(self, action, data=""):
        done = subprocess.run([sys.executable, "-c", CHILD, self.out, self.module, action],
                              input=data, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.module}, {action}:\n{done.stderr}")
        encoded, _, text = done.stdout.partition("\n")
        return encoded, text


def main(top, protoc):
    theirs_folder = find_theirs(top)
    if theirs_folder is None:
        print("OpenTelemetry's .proto files are not here (set BOWLINE_PROTOS)")
        return 77
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        ours = Schema(protoc, os.path.join(top, "examples", "spans"), OURS, one)
        theirs = Schema(protoc, theirs_folder, THEIRS, two)
        sent, meant = ours.run("fill")
        got, understood = theirs.run("echo", sent)
        if got != sent or understood != meant:
            print(f"theirs reads ours otherwise:\n--- meant\n{meant}--- understood\n{understood}")
            return 1
        sent, meant = theirs.run("fill")
        got, _ = ours.run("echo", sent)
        back, understood = theirs.run("echo", got)
        if back != sent or understood != meant:
            print(f"ours loses what theirs said:\n--- meant\n{meant}--- came back\n{understood}")
            return 1
    print("both schemas read each other's bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
