# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One mutant: what it takes out of which function, as tests/mutants/README.md describes the form.

Text is compared by its words and signs, so neither a line break nor an indentation matters, and
what stands around the place is of no interest unless it is needed to find it.
"""
import re

FOLDER = "tests/mutants"
SUFFIX = ".mutant"

TOKEN = re.compile(r"\w+|[^\w\s]")
PLACE = re.compile(r"In: (?P<file>[^\s:]+)(?:: (?P<function>\w+))?")


class Wrong(Exception):
    """It is not written as it should be, or does not fit the tree any more."""


class Change:
    """In one function (or, without one, anywhere in the file) `old` becomes `new`."""

    def __init__(self, file, function):
        self.file = file
        self.function = function
        self.old = []
        self.new = []

    def add(self, line):
        sign, text = line[0], line[1:]
        if sign in "- ":
            self.old.append(text)
        if sign in "+ ":
            self.new.append(text)

    def place(self):
        return f"{self.file}: {self.function}" if self.function else self.file

    def apply(self, text):
        """`text`, changed. The old words must be there exactly once."""
        begin, end = extent(text, self.function) if self.function else (0, len(text))
        if begin is None:
            raise Wrong(f"{self.file} has no function {self.function}")
        found = places(text, begin, end, "\n".join(self.old))
        if len(found) != 1:
            raise Wrong(f"{self.place()} has {len(found)} places that read\n" + "\n".join(self.old))
        first, last = found[0]
        return text[:first] + "\n".join(self.new).strip() + text[last:]


def extent(text, function):
    """Where a function's definition begins and ends, by the braces at the beginning of lines."""
    for match in re.finditer(rf"^[A-Za-z_][^;{{}}#/\n]*\b{function}\([^;{{}}]*\)[^;{{}}]*\n\{{", text, re.MULTILINE):
        end = text.find("\n}", match.end() - 1)
        if end >= 0:
            return match.start(), end + 2
    return None, None


def places(text, begin, end, wanted):
    """All (first, last) in text[begin:end] whose tokens are those of `wanted`."""
    tokens = list(TOKEN.finditer(text, begin, end))
    words = [token.group() for token in tokens]
    sought = TOKEN.findall(wanted)
    n = len(sought)

    if n == 0:
        return []
    return [(tokens[i].start(), tokens[i + n - 1].end())
            for i in range(len(words) - n + 1) if words[i] == sought[0] and words[i:i + n] == sought]


class Mutant:
    """A file of tests/mutants."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.changes = []
        self.fields = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            self.read(line)
        self.tests = self.fields.get("Tests", "").replace(",", " ").split()
        self.build = self.fields.get("Build", "sanitized")
        self.sim = self.fields.get("Sim") == "yes"
        self.files = sorted({change.file for change in self.changes})
        if not {"Fault", "Guard"} <= set(self.fields) or not self.tests or not self.changes:
            raise Wrong(f"{path}: needs Fault:, Guard: and Tests:, and then what changes (In:)")

    def read(self, line):
        place = PLACE.fullmatch(line)
        if place:
            self.changes.append(Change(place["file"], place["function"]))
        elif line[:1] in ("-", "+", " ") and self.changes:
            self.changes[-1].add(line)
        elif ": " in line and not self.changes and line[0] != " ":
            name, value = line.split(": ", 1)
            self.fields[name] = value
        elif line and line[0] != " ":
            raise Wrong(f"{self.path}: not understood: {line}")

    def texts(self, root):
        """The changed text of each file, by its name."""
        texts = {}
        for change in self.changes:
            if not (root / change.file).is_file():
                raise Wrong(f"there is no file {change.file}")
            if change.file not in texts:
                texts[change.file] = (root / change.file).read_text(encoding="utf-8")
            texts[change.file] = change.apply(texts[change.file])
        return texts

    def apply(self, root):
        """Change the files below `root`: all, or, when it raises Wrong, none."""
        for name, text in self.texts(root).items():
            (root / name).write_text(text, encoding="utf-8")


def load(top, parts=("",)):
    """The mutants whose names contain one of `parts`, sorted."""
    paths = sorted((top / FOLDER).glob("*" + SUFFIX))
    return [Mutant(path) for path in paths if any(part in path.stem for part in parts)]
