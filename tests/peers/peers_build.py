# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the peer of each language is built, in a folder of its own, and what starts it.

Knows nothing of what peers are asked to do.
"""
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = {
    "peer": HERE / "echo.proto",
    "interop": HERE.parent / "interop/public/testing.proto",
}


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


def cpp(folder, program):
    need("g++", "protoc", "grpc_cpp_plugin", "pkg-config")
    source, proto, peer = HERE / f"cpp/{program}.cc", PROTOS[program], folder / program
    if not newer(peer, source, proto):
        flags = run(folder, "pkg-config", "--cflags", "--libs", "grpc++", "protobuf").split()
        run(folder, "protoc", f"-I{proto.parent}", "--cpp_out=.", "--grpc_out=.",
            f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}", proto.name)
        run(folder, "g++", "-O2", "-std=c++17", "-I.", "-o", program, str(source),
            f"{proto.stem}.pb.cc", f"{proto.stem}.grpc.pb.cc", "-pthread", *flags)
    return [str(peer)], {}


NETTY = ("buffer", "codec", "codec-http", "codec-http2", "common", "handler", "resolver", "transport")
JARS = ("grpc-api", "grpc-context", "grpc-core", "grpc-netty", "grpc-stub", "guava", "perfmark-api",
        *("netty-" + part for part in NETTY))


OF_INTEROP = ("netty-tcnative", "protobuf")
TCNATIVE = "jni/libnetty-tcnative.so"


def java_interop(folder, proto):
    """What the cases need beside Peer: messages that are more than bytes, whose sources are returned, and TLS.

    Debian's Netty has ALPN over OpenSSL alone, and looks for that by another name than Debian gives it.
    """
    need("protoc")
    libraries = sorted(pathlib.Path("/usr/lib").glob(f"*/{TCNATIVE}"))
    if not libraries:
        raise Missing(f"there is no {TCNATIVE}")
    shutil.copy(libraries[0], folder / "libnetty_tcnative.so")
    run(folder, "protoc", f"-I{proto.parent}", "--java_out=.", proto.name)
    return (folder / "grpc").rglob("*.java")


def java(folder, program):
    need("java", "javac")
    names = (*JARS, *OF_INTEROP) if program == "interop" else JARS
    jars = [pathlib.Path("/usr/share/java") / (name + ".jar") for name in names]
    for jar in jars:
        if not jar.exists():
            raise Missing(f"there is no {jar}")
    name, proto = program.capitalize(), PROTOS[program]
    sources = [HERE / f"java/{name}.java", *(HERE / "java" / program).glob("*.java")]
    path = ":".join(map(str, jars))
    if not newer(folder / f"{name}.class", proto, *sources):
        if program == "interop":
            sources += java_interop(folder, proto)
        run(folder, "javac", "-d", ".", "-cp", path, *map(str, sources))
    quick_to_start = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return ["java", *quick_to_start, f"-Djava.library.path={folder}", "-cp", f"{folder}:{path}",
            name], {}


def npm(folder, peer):
    """Installs what the peer's package.json asks for; returns where that is."""
    need("node", "npm")
    installed = folder / "node_modules"
    if not newer(installed / ".package-lock.json", HERE / peer / "package-lock.json"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / peer / name, folder)
        run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return installed


def node(folder, program):
    return ["node", str(HERE / f"node/{program}.js")], {"NODE_PATH": str(npm(folder, "node"))}


def go_build(folder, *words):
    run(folder, "go", "build", *words, GO111MODULE="off", GOPATH=f"{folder}:/usr/share/gocode",
        GOFLAGS="", GOCACHE=str(folder / "cache"))


def go_messages(folder, proto):
    """The package of `proto`, by the generator that belongs to the packages of /usr/share/gocode."""
    need("protoc")
    package = folder / "src/grpc_testing"
    package.mkdir(parents=True, exist_ok=True)
    go_build(folder, "-o", "protoc-gen-go", "github.com/golang/protobuf/protoc-gen-go")
    run(folder, "protoc", f"-I{proto.parent}", f"--go_out=plugins=grpc:{package}",
        "--plugin=protoc-gen-go", proto.name)


def go(folder, program):
    need("go")
    source, proto, peer = HERE / f"go/{program}.go", PROTOS[program], folder / program
    if not newer(peer, source, proto):
        if program == "interop":  # the other one's messages are bytes
            go_messages(folder, proto)
        go_build(folder, "-o", program, str(source))
    return [str(peer)], {}


def python(folder, program):
    # Debian's own: another one has not Debian's packages.
    run(folder, "/usr/bin/python3", "-c", "import grpc, google.protobuf")
    proto = PROTOS[program]
    run(folder, "protoc", f"-I{proto.parent}", "--python_out=.", proto.name)
    return (["/usr/bin/python3", str(HERE / f"python/{program}.py")],
            {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)})


LANGUAGES = {"cpp": cpp, "go": go, "java": java, "node": node, "python": python}


def build(language, folder, program="peer"):
    """Returns the command of the peer, and what to add to its environment; raises Missing."""
    folder = pathlib.Path(folder).resolve() / language
    folder.mkdir(parents=True, exist_ok=True)
    return LANGUAGES[language](folder, program)
