#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A .proto with options of Bowline is a .proto to the generators of other languages.

    languages_test.py PROTOC
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from protoc import ROOT, files

JOBS = """\
syntax = "proto3";
package jobs;
import "bowline/options.proto";
option go_package = "example.com/gen/jobs";
message Job { string kind = 1; }
service Queue {
  option (bowline.c_service_name) = "line";
  rpc Submit(Job) returns (Job) { option (bowline.blocking) = true; }
}
"""
BOTH = ["jobs.proto", "bowline/options.proto"]


class Languages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        (self.scratch / "out").mkdir()
        (self.scratch / "jobs.proto").write_text(JOBS, encoding="utf-8")

    def protoc(self, *arguments):
        done = subprocess.run(
            [PROTOC, f"-I{self.scratch}", f"-I{ROOT / 'codegen'}", *arguments],
            cwd=self.scratch, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return files(self.scratch / "out")

    def test_options_say_where_go_and_java_have_them(self):
        self.protoc("--descriptor_set_out=set", "bowline/options.proto")
        text = subprocess.run(
            [PROTOC, "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"],
            stdin=open(self.scratch / "set", "rb"), capture_output=True, text=True, check=True).stdout
        for line in ('go_package: "bowline/bowlinepb"', 'java_package: "bowline"',
                     'java_outer_classname: "BowlineOptions"'):
            self.assertIn(line, text)

    def test_python_imports_what_is_generated(self):
        out = self.protoc("--python_out=out", *BOTH)
        self.assertEqual(set(out), {"jobs_pb2.py", "bowline/options_pb2.py"})
        has_protobuf = subprocess.run([sys.executable, "-c", "import google.protobuf"],
                                      stderr=subprocess.DEVNULL, check=False).returncode == 0
        if not has_protobuf:
            self.skipTest("no google.protobuf for this Python: generated, not imported")
        program = ("import jobs_pb2 as j, bowline.options_pb2 as o\n"
                   "m = j.DESCRIPTOR.services_by_name['Queue'].methods[0]\n"
                   "assert m.GetOptions().Extensions[o.blocking]\n")
        subprocess.run([sys.executable, "-c", program], cwd=self.scratch / "out", check=True)

    def test_java_refers_to_the_class_that_is_generated(self):
        out = self.protoc("--java_out=out", *BOTH)
        self.assertIn("bowline/BowlineOptions.java", out)
        self.assertIn(b"bowline.BowlineOptions.", out["jobs/Jobs.java"])

    def test_go_refers_to_a_package_of_ones_own(self):
        if not shutil.which("protoc-gen-go"):
            self.skipTest("no protoc-gen-go")
        own = "Mbowline/options.proto=example.com/gen/bowlinepb"
        out = self.protoc(f"--go_out={own}:out", "jobs.proto")
        self.assertIn(b'"example.com/gen/bowlinepb"', out["example.com/gen/jobs/jobs.pb.go"])
        for proto in BOTH: # older ones take one package at a time
            out = self.protoc("--go_out=out", proto)
        self.assertIn(b"package bowlinepb", out["bowline/bowlinepb/options.pb.go"])
        self.assertIn(b'"bowline/bowlinepb"', out["example.com/gen/jobs/jobs.pb.go"])


if __name__ == "__main__":
    PROTOC = sys.argv.pop(1)
    unittest.main()
