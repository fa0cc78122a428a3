# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Each check finds what it is there for: a small clean tree, one thing made wrong at a time.

    checks_test.py CHECKS_FOLDER
"""

import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

CHECKS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path("tools/checks")
sys.path.insert(0, str(CHECKS))  # as for a script that is run there
sys.dont_write_bytecode = True   # the tools without a suffix would leave files called toolsc
SPDX = "/* SPDX-License-Identifier: Apache-2.0 OR MIT */\n"


@functools.lru_cache(maxsize=None)
def tool(path):
    """The script as a module: 200 runs of it in processes of their own are most of a minute."""
    name = f"tool_{path.stem.replace('-', '_')}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def run_tool(path, *arguments):
    """Its exit code and what it prints, as if it had been run."""
    out = io.StringIO()
    with mock.patch.object(sys, "argv", [str(path), *arguments]), contextlib.redirect_stdout(out):
        try:
            code = tool(path).main()
        except SystemExit as end:
            code = end.code
    return code, out.getvalue()


def block_of(includes):
    return "".join(f"#include {name}\n" for name in includes) + "\n" * bool(includes)


def source(*includes, code="int bow__x;\n"):
    """The includes begin in line 6."""
    return f"{SPDX}/*\n * A concept.\n */\n\n{block_of(includes)}{code}"


def header(guard, *includes):
    """The includes begin in line 7."""
    begin = f"{SPDX}#ifndef {guard}\n#define {guard}\n\n/* A concept. */\n\n"
    return f"{begin}{block_of(includes)}#endif\n"


CLEAN = {
    "include/bowline/context.h": header("BOWLINE_CONTEXT_H", "<stddef.h>"),
    "include/bowline/loop.h": header("BOWLINE_LOOP_H", "<bowline/context.h>"),
    "include/bowline/call.h": header("BOWLINE_CALL_H", "<bowline/context.h>"),
    "base/map.h": header("BOWLINE_BASE_MAP_H", "<bowline/context.h>"),
    "base/map.c": source('"base/map.h"'),
    "transport/loop/loop.h": header("BOWLINE_TRANSPORT_LOOP_LOOP_H"),
    "transport/loop/loop.c": source('"base/map.h"', '"transport/loop/loop.h"', "<sys/epoll.h>"),
    "transport/channel/channel.h": header("BOWLINE_TRANSPORT_CHANNEL_CHANNEL_H"),
    "rpc/client/client.h": header("BOWLINE_RPC_CLIENT_CLIENT_H"),
    "rpc/core/call/call.h": header("BOWLINE_RPC_CORE_CALL_CALL_H"),
    "rpc/core/call/call.c": source('"rpc/core/call/call.h"', "<protobuf-c/protobuf-c.h>"),
    "rpc/native/session.h": header("BOWLINE_RPC_NATIVE_SESSION_H"),
    "rpc/native/session.c": source('"base/map.h"', '"rpc/core/call/call.h"'),
    "rpc/http2/session.c": source('"rpc/core/call/call.h"', "<nghttp2/nghttp2.h>"),
    "rpc/connection/conn.c": source('"rpc/native/session.h"', '"transport/loop/loop.h"', "<bowline/loop.h>"),
    "examples/greeter/server.c": source('"greeter.bow.h"', "<bowline/call.h>"),
}


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name, text in CLEAN.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_check(self, name, *arguments):
        return run_tool(CHECKS / f"{name}.py", str(self.root), *arguments)

    def assert_clean(self, name, *arguments):
        code, out = self.run_check(name, *arguments)
        self.assertEqual((code, out.split(":")[0]), (0, "clean"), out)

    def assert_finds(self, name, *expected, arguments=()):
        """One finding, and it begins with the place and says the rest."""
        code, out = self.run_check(name, *arguments)
        self.assertEqual(code, 1, out)
        findings = out.splitlines()[:-1]
        self.assertEqual(len(findings), 1, out)
        self.assertTrue(findings[0].startswith(expected[0]), out)
        for part in expected[1:]:
            self.assertIn(part, findings[0])


class IncludesTest(TreeTest):
    def test_includes_of_the_clean_tree_are_clean(self):
        self.assert_clean("includes")

    def test_includes_against_the_direction_are_found(self):
        for where, name, why in (
            ("base/map.c", '"transport/loop/loop.h"', "base must not include"),
            ("base/map.c", '"rpc/core/call/call.h"', "base must not include"),
            ("base/map.c", "<bowline/loop.h>", "transport's"),
            ("transport/loop/loop.c", '"transport/channel/channel.h"', "transport/loop must not include"),
            ("rpc/core/call/call.c", '"rpc/client/client.h"', "rpc/core/call must not include"),
            ("base/map.c", "<protobuf-c/protobuf-c.h>", "must not include"),
            ("base/map.c", "<pthread.h>", "must not include"),
            ("transport/loop/loop.c", '"rpc/core/call/call.h"', "transport/loop must not include"),
            ("transport/loop/loop.c", "<bowline/call.h>", "rpc's"),
            ("rpc/core/call/call.c", '"transport/loop/loop.h"', "rpc/core/call must not include"),
            ("rpc/core/call/call.c", '"rpc/native/session.h"', "rpc/core/call must not include"),
            ("rpc/core/call/call.c", "<bowline/loop.h>", "transport's"),
            ("rpc/core/call/call.c", "<sys/socket.h>", "must not include"),
            ("rpc/native/session.c", '"transport/loop/loop.h"', "rpc/native must not include"),
            ("rpc/http2/session.c", '"rpc/native/session.h"', "rpc/http2 must not include"),
            ("rpc/native/session.c", "<pthread.h>", "must not include"),
            ("rpc/native/session.c", "<nghttp2/nghttp2.h>", "must not include"),
            ("rpc/server/server.c", "<openssl/ssl.h>", "must not include"),
            ("examples/greeter/server.c", '"base/map.h"', "examples must not include"),
            ("codegen/main.c", '"transport/loop/loop.h"', "codegen must not include"),
        ):
            with self.subTest(where=where, name=name):
                self.write(where, source(name))
                self.assert_finds("includes", f"{where}:6: ", why)
                (self.root / where).unlink()
                if where in CLEAN:
                    self.write(where, CLEAN[where])

    def test_includes_of_public_headers_are_held_to_their_level(self):
        for name, why in (
            ('"base/map.h"', "a public header"),
            ("<bowline/call.h>", "rpc's"),
            ("<bowline/gone.h>", "does not exist"),
        ):
            with self.subTest(name=name):
                self.write("include/bowline/loop.h", header("BOWLINE_LOOP_H", name))
                self.assert_finds("includes", "include/bowline/loop.h:7: ", why)

    def test_includes_without_their_folder_are_found(self):
        self.write("base/map.c", source('"map.h"'))
        self.assert_finds("includes", "base/map.c:6: ", "path from the root")

    def test_includes_of_files_in_a_ring_are_found(self):
        self.write("base/a.c", source(code="void bow__a(void)\n{\n    bow__b();\n}\n"))
        self.write("base/b.c", source(code="void bow__b(void)\n{\n    /* bow__a() */\n}\n"))
        self.assert_clean("includes")
        self.write("base/b.c", source(code="void bow__b(void)\n{\n    bow__c();\n}\n"))
        self.write("base/c.c", source(code="void bow__c(void)\n{\n    (void)bow__a;\n}\n"))
        self.assert_finds("includes", "base/a.c:1: ", "a ring of 3 files", "base/c uses bow__a")

    def test_includes_of_files_against_their_order_are_found(self):
        self.write("rpc/client/client.c", source(code="void bow__a(void)\n{\n    bow__b();\n}\n"))
        self.write("rpc/client/target.c", source(code="void bow__b(void)\n{\n}\n"))
        self.assert_clean("includes")
        self.write("rpc/client/client.c", source(code="void bow__a(void)\n{\n}\n"))
        self.write("rpc/client/target.c", source(code="void bow__b(void)\n{\n    bow__a();\n}\n"))
        self.assert_finds("includes", "rpc/client/target.c:1: ", "uses bow__a of rpc/client/client")

    def test_includes_of_a_file_without_place_in_the_order_are_found(self):
        self.write("rpc/client/odd.c", source())
        self.assert_finds("includes", "rpc/client/odd.c:1: ", "no place in ORDER")

    def test_includes_in_a_folder_without_rule_are_found(self):
        self.write("docs/code.c", source())
        self.assert_finds("includes", "docs/code.c:1: ", "no rule")


class HygieneTest(TreeTest):
    def test_hygiene_of_the_clean_tree_is_clean(self):
        self.assert_clean("hygiene")

    def test_hygiene_finds_what_is_wrong(self):
        for where, text, place, why in (
            ("base/a.c", "\n/* A concept. */\n", 1, "no licence"),
            ("base/a.c", SPDX + "int bow__x;\n", 2, "no opening comment"),
            ("base/a.c", source(code="\tint bow__x;\n"), 6, "a tab"),
            ("base/a.c", source(code="int bow__x; \n"), 6, "white space"),
            ("base/a.c", source(code="/* TO" + "DO: more */\n"), 6, "unfinished"),
            ("base/a.c", source(code="atomic_thread_fence(order);\n"), 6, "a fence"),
            ("base/a.c", source(code="int bow__x;"), 6, "line feed"),
            ("base/a.c", source(code="int bow__x;\n\n"), 8, "line feed"),
            ("base/a.c", source(code="int bow__x;\n" * 900), 905, "at most 900"),
            ("base/a.h", header("BOWLINE_BASE_B_H"), 2, "BOWLINE_BASE_A_H"),
            ("include/bowline/buf.h", header("BOWLINE_BASE_BUF_H"), 2, "BOWLINE_BUF_H"),
            ("base/a.h", header("BOWLINE_BASE_A_H", *["<a.h>"] * 450), 458, "at most 450"),
            ("tools/x.py", "print()\n", 1, "no licence"),
            ("tools/x", "#!/bin/sh\n", 1, "no licence"),
            ("base/meson.build", "x = 1\n", 1, "no licence"),
        ):
            with self.subTest(where=where, why=why):
                self.write(where, text)
                self.assert_finds("hygiene", f"{where}:{place}: ", why)
                (self.root / where).unlink()

    def test_hygiene_leaves_data_and_build_folders_alone(self):
        self.write("tests/fuzz/corpus/x.c", "\t")
        self.write("tests/build/x.c", "\t")
        self.write("tests/data/x.txt", "\t")
        self.assert_clean("hygiene")


class FormatTest(TreeTest):
    def test_format_finds_what_would_change(self):
        code, out = self.run_check("format")
        if code == 77:
            self.skipTest(out)
        self.write(".clang-format", "BasedOnStyle: LLVM\nSortIncludes: Never\n")
        self.assert_clean("format")
        self.write("base/map.c", source(code="int   bow__x;\n"))
        self.assert_finds("format", "base/map.c:", "clang-format -i base/map.c")


PAGE = """\
.\\" SPDX-License-Identifier: Apache-2.0 OR MIT
.Dd November 28, 2026
.Dt BOWLINE 7
.Os
.Sh NAME
.Nm bowline
.Nd a concept
.Sh DESCRIPTION
It is in
.In bowline/call.h .
"""


class MutantsTest(TreeTest):
    HEAD = "Fault: F01, it stops\nGuard: it is woken\nTests: map\n\n"
    CODE = "static int go_on(int n)\n{\n    if (n > 1 &&\n        n < 9) {\n        return 1;\n    }\n    return 0;\n}\n"

    def setUp(self):
        super().setUp()
        self.write("base/map.c", source(code=self.CODE))

    def mutant(self, change):
        self.write("tests/mutants/F01-it.mutant", self.HEAD + change)

    def test_mutants_that_fit_whatever_the_line_breaks_are_clean(self):
        self.mutant("In: base/map.c: go_on\n-    if (n > 1 && n < 9) {\n+    if (n > 1) {\n")
        self.assert_clean("mutants")
        self.mutant("In: base/map.c: go_on\n         return 1;\n     }\n-    return 0;\n+    return 2;\n")
        self.assert_clean("mutants")

    def test_mutants_that_do_not_fit_are_found(self):
        for change, why in (
            ("In: base/map.c: go_on\n-    return 7;\n", "0 places"),
            ("In: base/map.c: go_on\n-    return\n", "2 places"),
            ("In: base/map.c: come\n-    return 0;\n", "no function come"),
            ("In: base/list.c\n-    return 0;\n", "no file base/list.c"),
            ("", "needs Fault:"),
        ):
            with self.subTest(why=why):
                self.mutant(change)
                code, out = self.run_check("mutants")
                self.assertEqual(code, 1, out)
                self.assertIn(why, out)

    def test_mutants_name_tests_of_the_build(self):
        self.mutant("In: base/map.c: go_on\n-    return 0;\n+    return 2;\n")
        self.write("build/meson-info/intro-tests.json", '[{"name": "map"}]')
        self.assert_clean("mutants", str(self.root / "build"))
        self.write("build/meson-info/intro-tests.json", '[{"name": "map_native"}]')
        code, out = self.run_check("mutants", str(self.root / "build"))
        self.assertEqual(code, 1, out)
        self.assertIn("no test is called map", out)


class ManTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("docs/man/bowline.7", PAGE)
        code, out = self.run_check("man")
        if code == 77:
            self.skipTest(out)

    def test_man_of_clean_pages_is_clean(self):
        self.assert_clean("man")

    def test_man_finds_what_mandoc_finds(self):
        self.write("docs/man/bowline.7", PAGE + ".Pp\n")
        self.assert_finds("man", "docs/man/bowline.7:11:", "paragraph")

    def test_man_finds_headers_that_do_not_exist(self):
        self.write("docs/man/bowline.7", PAGE.replace("call.h", "cull.h"))
        self.assert_finds("man", "docs/man/bowline.7:10:", "cull.h")

    def test_man_finds_pages_without_a_licence(self):
        self.write("docs/man/bowline.7", PAGE.replace("SPDX", "spdx"))
        self.assert_finds("man", "docs/man/bowline.7:1:", "first line")


@unittest.skipUnless(shutil.which("cc") and (shutil.which("g++") or shutil.which("clang++")),
                     "no C and C++ compiler")
class HeadersTest(TreeTest):
    def test_headers_of_the_clean_tree_are_clean(self):
        self.assert_clean("headers", "cc")

    def test_headers_that_need_another_before_them_are_found(self):
        text = header("BOWLINE_CALL_H").replace("#endif", "size_t bow_size(void);\n#endif")
        self.write("include/bowline/call.h", text)
        code, out = self.run_check("headers", "cc")
        self.assertEqual(code, 1)
        self.assertIn("include/bowline/call.h:7: as C11 alone: ", out)
        self.assertIn("include/bowline/call.h:7: as C++17 alone: ", out)

    def test_headers_that_are_no_cxx_are_found(self):
        text = header("BOWLINE_CALL_H").replace("#endif", "int bow_new(int class);\n#endif")
        self.write("include/bowline/call.h", text)
        self.assert_finds("headers", "include/bowline/call.h:7: as C++17 alone: ", arguments=["cc"])

    def test_headers_without_a_guard_are_found(self):
        self.write("include/bowline/call.h", "enum bow_twice { BOW_TWICE };\n")
        code, out = self.run_check("headers", "cc")
        self.assertEqual(code, 1)
        self.assertIn("include/bowline/call.h:1: as C11 alone: ", out)


MAP = "BOWLINE_0 {\n    global:\n        bow_a;\n        bow_b;\n    local:\n        *;\n};\n"
DECLARED = "BOW_EXPORT int bow_a(void);\nBOW_EXPORT\nint bow_b(int x,\n          int y);\n"
DEFINED = "const int bow__c[2] = {1, 2};\nint bow_a(void) { return bow__c[0]; }\n"
DEFINED_B = "int bow_b(int x, int y) { return x + y; }\n"


@unittest.skipUnless(shutil.which("cc") and shutil.which("ar"), "no C compiler")
class SymbolsTest(TreeTest):
    def build(self, code, version_map=MAP):
        self.write("bowline.map", version_map)
        self.write("x.c", code)
        for command in (
            ["cc", "-fPIC", "-c", "x.c", "-o", "x.o"],
            ["ar", "rcs", "x.a", "x.o"],
            ["cc", "-shared", "x.o", "-o", "x.so", "-Wl,--version-script=bowline.map"],
        ):
            subprocess.run(command, cwd=self.root, check=True)
        return [str(self.root / name) for name in ("x.so", "x.a", "bowline.map")]

    def setUp(self):
        super().setUp()
        self.write("include/bowline/context.h", header("BOWLINE_CONTEXT_H") + DECLARED)

    def test_symbols_of_a_clean_library_are_clean(self):
        pointers = "static const char *const names[] = {\"a\"};\nconst char *const *bow__n = names;\n"
        pointers = pointers.replace("*bow__n", "*const bow__n")
        self.assert_clean("symbols", *self.build(DEFINED + DEFINED_B + pointers))

    def test_symbols_listed_and_not_defined_are_found(self):
        self.assert_finds("symbols", "bowline.map:4: ", "bow_b is not defined",
                          arguments=self.build(DEFINED))

    def test_symbols_declared_and_not_listed_are_found(self):
        arguments = self.build(DEFINED + DEFINED_B, MAP.replace("        bow_b;\n", ""))
        self.assert_finds("symbols", "include/bowline/context.h:10: ", "bow_b", "add it",
                          arguments=arguments)

    def test_symbols_listed_and_not_declared_are_found(self):
        code = DEFINED + DEFINED_B + "int bow_c(void) { return 1; }\n"
        arguments = self.build(code, MAP.replace("bow_b;\n", "bow_b;\n        bow_c;\n"))
        self.assert_finds("symbols", "bowline.map:5: ", "bow_c has no BOW_EXPORT",
                          arguments=arguments)

    def test_symbols_out_of_order_are_found(self):
        version_map = MAP.replace("bow_a", "bow_x").replace("bow_b", "bow_a").replace("bow_x", "bow_b")
        self.assert_finds("symbols", "bowline.map:3: ", "sort",
                          arguments=self.build(DEFINED + DEFINED_B, version_map))

    def test_symbols_for_our_other_libraries_need_their_mark(self):
        version_map = MAP.replace("bow_b;\n", "bow_b;\n        bow__d;\n")
        code = DEFINED + DEFINED_B + "int bow__d(void) { return 1; }\n"
        shared = header("BOWLINE_BASE_MAP_H") + "BOW__SHARED int bow__d(void);\n"
        arguments = self.build(code, version_map)
        self.assert_finds("symbols", "bowline.map:5: ", "bow__d has no", arguments=arguments)
        self.write("base/map.h", shared)
        self.assert_clean("symbols", *arguments)
        arguments = self.build(code, MAP)
        self.assert_finds("symbols", "base/map.h:", "bow__d is not in", arguments=arguments)

    def test_symbols_of_another_library_are_held_to_its_headers(self):
        self.write("include/bowline/tls.h", header("BOWLINE_TLS_H") + "BOW_EXPORT int bow_t(void);\n")
        self.assert_clean("symbols", *self.build(DEFINED + DEFINED_B))
        version_map = MAP.replace("bow_a", "bow_t").replace("        bow_b;\n", "")
        arguments = self.build("int bow_t(void) { return 1; }\n", version_map)
        self.assert_clean("symbols", *arguments, "tls.h")

    def test_symbols_exported_by_a_wildcard_are_found(self):
        code = DEFINED + DEFINED_B + "int bow_c(void) { return 1; }\n"
        arguments = self.build(code, MAP.replace("bow_b;\n", "bow_b;\n        bow_c*;\n"))
        self.assert_finds("symbols", "bowline.map:1: ", "bow_c is exported and not listed",
                          arguments=arguments)

    def test_symbols_outside_the_namespace_are_found(self):
        code = DEFINED + DEFINED_B + "int helper(void) { return 1; }\n"
        self.assert_finds("symbols", "x.o:1: ", "global symbol helper", arguments=self.build(code))

    def test_symbols_that_can_change_are_found(self):
        for data in (
            "static int bow__x;",
            "static int bow__x = 1;",
            "int bow__x;",
            "int bow__x = 1;",
            "static _Thread_local int bow__x;",
            "__attribute__((section(\".data.special\"))) int bow__x = 1;",
        ):
            with self.subTest(data=data):
                arguments = self.build(f"{DEFINED}{DEFINED_B}{data}\nint bow__next(void) {{ return ++bow__x; }}\n")
                self.assert_finds("symbols", "x.o:1: bow__x in ", "can change", arguments=arguments)


class ApiIndexTest(TreeTest):
    """The tree of the other tests has one concept a header, and no declarations; here are some."""

    DECLARED = """
