#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold what docs/messages.md shows of other generators to what Bowline's users write there.

    beside.py TOP CC     CC is the compiler's command line

Each snippet builds the same message: it is put into a program of its own, compiled with that generator's code, and what
the program writes is decoded by protoc. A generator that is missing is skipped, and said.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import blocks

SKIP = 77
PAGE = "docs/messages.md"
ORDER = """\
items {
  name: "pears"
}
labels {
  key: "state"
  value: "new"
}
card: "1234"
receipt: "\\001\\002"
"""
NANOPB_SIZES = """\
shop.Item.name max_size:40
shop.Order.customer max_size:40
shop.Order.items max_count:4
shop.Order.labels max_count:4
shop.Order.LabelsEntry.* max_size:20
shop.Order.card max_size:20
shop.Order.voucher max_size:20
shop.Order.receipt max_size:20
"""
GO_SOURCES = "/usr/share/gocode"
GO_PLUGIN = "google.golang.org/protobuf/cmd/protoc-gen-go"

NANOPB = """\
#include "shop.pb.h"
#include <pb_encode.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    shop_Item item = shop_Item_init_zero, *request = &item;
    pb_byte_t bytes[500];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));
    strcpy(item.name, "pears");
%s
    return pb_encode(&stream, shop_Order_fields, &order) &&
                   fwrite(bytes, 1, stream.bytes_written, stdout) == stream.bytes_written ? 0 : 1;
}
"""
CPP = """\
#include "shop.pb.h"
#include <iostream>
int main()
{
    shop::Item request;
    request.set_name("pears");
%s
    return order.SerializeToOstream(&std::cout) ? 0 : 1;
}
"""
GO = """\
package main

import (
    "os"

    "example.com/shop"
    "google.golang.org/protobuf/proto"
)

func main() {
    request := &shop.Item{Name: "pears"}
%s
    bytes, err := proto.Marshal(order)
    if err != nil {
        panic(err)
    }
    os.Stdout.Write(bytes)
}
"""
PROTOBUF_C = """\
#include "shop.pb-c.h"
#include <stdio.h>
static void shop__orders__last__reply(void *call, const Shop__Order *order)
{
    uint8_t bytes[500];
    (void)call;
    fwrite(bytes, 1, shop__order__pack(order, bytes), stdout);
}
struct bow_call;
%s
int main(void)
{
    Shop__Item request = SHOP__ITEM__INIT;
    request.name = (char *)"pears";
    last_by_hand(NULL, &request, NULL);
    return 0;
}
"""


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def snippet(page, language):
    """The indented block below the line that begins with "In `language`"."""
    found = re.search(rf"^In {re.escape(language)}[^\n]*:\n\n((?:    [^\n]*\n)+)", page, re.MULTILINE)
    assert found, f"{PAGE} has no snippet in {language}"
    return found[1]


def by_hand(path):
    """The C block that has what is written for protobuf-c alone, without what it includes."""
    block, = (text for language, _, text, _ in blocks.blocks(path) if "last_by_hand" in text)
    return "".join(line for line in block.splitlines(True) if not line.startswith("#include"))


class Beside(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        self.path = os.path.join(TOP, PAGE)
        self.page = pathlib.Path(self.path).read_text(encoding="utf-8")
        proto = next(text for language, _, text, _ in blocks.blocks(self.path) if language == "proto")
        (self.scratch / "shop.proto").write_text(proto, encoding="utf-8")

    def run_here(self, *command, environment=None):
        done = subprocess.run(command, cwd=self.scratch, env={**os.environ, **(environment or {})},
                              capture_output=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout!r} {done.stderr.decode()}")
        return done.stdout

    def write(self, name, program, text):
        path = self.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program % text, encoding="utf-8")

    def assert_is_the_order(self, encoded):
        done = subprocess.run(["protoc", "--decode=shop.Order", "shop.proto"], cwd=self.scratch, input=encoded,
                              capture_output=True, check=True)
        self.assertEqual(done.stdout.decode(), ORDER)

    def flags(self, package):
        return self.run_here("pkg-config", "--cflags", "--libs", package).decode().split()

    @needs("protoc-c")
    def test_protobuf_c(self):
        self.run_here("protoc-c", "--c_out=.", "shop.proto")
        self.write("main.c", PROTOBUF_C, by_hand(self.path))
        self.run_here(*CC, "-std=c11", "-Wall", "-Wextra", "-o", "main", "main.c", "shop.pb-c.c",
                      *self.flags("libprotobuf-c"))
        self.assert_is_the_order(self.run_here("./main"))

    @needs("g++")
    def test_cpp(self):
        if subprocess.run(["pkg-config", "--exists", "protobuf"], check=False).returncode != 0:
            self.skipTest("not installed: libprotobuf-dev")
        self.run_here("protoc", "--cpp_out=.", "shop.proto")
        self.write("main.cc", CPP, snippet(self.page, "C++"))
        self.run_here("g++", "-std=c++17", "-Wall", "-Wextra", "-o", "main", "main.cc", "shop.pb.cc",
                      *self.flags("protobuf"))
        self.assert_is_the_order(self.run_here("./main"))

    @needs("nanopb_generator.py")
    def test_nanopb(self):
        (self.scratch / "shop.options").write_text(NANOPB_SIZES, encoding="utf-8")
        self.run_here("nanopb_generator.py", "shop.proto")
        self.write("main.c", NANOPB, snippet(self.page, "nanopb"))
        self.run_here(*CC, "-Wall", "-Wextra", "-o", "main", "main.c", "shop.pb.c", "-lprotobuf-nanopb")
        self.assert_is_the_order(self.run_here("./main"))

    @needs("go")
    def test_go(self):
        if not os.path.isdir(f"{GO_SOURCES}/src/{GO_PLUGIN}"):
            self.skipTest("not installed: golang-google-protobuf-dev")
        go = {"GO111MODULE": "off", "GOPATH": f"{self.scratch / 'go'}:{GO_SOURCES}", "GOFLAGS": "",
              "GOCACHE": os.environ.get("GOCACHE", str(self.scratch / "cache"))}
        self.run_here("go", "build", "-o", "protoc-gen-go", GO_PLUGIN, environment=go)
        (self.scratch / "go" / "src").mkdir(parents=True)
        self.run_here("protoc", "--plugin=protoc-gen-go", "--go_out=go/src", "--go_opt=Mshop.proto=example.com/shop",
                      "shop.proto")
        self.write("go/src/order/main.go", GO, snippet(self.page, "Go"))
        self.assert_is_the_order(self.run_here("go", "run", "order", environment=go))


if __name__ == "__main__":
    TOP, CC = sys.argv[1], sys.argv[2:]
    RESULT = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    for case, why in RESULT.skipped:
        print(f"SKIPPED {case.id()}: {why}")
    is_all_skipped = RESULT.testsRun == len(RESULT.skipped)
    sys.exit(1 if not RESULT.wasSuccessful() else SKIP if is_all_skipped else 0)
