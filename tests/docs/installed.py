#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Follow a page of the documentation as a user of the installed library does.

usage: installed.py TOP BUILD PAGE ECHO CC [CFLAGS ...]

Installs BUILD to a scratch folder, writes the page's blocks below "<!-- file: NAME -->" to files
of these names in another one, and runs its ```sh blocks below "<!-- run: installed -->" there, as
they are written, with pkg-config finding what was installed; `cc` is CC with its flags and warnings
as errors. Then serves with the program ECHO that they have built, and talks to it over a socket.
"""
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "examples")]
import blocks   # noqa: E402
import example  # noqa: E402

FILE = re.compile(r"<!-- file: ([\w.]+) -->\s*$")
RUN = re.compile(r"<!-- run: installed -->\s*$")
MAX_ECHO_LINES = 60
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def assert_pages(folder):
    """A manual page for the library and for each program."""
    found = {name for where, _, names in os.walk(folder) for name in names
             if os.path.basename(where).startswith("man")}
    programs = {name for where, _, names in os.walk(folder) for name in names
                if os.path.basename(where) == "bin"}
    wanted = {"bowline.7"} | {f"{name}.1" for name in programs}
    assert found == wanted, f"pages: {sorted(found)}, wanted: {sorted(wanted)}"


def assert_licences(top, folder):
    """Those that the tree is under go where the rest goes."""
    installed = [where for where, _, _ in os.walk(folder) if where.endswith("/share/licenses/bowline")]
    assert len(installed) == 1, f"licences are in {installed}"
    found, wanted = set(os.listdir(installed[0])), set(os.listdir(os.path.join(top, "LICENSES")))
    assert found == wanted, f"licences: {sorted(found)}, wanted: {sorted(wanted)}"


def install(build, folder):
    """Returns the environment that a user of what is installed in `folder` has."""
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder],
                   check=True, stdout=subprocess.DEVNULL)
    configs = [where for where, _, names in os.walk(folder) if "bowline.pc" in names]
    assert len(configs) == 1, f"bowline.pc is in {configs}"
    assert_pages(folder)
    environment = dict(os.environ)
    environment["PKG_CONFIG_SYSROOT_DIR"] = folder
    environment["PKG_CONFIG_PATH"] = configs[0]
    environment["LD_LIBRARY_PATH"] = os.path.dirname(configs[0])
    return environment


def put_compiler_on_path(folder, command, environment):
    command = [shutil.which(command[0])] + command[1:]  # whole: not the script itself
    os.mkdir(folder)
    path = os.path.join(folder, "cc")
    with open(path, "w") as script:
        # Under the path as it was: a launcher like ccache looks there for what is called `cc`.
        script.write("#!/bin/sh\nPATH=" + shlex.quote(environment["PATH"]) + "\n")
        script.write("exec " + shlex.join(command + STRICT) + ' "$@"\n')
    os.chmod(path, stat.S_IRWXU)
    environment["PATH"] = folder + os.pathsep + environment["PATH"]


def follow(page, folder, environment):
    """Write and run what is marked. Returns how many blocks were run."""
    n_run = 0
    for language, number, text, before in blocks.blocks(page):
        name = FILE.search(before)
        if name:
            with open(os.path.join(folder, name[1]), "w") as out:
                out.write(text)
        elif language == "sh" and RUN.search(before):
            done = subprocess.run(["bash", "-eo", "pipefail", "-c", text], cwd=folder, env=environment,
                                  capture_output=True, text=True)
            assert done.returncode == 0, f"{page}:{number}:\n{done.stdout}{done.stderr}"
            n_run += 1
    return n_run


def talk(port):
    """Small and large, in pieces and at once, and a last word behind the end of our side."""
    large = bytes(range(256)) * 8192
    with example.connect(port) as peer:
        for sent in (b"x", b"hello\n", large):
            peer.sendall(sent)
            assert example.receive(peer, len(sent)) == sent
        peer.sendall(b"last")
        peer.shutdown(socket.SHUT_WR)
        assert example.receive(peer, 100) == b"last"


def serve(program):
    """SIGTERM comes while one peer is connected; the program must end in order all the same."""
    with example.program(program, "127.0.0.1:0") as server:
        port = int(server.wait_line(r"port (\d+)$")[1])
        talk(port)
        with example.connect(port) as peer:
            peer.sendall(b"?")
            assert example.receive(peer, 1) == b"?"
            server.stop()
            assert example.receive(peer, 1) == b""


def main(top, build, page, echo, *compiler):
    with tempfile.TemporaryDirectory() as scratch:
        environment = install(build, os.path.join(scratch, "installed"))
        assert_licences(top, os.path.join(scratch, "installed"))
        put_compiler_on_path(os.path.join(scratch, "bin"), list(compiler), environment)
        work = os.path.join(scratch, "work")
        os.mkdir(work)
        n_run = follow(os.path.join(top, page), work, environment)
        assert n_run > 0, f"{page} has no block below <!-- run: installed -->"
        with open(os.path.join(work, echo + ".c")) as source:
            n_lines = len(source.readlines())
        assert n_lines <= MAX_ECHO_LINES, f"{echo}.c has {n_lines} lines"
        os.environ.update(environment)
        serve(os.path.join(work, echo))
    print(f"{n_run} blocks of {page} followed; {echo}, {n_lines} lines, serves and ends")


if __name__ == "__main__":
    main(*sys.argv[1:])
