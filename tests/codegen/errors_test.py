#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the plugin says of a .proto or a child that it cannot use, to the letter; and that no
file comes out then.

    errors_test.py PLUGIN PROTOC

Each errors/*.proto ends with the lines it expects after `// expect: `; one without is there
to be imported.
"""

import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

from protoc import HERE, Protoc, decode, encode, files

ERRORS = HERE / "errors"
PREFIX = "--bowline_out: "
EXPECT = "// expect: "

# Of descriptor.proto.
LABEL_OPTIONAL = 1
TYPE_INT32 = 5
TYPE_MESSAGE = 11

STACK_BYTES = 1 << 20

GREETER = HERE / "golden" / "greeter.proto"


def expected_lines(path):
    return [line[len(EXPECT):] for line in path.read_text().splitlines() if line.startswith(EXPECT)]


def without_warnings(stderr):
    """protoc's own remarks on unused imports stand between its lines and ours."""
    return [line for line in stderr.splitlines() if ": warning: " not in line]


def program(folder, text):
    path = pathlib.Path(folder) / "child"
    path.write_text(text)
    path.chmod(0o755)
    return path


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        self.out = self.scratch / "out"


class BadProto(Scratch):
    def check(self, path):
        expected = expected_lines(path)
        status, stderr = PROTOC.run(self.out, [path.name], [ERRORS])
        self.assertNotEqual(status, 0)
        lines = without_warnings(stderr)
        self.assertEqual(lines[:1], [PREFIX + expected[0]])
        self.assertEqual(lines[1:], expected[1:])
        self.assertEqual(files(self.out), {})

    def test_each_bad_proto_is_told_by_line_and_makes_no_file(self):
        bad = [path for path in sorted(ERRORS.glob("*.proto")) if expected_lines(path)]
        self.assertGreater(len(bad), 15)
        for path in bad:
            with self.subTest(path.name):
                self.check(path)

    def test_both_files_of_a_clash_named_together_clash_too(self):
        path = ERRORS / "same_packages.proto"
        _, stderr = PROTOC.run(self.out, [path.name, "same_packages_first.proto"], [ERRORS])
        self.assertEqual(without_warnings(stderr), [PREFIX + expected_lines(path)[0]])


class Child(Scratch):
    def run_with(self, child, **kwargs):
        status, stderr = PROTOC.run(self.out, [GREETER.name], [GREETER.parent],
                                    [f"protoc_gen_c={child}"], **kwargs)
        self.assertNotEqual(status, 0)
        self.assertEqual(files(self.out), {})
        return stderr

    def response(self, content):
        return self.child_that_says((15, encode((1, "greeter.pb-c.h"), (15, content))))

    def child_that_says(self, *fields):
        (self.scratch / "response").write_bytes(encode(*fields))
        return program(self.scratch, f"#!/bin/sh\nexec cat '{self.scratch}/response'\n")

    def test_missing_is_named_with_how_to_install_it(self):
        stderr = self.run_with("/nowhere/protoc-gen-c")
        self.assertIn("/nowhere/protoc-gen-c cannot be run", stderr)
        self.assertIn("protobuf-c-compiler", stderr)
        self.assertIn("BOWLINE_PROTOC_GEN_C", stderr)

    def test_missing_by_environment_is_named(self):
        status, stderr = PROTOC.run(self.out, [GREETER.name], [GREETER.parent],
                                    environment={"BOWLINE_PROTOC_GEN_C": "no-such-program"})
        self.assertNotEqual(status, 0)
        self.assertIn("no-such-program cannot be run", stderr)

    def test_crash_is_told_with_its_signal(self):
        child = program(self.scratch, "#!/bin/sh\nkill -SEGV $$\n")
        self.assertIn(f"{child} crashed with signal 11", self.run_with(child))

    def test_exit_status_is_told(self):
        child = program(self.scratch, "#!/bin/sh\necho 'no luck today' >&2\nexit 3\n")
        stderr = self.run_with(child)
        self.assertIn(f"{child} exited with status 3", stderr)
        self.assertIn("no luck today", stderr)

    def test_garbage_is_no_response(self):
        child = program(self.scratch, "#!/bin/sh\necho garbage\n")
        self.assertIn(f"what {child} answered is not a plugin's response", self.run_with(child))

    def test_error_of_the_child_is_passed_on(self):
        child = self.child_that_says((1, "cannot do that"))
        self.assertIn(f"{child}: cannot do that", self.run_with(child))

    def test_version_outside_the_range_names_both(self):
        for version, text in ((1003003, "1.3.3"), (1006000, "1.6.0")):
            with self.subTest(text):
                child = self.response(f"#elif {version} < PROTOBUF_C_MIN_COMPILER_VERSION\n")
                stderr = self.run_with(child)
                self.assertIn(f"is protoc-gen-c {text}, and this protoc-gen-bowline takes 1.4.0 to "
                              "1.5.x", stderr)

    def test_version_that_is_not_there_is_refused(self):
        self.assertIn("of a version that it does not say", self.run_with(self.response("x")))

    def test_versions_inside_the_range_are_taken(self):
        for version in (1004000, 1004001, 1005002):
            with self.subTest(version):
                child = self.response(f"#elif {version} < PROTOBUF_C_MIN_COMPILER_VERSION\n")
                PROTOC.generate(self.out, [GREETER.name], [GREETER.parent],
                                [f"protoc_gen_c={child}"])

    def test_option_of_the_child_is_handed_on(self):
        PROTOC.generate(self.out, [GREETER.name], [GREETER.parent], ["dllexport_decl=SHOWN"])
        self.assertIn(b"struct SHOWN ", files(self.out)["greeter.pb-c.h"])

    def test_unknown_option_is_named(self):
        _, stderr = PROTOC.run(self.out, [GREETER.name], [GREETER.parent], ["colour=red"])
        self.assertIn("option 'colour=red' is not known", stderr)
        self.assertEqual(files(self.out), {})


class BadRequest(unittest.TestCase):
    def run_plugin(self, request):
        """On a small stack, so that recursion without an end shows."""
        return subprocess.run([PROTOC.plugin], input=request, capture_output=True, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(
                                  resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES)))

    def answer(self, request):
        """The fields of the response to a whole request."""
        done = self.run_plugin(request)
        self.assertEqual(done.returncode, 0, done.stderr)
        return decode(done.stdout)

    def error_of(self, *fields, messages=(encode((1, "M")),), syntax="proto3"):
        """The error for one file of package p that also has `fields`."""
        file = encode((1, "a.proto"), (2, "p"), *((4, message) for message in messages), *fields,
                      (12, syntax))
        return self.answer(encode((1, "a.proto"), (15, file)))[1].decode()

    def test_bytes_that_are_no_request_exit_with_1_and_a_message(self):
        for request in (b"garbage", b"\x0a", b"\x7a\x05abc", b"\x0b\x0c", b"\xff" * 64):
            with self.subTest(request):
                done = self.run_plugin(request)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, b"")
                self.assertIn(b"holds no CodeGeneratorRequest", done.stderr)

    def test_proto3_optional_is_announced_also_with_an_error(self):
        response = self.answer(encode((1, "gone.proto")))
        self.assertEqual(response[2], 1)
        self.assertEqual(response[1], b"the request lacks the file 'gone.proto'")

    def test_editions_are_told(self):
        self.assertEqual(self.error_of(syntax="editions"),
                         'a.proto:1:1: syntax "editions" is not supported by protobuf-c: write '
                         'syntax = "proto3" or "proto2"')

    def test_missing_import_is_told(self):
        self.assertEqual(self.error_of((3, "b.proto")),
                         "a.proto:1:1: imports 'b.proto', which the request lacks")

    def test_type_that_nothing_declares_is_told(self):
        field = encode((1, "f"), (3, 1), (4, LABEL_OPTIONAL), (5, TYPE_MESSAGE), (6, ".p.Gone"))
        self.assertEqual(self.error_of(messages=[encode((1, "M"), (2, field))]),
                         "a.proto:1:1: type '.p.Gone' is not declared in the request")

    def test_names_that_are_none_are_told(self):
        self.assertEqual(self.error_of(messages=[encode((1, "M; int evil"))]),
                         "a.proto:1:1: 'M; int evil' is not a name")

    def test_names_declared_twice_are_told(self):
        self.assertEqual(self.error_of(messages=[encode((1, "M")), encode((1, "M"))]),
                         "a.proto:1:1: 'p.M' is declared twice")

    def test_oneof_that_is_not_there_is_told(self):
        field = encode((1, "f"), (3, 1), (4, LABEL_OPTIONAL), (5, TYPE_INT32), (9, 7))
        self.assertEqual(self.error_of(messages=[encode((1, "M"), (2, field))]),
                         "a.proto:1:1: names a oneof that is not there")

    def test_long_chain_of_public_imports_is_no_crash(self):
        files = [(15, encode((1, "f0"), (4, encode((1, "M")))))]
        files += [(15, encode((1, f"f{i}"), (3, f"f{i - 1}"), (10, 0))) for i in range(1, 20000)]
        last = encode((1, "last"), (3, "f19999"), (12, "proto3"))
        response = self.answer(encode((1, "last"), (2, "protoc_gen_c=false"), *files, (15, last)))
        self.assertIn(b"false exited with status 1", response[1])

    def test_many_errors_are_cut(self):
        messages = [encode((1, f"bad name {number}")) for number in range(100)]
        lines = self.error_of(messages=messages).splitlines()
        self.assertEqual(len(lines), 21)
        self.assertEqual(lines[20], "and 80 more errors")


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    unittest.main()