/** A loop that goes round. Not listed: what follows the first sentence. */
struct bow_loop;

/** What one is made with, e.g. a name. More. */
struct bow_loop_options {
    int n; /* of them */
};

/**
 * Make `n` loops; | is
 * kept whole. Thread: any.
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_new(const struct bow_loop_options *options,
                                         struct bow_loop **ret_loop);
"""
    LINES = [
        "| `struct bow_loop` | A loop that goes round. |",
        "| `struct bow_loop_options` | What one is made with, e.g. a name. |",
        "| `bow_loop_new()` | Make `n` loops; \\| is kept whole. |",
    ]

    def run_check(self, name, *arguments):
        return run_tool(CHECKS.parent / "api-index", *arguments, str(self.root))

    def declare(self, text):
        self.write("include/bowline/loop.h", header("BOWLINE_LOOP_H").replace("#endif\n", text + "#endif\n"))

    def setUp(self):
        super().setUp()
        self.write("docs/api.md", "")
        self.declare(self.DECLARED)
        self.run_check("api_index")

    def test_api_index_lists_what_is_declared_with_its_first_sentence(self):
        self.assert_clean("api_index", "--check")
        page = (self.root / "docs/api.md").read_text(encoding="utf-8")
        self.assertEqual([line for line in page.splitlines() if line.startswith("| `")], self.LINES)

    def test_api_index_finds_a_page_that_is_out_of_date(self):
        self.declare(self.DECLARED.replace("goes round", "stands still"))
        self.assert_finds("api_index", "docs/api.md:1: ", "run tools/api-index", arguments=["--check"])

    def test_api_index_finds_what_has_no_sentence(self):
        for comment in ("", "/** Thread: any. */\n", "/* Not for users. */\n"):
            with self.subTest(comment=comment):
                self.declare(self.DECLARED + comment + "BOW_EXPORT int bow_loop_run(void);\n")
                self.run_check("api_index")
                self.assert_finds("api_index", "include/bowline/loop.h:", "bow_loop_run() has no comment",
                                  arguments=["--check"])

    def test_api_index_finds_a_header_without_a_place(self):
        self.write("include/bowline/new.h", header("BOWLINE_NEW_H"))
        self.assert_finds("api_index", "include/bowline/new.h:1: ", "give it a place", arguments=["--check"])


