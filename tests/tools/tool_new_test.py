#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `bowline new` writes builds at once against an installed library, by meson and by CMake, and is
called.

usage: tool_new_test.py TOOL SERVER PROTOC HERE BUILD
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tool
from tool import Program, Run

BUILD = sys.argv[5]


def install(folder):
    """What a user's environment has who installed the library in `folder`."""
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder],
                   check=True, stdout=subprocess.DEVNULL)
    config, = pathlib.Path(folder).rglob("bowline.pc")
    plugin, = pathlib.Path(folder).rglob("protoc-gen-bowline")
    package, = pathlib.Path(folder).rglob("bowline-config.cmake")
    return {**os.environ, "PKG_CONFIG_SYSROOT_DIR": folder, "PKG_CONFIG_PATH": str(config.parent),
            "LD_LIBRARY_PATH": str(config.parent.parent), "bowline_DIR": str(package.parent),
            "PATH": f"{plugin.parent}{os.pathsep}{os.environ['PATH']}"}


def run(command, where, env):
    done = subprocess.run(command, cwd=where, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}"
    return done.stdout


def call_it(build, env):
    os.environ["LD_LIBRARY_PATH"] = env["LD_LIBRARY_PATH"]
    served = Program(str(build / "price-list-server"), "127.0.0.1:0")
    try:
        target = f"127.0.0.1:{served.wait_line(r'^listening, port (.*)$').group(1)}"
        for protocol in ("", "grpc:"):
            said = run([str(build / "price-list-client"), "Ada", protocol + target], build, env)
            assert said == "Hello, Ada\n", said
            reply = Run("call", protocol + target, "price_list.PriceList/Greet", '{"name":"Bo"}').ok()
            assert json.loads(reply) == {"text": "Hello, Bo"}, reply
            counted = Run("call", protocol + target, "price_list.PriceList/Count",
                          '{"upto":100000}').ok()
            assert counted.splitlines()[-1] == '{"number":100000}', counted[-100:]
            Run("call", protocol + target, "price_list.PriceList/Greet").failed(
                64 + 3, "the name is empty")
        served.stop()
    finally:
        served.close()


def test_new_is_built_and_called():
    with tempfile.TemporaryDirectory() as folder:
        env = install(os.path.join(folder, "root"))
        run([tool.TOOL, "new", "price-list"], folder, env)
        project = pathlib.Path(folder, "price-list")
        run(["meson", "setup", "build", "-Dwerror=true"], project, env)
        run(["ninja", "-C", "build"], project, env)
        call_it(project / "build", env)
        assert shutil.which("cmake"), "cmake is not installed"
        run(["cmake", "-B", "cmake-build", "-G", "Ninja", "-DCMAKE_C_FLAGS=-Wall -Werror"], project,
            env)
        run(["cmake", "--build", "cmake-build"], project, env)
        call_it(project / "cmake-build", env)


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
