#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the plugin says of a .proto or an option that it cannot use, to the letter; and that no
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
        self.assertGreater(len(bad), 2)
        for path in bad:
            with self.subTest(path.name):
                self.check(path)

    def test_one_name_in_two_files_that_do_not_see_each_other_is_told(self):
        _, stderr = PROTOC.run(self.out, ["same_packages.proto", "same_packages_first.proto"], [ERRORS])
        self.assertEqual(without_warnings(stderr), [
            PREFIX + "same_packages_first.proto:5:1: message a.b.M would be 'a__b__m__descriptor' in C, and so would "
            "message a__b.M (same_packages.proto:5:1): rename one of them, or give one of the files an option "
            "(pb_c_file).c_package",
            "same_packages_first.proto:7:1: service a.b.C would be 'a__b__c__service' in C, and so would service a__b.C "
            "(same_packages.proto:7:1): give one of them another name in C with option (bowline.c_service_name)"])
        self.assertEqual(files(self.out), {})


class BadOption(Scratch):
    def error_of(self, *options):
        status, stderr = PROTOC.run(self.out, [GREETER.name], [GREETER.parent], options)
        self.assertNotEqual(status, 0)
        self.assertEqual(files(self.out), {})
        return stderr

    def test_unknown_option_is_named_with_those_that_are_known(self):
        stderr = self.error_of("colour=red")
        self.assertIn("option 'colour=red' is not known: --bowline_opt takes client, server, ", stderr)

    def test_option_without_its_value_is_not_known(self):
        for option in ("header_prefix", "header_prefix=", "dllexport_decl=", "client=1"):
            with self.subTest(option):
                self.assertIn(f"option '{option}' is not known", self.error_of(option))

    def test_client_and_server_together_are_told(self):
        self.assertIn("options 'client' and 'server' leave nothing of a service",
                      self.error_of("client", "server"))

    def test_header_prefix_that_no_include_can_name_is_told(self):
        self.assertIn("option 'header_prefix' is no folder", self.error_of('header_prefix=a"b'))


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

    def test_file_name_that_no_include_can_name_is_told(self):
        for name in ('a"b.proto', "a\\b.proto", "a\nb.proto", "a??/b.proto", "a??=.proto"):
            with self.subTest(name):
                request = encode((1, name), (15, encode((1, name), (4, encode((1, "M"))), (12, "proto3"))))
                self.assertIn(b"a file of the request has no usable name", self.answer(request)[1])

    def test_editions_are_told(self):
        self.assertEqual(self.error_of(syntax="editions"),
                         'a.proto:1:1: syntax "editions" is not supported: write '
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

    def test_oneof_without_a_field_is_told(self):
        self.assertEqual(self.error_of(messages=[encode((1, "M"), (8, encode((1, "o"))))]),
                         "a.proto:1:1: oneof 'o' has no field")

    def test_enum_without_a_value_is_told(self):
        self.assertEqual(self.error_of((5, encode((1, "E")))), "a.proto:1:1: enum 'E' has no value")

    def test_field_without_a_type_is_told(self):
        field = encode((1, "f"), (3, 1), (4, LABEL_OPTIONAL), (5, 99))
        self.assertEqual(self.error_of(messages=[encode((1, "M"), (2, field))]),
                         "a.proto:1:1: field 'f' has no type")

    def test_long_chain_of_public_imports_is_no_crash(self):
        n_files = 3000
        files = [(15, encode((1, "f0"), (4, encode((1, "M")))))]
        files += [(15, encode((1, f"f{i}"), (3, f"f{i - 1}"), (10, 0))) for i in range(1, n_files)]
        field = encode((1, "f"), (3, 1), (4, LABEL_OPTIONAL), (5, TYPE_MESSAGE), (6, ".M"))
        last = encode((1, "last"), (3, f"f{n_files - 1}"), (4, encode((1, "N"), (2, field))), (12, "proto3"))
        response = self.answer(encode((1, "last"), *files, (15, last)))
        self.assertNotIn(1, response)
        self.assertIn(15, response)

    def test_many_errors_are_cut(self):
        messages = [encode((1, f"bad name {number}")) for number in range(100)]
        lines = self.error_of(messages=messages).splitlines()
        self.assertEqual(len(lines), 21)
        self.assertEqual(lines[20], "and 80 more errors")


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    unittest.main()
