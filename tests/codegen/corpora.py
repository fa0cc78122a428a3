# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Finding the .proto files of others below a folder, and where their imports begin: each project has
folders of its own for that, and says it nowhere. Knows nothing of what is done with them."""

import collections
import functools
import hashlib
import pathlib
import re
import subprocess

SYSTEM = pathlib.Path("/usr/include")
IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;', re.M)


PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.M)


class Group:
    def __init__(self):
        self.paths, self.names = [], []


@functools.lru_cache(None)
def imports_of(path):
    return IMPORT.findall(path.read_text(errors="replace"))


def package_of(path):
    """As the folder that most have it in."""
    found = PACKAGE.search(path.read_text(errors="replace"))
    return found[1].replace(".", "/") if found else "."


@functools.lru_cache(None)
def is_file(path):
    return path.is_file()


class Corpus:
    """`groups` has those whose imports begin in the same folder, as names to give to protoc with the group's
    `paths`; `refused` tells of each file that protoc does not take, why."""

    def __init__(self, protoc, folder):
        self.protoc = protoc
        self.folder = pathlib.Path(folder).resolve()
        self.by_end = collections.defaultdict(list)  # last part of the name -> paths
        self.groups = {}  # the folder -> Group
        self.refused = {}
        paths = sorted(path for path in self.folder.rglob("*.proto") if path.is_file())
        for path in paths:
            self.by_end[path.name].append(path)
        self.n_files = len(paths)
        different = list({hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(paths)}.values())
        self.n_different = len(different)
        # Those that import something first: they tell where names begin.
        for path in sorted(different, key=lambda path: (not imports_of(path), path)):
            self.place(path)

    def place(self, path):
        """Into its group: that of the folder from which the most of what it imports is found, and where its
        name is that of its package."""
        reasons, roots = [], []
        for root in self.folders_of(path):
            name = str(path.relative_to(root))
            paths = self.paths_of(root, name)
            is_named = str(pathlib.PurePath(name).parent) == package_of(path)
            roots.append((len(paths), not is_named, root not in self.groups, len(roots), root, name, paths))
        for *_, root, name, paths in sorted(roots):
            done = subprocess.run([self.protoc, *[f"-I{each}" for each in paths], f"-I{SYSTEM}",
                                   "--descriptor_set_out=/dev/null", name],
                                  capture_output=True, text=True, errors="replace", timeout=60)
            if done.returncode == 0:
                group = self.groups.setdefault(root, Group())
                group.names.append(name)
                group.paths += [each for each in paths if each not in group.paths]
                return
            said = [line for line in done.stderr.splitlines() if "warning" not in line.lower()]
            reasons.append(said[0] if said else "?")
            if not imports_of(path):
                break
        self.refused[str(path.relative_to(self.folder))] = reasons[0]

    def folders_of(self, path):
        """Nearest first."""
        return [folder for folder in path.parents if folder == self.folder or self.folder in folder.parents]

    def paths_of(self, root, name):
        """The folders to look for imports in."""
        paths, waiting, seen = [root], [name], set()
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            found = next((path / at for path in [*paths, SYSTEM] if is_file(path / at)), None)
            if found is None:
                found = self.elsewhere(root, at)
                if found is None:
                    continue
                paths.append(pathlib.Path(str(found)[:-len(at) - 1]))
            waiting += imports_of(found)
        return paths

    def elsewhere(self, root, name):
        """Where another project of the corpus has it; the one that is nearest to `root`."""
        fitting = [path for path in self.by_end[pathlib.PurePath(name).name] if str(path).endswith("/" + name)]
        return max(fitting, default=None, key=lambda path: len(shared_part(path.parts, root.parts)))


def shared_part(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]
