#!/usr/bin/env python3
"""Finds circles between the files of a crate: two files that need each other, directly or through others.

    scripts/circles.py [--known CRATE::FILE]... [CRATE...]

Default: all crates. Exit 1 if there is a circle, except for circles that contain a known file.

Edges are the paths in `use` declarations and in code (`crate::`, `super::`, child modules, and modules that a `use`
names), without those of tests. A re-exported item counts as part of the file that defines it. A file and the modules
below it (`scenario.rs` and `scenario/collect.rs`) are one room. Modules may use the file at the head of their room;
circles between the modules, and with files outside, count.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "crates"
WORD = r"[A-Za-z_][A-Za-z0-9_]*"
PATH = rf"{WORD}(?:\s*::\s*{WORD})+"
RE_EXPORT = r"\bpub(?:\([^)]*\))?\s+use\s+[^;]+;"
# Comments, raw strings, strings, characters (a quote in one does not begin a string; a lifetime is not a character).
NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\[^\n][^'\n]*)'""",
    re.S,
)


def closing(text, at):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    for n in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[n], 0)
        if depth == 0:
            return n + 1
    return len(text)


def without_tests(text):
    """The text without comments, strings and items marked #[cfg(test)]."""
    text = NO_CODE.sub(lambda found: "" if found[0].startswith("/") else '""', text)
    out, at = [], 0
    for match in re.finditer(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]\s*", text):
        if match.start() < at:
            continue
        out.append(text[at : match.start()])
        brace, semicolon = text.find("{", match.end()), text.find(";", match.end())
        if 0 <= semicolon and (brace < 0 or semicolon < brace or re.match(r"(pub\S*\s+)?use\b", text[match.end() :])):
            at = semicolon + 1
        else:
            at = closing(text, brace)
    out.append(text[at:])
    return "".join(out)


def modules(src):
    """The file of every module, by the words of the module's path; without tests."""
    found = {}
    for path in sorted(src.rglob("*.rs")):
        parts = list(path.relative_to(src).with_suffix("").parts)
        if parts[-1] in ("lib", "main", "mod"):
            parts.pop()
        if "tests" not in parts:
            found[tuple(parts)] = path
    return found


def split(text):
    """The parts of a list in braces."""
    parts, depth, start = [], 0, 0
    for n, c in enumerate(text):
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:n])
            start = n + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def uses(text):
    """Every path that a `use` in this text names, and its name in this file."""
    found = []

    def unfold(prefix, tree):
        if tree.startswith("{"):
            for part in split(tree[1:-1]):
                unfold(prefix, part)
            return
        front, brace, rest = tree.partition("{")
        front, _, name = front.partition(" as ")
        words = prefix + [word.strip() for word in front.split("::") if word.strip()]
        if brace:
            unfold(words, brace + rest)
        elif words[-1] == "self":
            found.append((tuple(words[:-1]), name.strip() or words[-2]))
        else:
            found.append((tuple(words), name.strip() or words[-1]))

    for match in re.finditer(r"\buse\s+([^;]+);", text):
        unfold([], " ".join(match[1].split()))
    return found


class Crate:
    def __init__(self, src):
        self.files = modules(src)
        self.text = {name: without_tests(path.read_text()) for name, path in self.files.items()}
        self.exports = {name: self.re_exports(name) for name in self.files}

    def absolute(self, name, path, aliases=None):
        """A path of the module `name` from the crate's root; `None` if it leads out of the crate."""
        words, base = list(path), name
        if words[0] in (aliases or {}):
            return aliases[words[0]] + tuple(words[1:])
        if words[0] == "crate":
            return tuple(words[1:])
        if words[0] == "self":
            return name + tuple(words[1:])
        if words[0] == "super":
            while words and words[0] == "super":
                words.pop(0)
                base = base[:-1]
            return base + tuple(words)
        return name + tuple(words) if name + (words[0],) in self.files else None

    def re_exports(self, name):
        """The re-exports of a module: pairs of word (`*`: everything) and path."""
        text = "".join(match[0] for match in re.finditer(RE_EXPORT, self.text[name]))
        found = [(word, self.absolute(name, path)) for path, word in uses(text)]
        return [(word, path) for word, path in found if path is not None]

    def defines(self, module, word):
        item = rf"\b(?:fn|struct|enum|union|trait|type|const|static|mod)\s+{word}\b"
        return re.search(item, self.text[module]) is not None or module + (word,) in self.files

    def resolve(self, path, seen=()):
        """The file that a path from the root leads to."""
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.files)
        module, rest = path[:length], path[length:]
        if not rest or rest[0] == "*" or path in seen or self.defines(module, rest[0]):
            return module
        for word, to in self.exports[module]:
            if word == rest[0]:
                return self.resolve(to + rest[1:], (*seen, path))
            if word == "*":
                found = self.resolve(to[:-1] + rest, (*seen, path))
                if self.defines(found, rest[0]):
                    return found
        return module

    def edges(self, name):
        """The files that a file needs."""
        code = re.sub(RE_EXPORT, "", self.text[name])
        paths, aliases = set(), {}
        for path, word in uses(code):
            path = self.absolute(name, path)
            if path is not None:
                paths.add(path)
                aliases[word] = path
        plain = re.sub(r"\buse\s+[^;]+;", "", code)
        for match in re.finditer(rf"(?<![:\w$]){PATH}", plain):
            path = self.absolute(name, [word.strip() for word in match[0].split("::")], aliases)
            if path is not None:
                paths.add(path)
        # Macros make tables from the modules' names.
        for match in re.finditer(rf"\b{WORD}!\s*\{{", plain):
            paths |= {name + (word,) for word in re.findall(WORD, plain[match.end() : closing(plain, match.end() - 1)])}
        return {to for to in map(self.resolve, paths) if to != name}

    def graph(self):
        """Edges between files, without those to the head of the file's room."""
        return {name: {to for to in self.edges(name) if name[: len(to)] != to} for name in self.files}


def circles(graph):
    """Strongly connected components with more than one member (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for to in sorted(graph[node]):
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in stack:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main():
    known, wanted = set(), []
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if argument == "--known":
            known.add(next(arguments))
        else:
            wanted.append(argument)
    bad = 0
    shown = lambda module: "::".join(module) or "lib"
    for crate in wanted or sorted(path.name for path in ROOT.iterdir() if (path / "src").is_dir()):
        graph = Crate(ROOT / crate / "src").graph()
        for component in circles(graph):
            names = [f"{crate}::{shown(name)}" for name in component]
            if not known.isdisjoint(names):
                known.difference_update(names)
                continue
            bad += 1
            print(f"{crate}: {len(names)} files need each other")
            for name in component:
                print(f"    {shown(name)} -> {', '.join(sorted(shown(to) for to in graph[name] if to in component))}")
    for gone in sorted(known):
        bad += 1
        print(f"{gone} is not part of a circle any more: remove its --known")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
