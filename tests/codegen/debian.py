# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The .proto files that Debian 12's packages ship, in a folder: the packages are downloaded with apt and
unpacked there, not installed."""

import pathlib
import shutil
import subprocess

from protoc import HERE

PACKAGES = HERE / "debian-packages.txt"


class Missing(Exception):
    """Why they cannot be had."""


def run(*command, where):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, errors="replace", timeout=900)
    if done.returncode != 0:
        raise Missing(f"{command[0]}: {' '.join(done.stderr.split())[-500:]}")
    return done.stdout


def packages():
    lines = PACKAGES.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def fetch(folder):
    """Returns where the files are. What was fetched stays, and is not fetched again."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Missing("there is no apt-get")
    made, fetched = folder / "protos", folder / "packages"
    if (folder / "complete").exists():
        return made
    fetched.mkdir(parents=True, exist_ok=True)
    made.mkdir(exist_ok=True)
    known = set(run("apt-cache", "--generate", "pkgnames", where=folder).split())
    wanted = [name for name in packages() if name in known]
    for name in sorted(set(packages()) - known):
        print(f"corpora: apt has no package {name}")
    if not wanted:
        raise Missing("apt has none of the packages; is its list there (apt-get update)?")
    run("apt-get", "-q", "download", *wanted, where=fetched)
    for package in sorted(fetched.glob("*.deb")):
        # Only these, and a package may have none of them any more.
        subprocess.run(f"dpkg --fsys-tarfile '{package}' | tar x -C '{made}' --wildcards '*.proto'", shell=True,
                       stderr=subprocess.DEVNULL, check=False, timeout=300)
        package.unlink()
    (folder / "complete").touch()
    return made
