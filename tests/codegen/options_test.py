#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What each --bowline_opt leaves out, adds or changes, and that what is left compiles.

    options_test.py PLUGIN PROTOC CC CXX       CC and CXX are command lines; CXX may be ""
"""

import pathlib
import shlex
import sys
import tempfile
import unittest

from compiling import Compilers, command_errors
from protoc import HERE, ROOT, Protoc, files

GOLDEN = HERE / "golden"
COMPILE = HERE / "compile"
SYSTEM = "/usr/include"
ENDINGS = (".bow.c", ".bow.h", ".pb-c.c", ".pb-c.h")


class Options(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        self.out = self.scratch / "out"

    def generate(self, options, protos=("greeter.proto",), paths=(GOLDEN, COMPILE)):
        PROTOC.generate(self.out, protos, paths, options)
        return {name: text.decode() for name, text in files(self.out).items()}

    def check_compiles(self):
        self.assertEqual(COMPILERS.compile_c(self.out), [])
        if COMPILERS.cxx:
            self.assertEqual(COMPILERS.compile_cxx(self.out), [])

    def test_client_leaves_the_servers_side_out(self):
        made = self.generate(["client"])
        self.check_compiles()
        header, source = made["greeter.bow.h"], made["greeter.bow.c"]
        for name in ("__handlers", "__serve", "__reply", "__listen", "__call_events", "bowline/server.h",
                     "bowline/call.h"):
            self.assertNotIn(name, header)
        for name in ("say_hello__call(", "say_hello__start(", "watch__open(", "watch__stream_receive("):
            self.assertIn(name, header)
        self.assertNotIn("__invoke", source)
        self.assertNotIn("call_thunks", source)
        self.assertIn(".handlers_size = 0,", source)
        self.assertIn(".stream_thunks = ", source)

    def test_server_leaves_the_clients_side_out(self):
        made = self.generate(["server"])
        self.check_compiles()
        header, source = made["greeter.bow.h"], made["greeter.bow.c"]
        for name in ("say_hello__call(", "__start(", "__fn", "__open(", "__stream", "bowline/client.h",
                     "bowline/stream.h"):
            self.assertNotIn(name, header)
        for name in ("__handlers {", "__serve(", "say_hello__reply(", "watch__listen(", "watch__send("):
            self.assertIn(name, header)
        self.assertNotIn("stream_thunks", source)
        self.assertIn(".call_thunks = ", source)

    def test_both_sides_generated_apart_have_one_hash(self):
        """So that a client's and a server's code of one .proto stay those of one service."""
        client = self.generate(["client"])["greeter.bow.c"]
        server = self.generate(["server"])["greeter.bow.c"]
        find = lambda text: [line for line in text.splitlines() if ".hash" in line]
        self.assertEqual(len(find(client)), 1)
        self.assertEqual(find(client), find(server))

    def test_header_prefix_stands_before_every_include_of_ours(self):
        made = self.generate(["header_prefix=gen/of/house"], ["imports.proto", "imports_public.proto"])
        self.assertIn('#include "gen/of/house/imports.pb-c.h"', made["imports.bow.h"])
        self.assertIn('#include "gen/of/house/imports.pb-c.h"', made["imports.pb-c.c"])
        self.assertIn('#include "gen/of/house/imports.bow.h"', made["imports.bow.c"])
        self.assertIn('#include "gen/of/house/imports_public.pb-c.h"', made["imports.pb-c.h"])
        for name, text in made.items():
            self.assertNotIn('#include "imports', text, name)

    def test_lite_leaves_the_serialized_file_out(self):
        made = self.generate(["lite"])
        self.check_compiles()
        self.assertNotIn("file_bytes", made["greeter.pb-c.c"])
        self.assertIn("file_messages", made["greeter.pb-c.c"])

    def test_no_json_leaves_the_json_names_out(self):
        made = self.generate(["no_json"], ["kinds.proto", "bare.proto"], (GOLDEN, SYSTEM))
        self.check_compiles()
        self.assertIn("{9, BOW_FIELD_UTF8, NULL, -1},", made["kinds.pb-c.c"])
        self.assertNotIn("byName", made["kinds.pb-c.c"])

    def test_imports_are_generated_without_being_named(self):
        made = self.generate(["imports"], ["imports.proto"])
        self.check_compiles()
        for stem in ("imports", "imports_public", "packages_1", "bowline/options",
                     "google/protobuf/descriptor"):
            for ending in ENDINGS:
                self.assertIn(stem + ending, made)
        alone = self.scratch / "alone"
        PROTOC.generate(alone, ["packages_1.proto"], [COMPILE])
        for name, text in files(alone).items():
            self.assertEqual(text.decode(), made[name])

    def test_list_names_what_would_be_written_and_writes_nothing_else(self):
        made = self.generate(["list,imports"], ["imports.proto"])
        self.assertEqual(list(made), ["bowline.files"])
        listed = made["bowline.files"].splitlines()
        self.out = self.scratch / "whole"
        self.assertEqual(sorted(listed), sorted(self.generate(["imports"], ["imports.proto"])))

    def test_dllexport_decl_stands_before_what_others_see(self):
        made = self.generate(["dllexport_decl=SHOWN"])
        self.assertNotIn("struct SHOWN", made["greeter.pb-c.h"])
        self.assertIn("extern SHOWN const ProtobufCMessageDescriptor demo__hello_request__descriptor;",
                      made["greeter.pb-c.h"])
        self.assertIn("SHOWN void demo__hello_request__init(", made["greeter.pb-c.h"])
        shown = '-DSHOWN=__attribute__((visibility("default")))'
        self.assertEqual(command_errors([*COMPILERS.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden",
                                         shown, *COMPILERS.includes(self.out), "-fsyntax-only",
                                         str(self.out / "greeter.pb-c.c")]), "")

    def test_messages_without_their_service_are_a_program(self):
        """x.pb-c.c needs nothing of x.bow.c, nor of libbowline."""
        self.generate([])
        main = self.scratch / "main.c"
        main.write_text('#include "greeter.pb-c.h"\n'
                        "int main(void) { return demo__hello_request__descriptor.reserved1 == NULL; }\n")
        self.assertEqual(command_errors([*COMPILERS.cc, "-std=c11", "-Wl,--no-undefined", *COMPILERS.includes(self.out),
                                         str(main), str(self.out / "greeter.pb-c.c"), "-lprotobuf-c", "-o",
                                         str(self.scratch / "main")]), "")


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    COMPILERS = Compilers(shlex.split(sys.argv.pop(1)), shlex.split(sys.argv.pop(1)))
    unittest.main()
