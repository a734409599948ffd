#!/usr/bin/env python3
"""Circles between the files of a crate: a file that needs another one that needs it.

    scripts/circles.py [CRATE...]     all crates without arguments; exit 1 where there is a circle

Edges are the paths in `use` declarations and in code (`crate::`, `super::`, and child modules), without those of tests.
What a module only re-exports counts as the file that defines it. A file and the modules below it (`scenario.rs` and
`scenario/collect.rs`) are one room: what they need of each other is no circle, but what a third file needs is.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "crates"
WORD = r"[A-Za-z_][A-Za-z0-9_]*"


def without_tests(text):
    """The text without comments, strings and what stands behind #[cfg(test)]."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    out, at = [], 0
    for match in re.finditer(r"#\[cfg\((?:test|all\(test[^)]*\))\)\]\s*", text):
        if match.start() < at:
            continue
        out.append(text[at : match.start()])
        brace, semicolon = text.find("{", match.end()), text.find(";", match.end())
        if brace < 0 or 0 <= semicolon < brace:
            at = semicolon + 1
            continue
        depth, at = 1, brace + 1
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    out.append(text[at:])
    return "".join(out)


def modules(src):
    """The file of every module: a tuple of words."""
    found = {}
    for path in sorted(src.rglob("*.rs")):
        parts = list(path.relative_to(src).with_suffix("").parts)
        if parts in (["lib"], ["main"]):
            parts = []
        elif parts[-1] == "mod":
            parts.pop()
        if parts and (parts[-1] == "tests" or "tests" in parts):
            continue
        found[tuple(parts)] = path
    return found


def uses(text):
    """All paths of `use` declarations, unfolded, as tuples of words; and the words of what is re-exported."""
    paths = []

    def unfold(prefix, tree):
        tree = tree.strip()
        match = re.match(rf"((?:{WORD}|\*)(?:\s*::\s*(?:{WORD}|\*))*)\s*(?:::\s*(\{{.*\}}))?\s*(?:as\s+({WORD}))?$", tree, re.S)
        if not match:
            if tree.startswith("{") and tree.endswith("}"):
                for part in split(tree[1:-1]):
                    unfold(prefix, part)
            return
        words = prefix + [word.strip() for word in match[1].split("::")]
        if match[2]:
            for part in split(match[2][1:-1]):
                unfold(words, part)
        else:
            paths.append((tuple(words), match[3] or words[-1]))

    def split(text):
        parts, depth, start = [], 0, 0
        for n, c in enumerate(text):
            depth += {"{": 1, "}": -1}.get(c, 0)
            if c == "," and depth == 0:
                parts.append(text[start:n])
                start = n + 1
        parts.append(text[start:])
        return [part for part in parts if part.strip()]

    for match in re.finditer(r"\buse\s+([^;]+);", text):
        unfold([], match[1])
    return paths


class Crate:
    def __init__(self, src):
        self.files = modules(src)
        self.text = {name: without_tests(path.read_text()) for name, path in self.files.items()}
        self.exports = {name: self.exported(name) for name in self.files}

    def absolute(self, name, path):
        words, base = list(path), list(name)
        if words[0] == "crate":
            return tuple(words[1:])
        if words[0] == "self":
            return tuple(base + words[1:])
        if words[0] == "super":
            while words and words[0] == "super":
                words.pop(0)
                base = base[:-1]
            return tuple(base + words)
        if name + (words[0],) in self.files:
            return name + tuple(words)
        return None

    def exported(self, name):
        """What a module re-exports: the word, and the path that it stands for."""
        text = "".join(match[0] for match in re.finditer(r"\bpub(?:\([^)]*\))?\s+use\s+[^;]+;", self.text[name]))
        return {word: path for used, word in uses(text) if (path := self.absolute(name, used)) is not None}

    def resolve(self, path, depth=0):
        """The file that an absolute path leads to."""
        for length in range(len(path), -1, -1):
            module = path[:length]
            if module in self.files:
                rest = path[length:]
                to = self.exports[module].get(rest[0]) if rest else None
                if to is not None and depth < 8 and to != path:
                    return self.resolve(to + rest[1:], depth + 1)
                return module
        return ()

    def edges(self, name):
        text = self.text[name]
        code = re.sub(r"\bpub(?:\([^)]*\))?\s+use\s+[^;]+;", "", text)
        found = set()
        for used, _ in uses(code):
            path = self.absolute(name, used)
            if path is not None:
                found.add(self.resolve(path))
        plain = re.sub(r"\buse\s+[^;]+;", "", code)
        for match in re.finditer(rf"(?<![:\w])((?:crate|self|super)(?:\s*::\s*{WORD})+)", plain):
            words = tuple(word.strip() for word in match[1].split("::"))
            path = self.absolute(name, words)
            if path is not None:
                found.add(self.resolve(path))
        for match in re.finditer(rf"(?<![:\w])({WORD})\s*::\s*({WORD})", plain):
            path = name + (match[1], match[2])
            if name + (match[1],) in self.files:
                found.add(self.resolve(path))
        return {to for to in found if to != name and to in self.files}

    def rooms(self):
        """Edges between files, without those inside one room (a file and the files below it)."""
        near = lambda a, b: a[: len(b)] == b or b[: len(a)] == a
        return {name: {to for to in self.edges(name) if not near(name, to)} for name in self.files}


def circles(graph):
    """Strongly connected components with more than one member (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for to in sorted(graph[node]):
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            component = []
            while True:
                member = stack.pop()
                on.discard(member)
                component.append(member)
                if member == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main():
    sys.setrecursionlimit(10_000)
    wanted = sys.argv[1:] or sorted(path.name for path in ROOT.iterdir() if (path / "src").is_dir())
    bad = 0
    for crate in wanted:
        graph = Crate(ROOT / crate / "src").rooms()
        for component in circles(graph):
            bad += 1
            names = ["::".join(name) or "(root)" for name in component]
            print(f"{crate}: {len(component)} files need each other: {', '.join(names)}")
            for name in component:
                to = sorted("::".join(t) or "(root)" for t in graph[name] if t in component)
                print(f"    {'::'.join(name) or '(root)'} -> {', '.join(to)}")
    return 1 if bad else 0


sys.exit(main())
