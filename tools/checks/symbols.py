#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check what the built library shows and holds.

    symbols.py ROOT SHARED_LIBRARY STATIC_ARCHIVE VERSION_MAP [HEADER...]

HEADERS are the public ones of this library by name; without any: all that are not of another.

- the version map is sorted, each symbol in it is exported, declared with BOW_EXPORT in a public
  header, and the other way round; what our other libraries link is called bow__x and declared
  with BOW__SHARED in an internal header;
- each global symbol of the archive begins with bow_, for a static program has one namespace;
- no object of the archive has mutable data: what would be global lives in struct bow_context.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import tree

MAP_SYMBOL = re.compile(r"^\s*(bow_\w+);$")
DECLARATION = re.compile(r"^BOW_EXPORT\b[^;{]*?\b(bow_\w+)\(", re.MULTILINE)
SHARED_DECLARATION = re.compile(r"^BOW__SHARED\b[^;{]*?\b(bow__\w+)\(", re.MULTILINE)
SHARED_PREFIX = "bow__"
SHARED_FOLDERS = ("base", "transport", "rpc")
# Public headers of libraries beside libbowline.
OTHER_HEADERS = {"etcd.h", "otel.h", "testing.h", "tls.h"}
GLOBAL_PREFIX = "bow_"
# Written once by the dynamic linker, read-only afterwards.
RELOCATED_ONCE = ".data.rel.ro"
MUTABLE = re.compile(r"\.(data|bss|tdata|tbss|lbss|ldata)\b")


def run(tool, *arguments):
    if shutil.which(tool) is None:
        tree.skip(f"no {tool}; install binutils")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout


def read_map(path):
    """Symbol → line number."""
    symbols = {}
    for number, line in enumerate(tree.lines(path), 1):
        match = MAP_SYMBOL.match(line)
        if match:
            symbols[match[1]] = number
    return symbols


def find_declarations(paths, pattern):
    """Symbol → (header, line number)."""
    symbols = {}
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        for match in pattern.finditer(text):
            symbols[match[1]] = (path, text.count("\n", 0, match.start(1)) + 1)
    return symbols


def read_declared(root, headers):
    public = root / "include" / "bowline"
    if headers:
        return find_declarations([public / name for name in headers], DECLARATION)
    symbols = find_declarations(
        (path for path in public.glob("*.h") if path.name not in OTHER_HEADERS), DECLARATION)
    for folder in SHARED_FOLDERS:
        symbols.update(find_declarations((root / folder).rglob("*.h"), SHARED_DECLARATION))
    return symbols


def sorted_names(names):
    """The public ones, then those for our other libraries."""
    return sorted(names, key=lambda name: (name.startswith(SHARED_PREFIX), name))


def read_exported(shared):
    out = run("nm", "-D", "--defined-only", "--format=posix", shared)
    return {line.split("@")[0].split()[0] for line in out.splitlines() if " A " not in line}


def check_interface(root, map_path, shared, headers, findings):
    listed = read_map(map_path)
    declared = read_declared(root, headers)
    exported = read_exported(shared)

    if list(listed) != sorted_names(listed):
        wrong = next(a for a, b in zip(listed, sorted_names(listed)) if a != b)
        findings.add(map_path, listed[wrong], f"{wrong} is out of order; sort the list")
    for name, line in listed.items():
        if name not in exported:
            findings.add(map_path, line, f"{name} is not defined; write it or take it out")
        if name not in declared:
            findings.add(map_path, line, f"{name} has no BOW_EXPORT in a public header (or, called "
                                         f"bow__x, BOW__SHARED in an internal one); declare it")
    for name, (path, line) in declared.items():
        if name not in listed:
            findings.add(path, line, f"{name} is not in {map_path.name}; add it")
    for name in sorted(exported - set(listed)):
        findings.add(map_path, 1, f"{name} is exported and not listed; list it or hide it")
    return len(listed)


def member_name(text):
    """The object's name, from `archive[path/NAME.o]` or `path/NAME.o`."""
    return re.split(r"[/\[]", text.rstrip("]"))[-1]


def check_namespace(archive, findings):
    member = "?"
    for line in run("nm", "-g", "--defined-only", "--format=posix", archive).splitlines():
        if line.endswith(":"):
            member = line.rstrip(":")
            continue
        name = line.split()[0]
        if not name.startswith(GLOBAL_PREFIX):
            findings.add(member_name(member), 1, f"global symbol {name}; make it static or bow__{name}")


def check_data(archive, findings):
    """Each symbol that lies in writable memory. objdump prints: value flags section size name."""
    member = "?"
    for line in run("objdump", "-t", archive).splitlines():
        if ":     file format" in line:
            member = member_name(line.split(":")[0])
            continue
        fields = re.match(r"[0-9a-f]+ (.{7}) (\S+)\s+([0-9a-f]+) (?:\.hidden )?(.*)", line)
        if not fields or "d" in fields[1]:
            continue
        section, size, name = fields[2], int(fields[3], 16), fields[4]
        is_mutable = section == "*COM*" or (
            MUTABLE.match(section) and not section.startswith(RELOCATED_ONCE))
        if is_mutable and size > 0:
            findings.add(member, 1, f"{name} in {section} can change ({size} bytes); make it const, "
                                    f"or keep it in the context")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    shared, archive = sys.argv[2], sys.argv[3]
    map_path = pathlib.Path(sys.argv[4]).resolve()
    findings = tree.Findings(root)

    n_listed = check_interface(root, map_path, shared, sys.argv[5:], findings)
    check_namespace(archive, findings)
    check_data(archive, findings)
    return findings.end(f"{n_listed} exported symbols, the objects of {pathlib.Path(archive).name}")


if __name__ == "__main__":
    sys.exit(main())
