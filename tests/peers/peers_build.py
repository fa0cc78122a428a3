# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the peer of each language is built, in a folder of its own, and what starts it.

Knows nothing of what peers are asked to do.
"""
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


class Missing(Exception):
    """A peer that cannot be had here, and why."""


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"there is no {program}")


def run(folder, *command, **environment):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    if done.returncode != 0:
        raise Missing(f"{command[0]} failed: {' '.join(done.stdout.split())[-600:]}")
    return done.stdout


def newer(result, *sources):
    """Whether `result` need not be built again."""
    return result.exists() and all(
        source.stat().st_mtime <= result.stat().st_mtime for source in sources)


def cpp(folder):
    need("g++", "protoc", "grpc_cpp_plugin", "pkg-config")
    source, proto, peer = HERE / "cpp/peer.cc", HERE / "echo.proto", folder / "peer"
    if not newer(peer, source, proto):
        flags = run(folder, "pkg-config", "--cflags", "--libs", "grpc++", "protobuf").split()
        run(folder, "protoc", f"-I{HERE}", "--cpp_out=.", "--grpc_out=.",
            f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}", "echo.proto")
        run(folder, "g++", "-O2", "-std=c++17", "-I.", "-o", "peer", str(source), "echo.pb.cc",
            "echo.grpc.pb.cc", "-pthread", *flags)
    return [str(peer)], {}


def node(folder):
    need("node", "npm")
    installed = folder / "node_modules/.package-lock.json"
    if not newer(installed, HERE / "node/package-lock.json"):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, folder)
        run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return ["node", str(HERE / "node/peer.js")], {"NODE_PATH": str(folder / "node_modules")}


LANGUAGES = {"cpp": cpp, "node": node}


def build(language, folder):
    """Returns the command of the peer, and what to add to its environment; raises Missing."""
    folder = pathlib.Path(folder).resolve() / language
    folder.mkdir(parents=True, exist_ok=True)
    return LANGUAGES[language](folder)
