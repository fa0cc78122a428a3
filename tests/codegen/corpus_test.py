#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real .proto files of others, where they are at hand: each is generated twice with the same
bytes, and compiles as C11 and, the headers, as C++17.

    corpus_test.py PLUGIN PROTOC CC CXX

They are looked for in $BOWLINE_PROTOS, then in ../shared/protos beside the source tree; where
neither is there, the test says so and exits with 77.
"""

import os
import pathlib
import shlex
import sys
import tempfile
import unittest

from compiling import Compilers
from protoc import ROOT, Protoc, files

SKIP = 77
GOOGLE = [f"google/protobuf/{name}.proto"
          for name in ("any", "duration", "timestamp", "wrappers", "struct", "empty", "descriptor")]
RAFT = "etcd/api/etcdserverpb/raft_internal.proto"
RAFT_NEEDS = ["rpc.proto", "etcd/api/authpb/auth.proto", "etcd/api/mvccpb/kv.proto",
              "etcd/api/membershippb/membership.proto", "etcd/api/versionpb/version.proto"]


def find_corpus():
    named = os.environ.get("BOWLINE_PROTOS")
    folder = pathlib.Path(named) if named else ROOT.parent / "shared" / "protos"
    return folder if any(folder.rglob("*.proto")) else None


def below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))


class Corpus(unittest.TestCase):
    seen = set()

    def check(self, protos, folders, needs=()):
        """`needs` are generated and compiled as well, but count for another test."""
        paths = [CORPUS / folder for folder in folders]
        with tempfile.TemporaryDirectory() as scratch:
            first, second = pathlib.Path(scratch, "first"), pathlib.Path(scratch, "second")
            PROTOC.generate(first, [*protos, *needs], paths)
            PROTOC.generate(second, [*protos, *needs], paths)
            made = files(first)
            self.assertEqual(len(made), 4 * (len(protos) + len(needs)))
            self.assertEqual(made, files(second))
            self.assertEqual(COMPILERS.compile_c(first), [])
            if COMPILERS.cxx:
                self.assertEqual(COMPILERS.compile_cxx(first), [])
        found = {next(path / proto for path in paths if (path / proto).exists()) for proto in protos}
        Corpus.seen |= {str(path.relative_to(CORPUS)) for path in found}

    def test_1_opentelemetry(self):
        self.check(below(CORPUS / "opentelemetry-proto"), ["opentelemetry-proto"])

    def test_2_grpc(self):
        self.check(below(CORPUS / "grpc-proto"), ["grpc-proto"], GOOGLE)

    def test_3_etcd_and_what_it_imports(self):
        etcd = [f"etcd/{proto}" for proto in below(CORPUS / "etcd")]
        etcd.remove(RAFT)
        self.check([*etcd, *below(CORPUS / "deps")], [".", "deps"], GOOGLE)

    def test_4_etcd_raft_which_names_its_neighbour_without_a_folder(self):
        self.check(["raft_internal.proto"], ["etcd/api/etcdserverpb", ".", "deps"], RAFT_NEEDS)

    def test_5_no_file_was_left_out(self):
        self.assertEqual(sorted(Corpus.seen), below(CORPUS))
        print(f"corpus: {len(Corpus.seen)} files")


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    COMPILERS = Compilers(shlex.split(sys.argv.pop(1)), shlex.split(sys.argv.pop(1)))
    CORPUS = find_corpus()
    if CORPUS is None:
        print("no corpus: neither $BOWLINE_PROTOS nor ../shared/protos has a .proto file")
        sys.exit(SKIP)
    unittest.main()