class RowsTest(TreeTest):
    CALLS = "# Faults\n\n| id | kind |\n| --- | --- |\n| F16 | it waits |\n"
    PAGE = ("# Rows\n\n| id | behaviour |\n| --- | --- |\n| L01 | it goes |\n| F02 | it stops |\n\n"
            "## What is missing\n\n| L01 | nothing |\n")
    TESTS = ("static void test_loop_l01_goes(void **state)\n{\n}\n"
             "static void\ntest_loop_l01_f02_stops_though_its_name_is_long(void **state)\n{\n}\n"
             "    cmocka_unit_test(test_loop_l01_goes),\n")

    def setUp(self):
        super().setUp()
        self.write("docs/transport-rows.md", self.PAGE)
        self.write("docs/call-faults.md", self.CALLS)
        self.write("tests/rpc/call_test.c", "static void test_call_f16_waits(void **state)\n{\n}\n")
        self.write("tests/mutants/F16-waits.mutant", "")
        self.write("tests/transport/loop_test.c", self.TESTS)
        self.write("tests/mutants/F02-goes-on.mutant", "")

    def rows(self, *arguments):
        code, out = run_tool(CHECKS.parent / "rows", "--root", str(self.root), *arguments)
        return code, out.splitlines()

    def test_rows_are_printed_with_their_tests_and_mutants(self):
        code, lines = self.rows()
        self.assertEqual(code, 0, lines)
        where = "     tests/transport/loop_test.c:"
        self.assertEqual(lines, [
            "L01  it goes",
            where + "test_loop_l01_f02_stops_though_its_name_is_long",
            where + "test_loop_l01_goes",
            "",
            "F02  it stops",
            where + "test_loop_l01_f02_stops_though_its_name_is_long",
            "     mutants: F02-goes-on",
            "",
            "F16  it waits",
            "     tests/rpc/call_test.c:test_call_f16_waits",
            "     mutants: F16-waits",
            "",
            "3 rows and faults, 3 tests, 2 mutants: none is empty",
        ])

    def test_rows_of_given_ids_are_printed_alone(self):
        code, lines = self.rows("f02")
        self.assertEqual((code, lines[0], len(lines)), (0, "F02  it stops", 5))
        self.assertEqual(self.rows("L77")[0], 1)

    def test_rows_that_are_empty_are_found(self):
        for name, text, expected in (
            ("tests/transport/loop_test.c", self.TESTS.replace("_f02_", "_"), "F02 has no test"),
            ("tests/transport/loop_test.c", self.TESTS.replace("_l01_", "_"), "L01 has no test"),
            ("tests/transport/loop_test.c", self.TESTS.replace("loop_l01_g", "loop_l02_g"),
             "L02 is not in docs/transport-rows.md"),
            ("docs/transport-rows.md", "# Rows\n", "L01 is not in"),
        ):
            with self.subTest(expected=expected):
                self.write(name, text)
                code, lines = self.rows()
                self.assertEqual(code, 1)
                self.assertTrue(lines[-2].startswith(expected), lines)
                self.setUp()

    def test_rows_need_a_mutant_for_each_fault(self):
        (self.root / "tests/mutants/F02-goes-on.mutant").unlink()
        code, lines = self.rows()
        self.assertEqual(code, 1)
        self.assertTrue(lines[-2].startswith("F02 has no mutant"), lines)


if __name__ == "__main__":
    unittest.main()
