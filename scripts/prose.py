#!/usr/bin/env python3
"""Finds sentences that docs/style.md rules out, in README, guide, design notes, strings, comments and studies.

  scripts/prose.py              compares with scripts/lib/prose-counts.txt: counts may only fall
  scripts/prose.py --update     writes the current counts there if no count rose
  scripts/prose.py FILE...      prints each finding of these files with its place
  scripts/prose.py --strings    prints every message of the program with its place

The pairs of docs/style.md test it: it must find each sentence under "not", and no sentence under "but".
"""
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ROOT / "scripts/lib/prose-counts.txt"
# The most words of a sentence.
LONGEST = 30

RULES = [
    ("whoever", r"\bwho(so)?ever\b|\bwhom\b", "name the person: the user, the reader, root"),
    ("of its own", r"\bof (its|their|his) own\b", "say its, separate, or leave it out"),
    ("held against", r"\b(hold|holds|held|holding) (\w+ )?against\b", "say compare"),
    ("so often", r"\bat (most|least),? so\b|\b(so|as) (often|late|long|many)\b(?! (as|that|far))", "say up to N, at least N"),
    ("by lot", r"\b(by|of) lot\b|\bfirst round's lot\b", "say at random"),
    ("is none", r"\b(is|are|be) none\b|\bis no (end|limit|path|kernel|such)\b", "say is not a"),
    ("of no one", r"\bof no one\b", "say does not fit one"),
    ("nobody", r"\bnobody\b|\bto none\b", "say who or what does it"),
    ("nothing that", r"\bnothing \w+ that\b", "say what fails, never passes"),
    ("clause as subject", r"(?:^|[,;:.] )(what|that which|those that) [^.,;:]{1,40}\b(is|are|was|were|has|do|does|needs?)\b",
     "name the thing"),
    ("in force", r"\b(in force|borne|keeps house|has it in it|laid to|at the worst)\b", "use the word of the field"),
    ("goes on", r"\b(go|goes|going|gone|went) on\b(?! (with )?(to|the) )", "say continues or runs"),
    ("rare word", r"\b(deed|deeds|withheld|withholds|handed through|outlives|outlive)\b", "use the common word"),
    ("cannot be excluded", r"\bcannot be excluded\b|\bit is not known\b", "say could, or unknown"),
    ("not answered", r"\bnot answered\b|\bhas no numbers\b|\btoo \w+ to say\b", "say what is missing and what to do"),
    ("how far", r"\bhow far the\b|\bon which evidence\b", "say what depends on it"),
    (", too:", r", too[:;]", "say also"),
    ("know, and", r"\bknow, and\b", "say for your information"),
    ("word twice", r"\b(?!that|had)(\w+) \1\b", "one is too many"),
]
RULES = [(name, re.compile(pattern, re.I), hint) for name, pattern, hint in RULES]
SENTENCE = re.compile(r'(?<=[.!?])\s+(?=["`A-Z([])')


def paragraphs(text):
    """Paragraphs of Markdown with their line, without code; each table cell and list item is a paragraph."""
    found, start, lines, code = [], 0, [], False

    def end():
        if lines:
            found.append((start, " ".join(lines)))
            lines.clear()

    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("```"):
            code = not code
            end()
        elif code:
            continue
        elif bare.startswith("|"):
            end()
            found += [(number, cell.strip()) for cell in bare.strip("|").split("|") if cell.strip(" -:")]
        elif not bare or bare.startswith("#"):
            end()
        else:
            if re.match(r"[-*>]|\d+\.", bare):
                end()
            if not lines:
                start = number
            lines.append(bare)
    end()
    return found


def plain(text):
    """The text without code, and without the addresses of links."""
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "it", text))


def findings(line, paragraph):
    for sentence in SENTENCE.split(paragraph):
        words = plain(sentence)
        if len(words.split()) > LONGEST:
            yield line, "long", f"{len(words.split())} words: two sentences", sentence
        for name, rule, hint in RULES:
            if rule.search(words):
                yield line, name, hint, sentence


LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)


def messages(path):
    """Sentences among the string literals and the help of a source file: four words or more."""
    text = path.read_text()
    text = text[: text.find("#[cfg(test)]")] if "#[cfg(test)]" in text else text
    is_help = "/src/cli/" in str(path)
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip().removeprefix("/// ")
        if is_help and line.strip().startswith("/// ") and len(said.split()) > 3:
            yield number, said
    text = re.sub(r"^\s*//.*$", lambda m: " " * len(m.group(0)), text, flags=re.M)
    text = re.sub(r"'(\\?.)'", lambda m: " " * len(m.group(0)), text)
    for match in LITERAL.finditer(text):
        said = re.sub(r"\\\n\s*", "", match.group(1)).replace("\\n", " ")
        if len(said.split()) > 3 and re.search(r"[a-z]{2} [a-z]", said) and "\n" not in said:
            yield text.count("\n", 0, match.start()) + 1, said


COMMENT = re.compile(r"^\s*//[/!]?\s?(.*)$")


def comments(path):
    """Comments of a source file, as paragraphs with their line."""
    lines = [COMMENT.match(line) for line in path.read_text().splitlines()]
    return paragraphs("\n".join(match[1] if match else "" for match in lines))


def values(tree):
    """Every string of a TOML file."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, (dict, list)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from values(part)


def plans(path):
    """Paragraphs of the texts and the comments of a TOML file, with their line."""
    text = path.read_text()
    for said in values(tomllib.loads(text)):
        begins = re.split(r'["\n]', said)[0]
        line = text.count("\n", 0, text.find(begins))
        yield from ((line + number, paragraph) for number, paragraph in paragraphs(said))
    lines = [re.match(r"# ?(.*)", line) or re.search(r"[\w\"\]}] # ([^\"]*)$", line) for line in text.splitlines()]
    yield from paragraphs("\n".join(match[1] if match else "" for match in lines))


def sources():
    return sorted(path for path in ROOT.glob("crates/*/src/**/*.rs") if not re.search(r"/tests?(/|\.rs)", str(path)))


def written(path):
    """Paragraphs of a Markdown file."""
    return paragraphs(path.read_text())


def told(path, read):
    return [(path, *finding) for line, text in read(path) for finding in findings(line, text)]


def parts():
    """The counted parts: a name, its files, and the function that reads them."""
    yield "README.md", [ROOT / "README.md", ROOT / "docs/README.md"], written
    yield "guide", sorted(ROOT.glob("docs/guide/*.md")), written
    yield "design", sorted(ROOT.glob("docs/design/*.md")), written
    yield "strings", sources(), messages
    yield "comments", sorted(ROOT.glob("crates/**/*.rs")), comments
    yield "studies", sorted([*ROOT.glob("studies/*.toml"), *ROOT.glob("contrib/**/*.toml")]), plans


def self_test():
    """Checks that each bad sentence of docs/style.md is found, and no good one."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (ROOT / "docs/style.md").read_text(), re.M)
    pairs = [pair for pair in rows if pair[0] != "not" and not pair[0].startswith("---")]
    assert len(pairs) >= 20, f"{len(pairs)} pairs"
    for bad, good in pairs:
        assert any(findings(1, bad)), f"not found: {bad}"
        assert not list(findings(1, good)), f"found, but good: {good}: {list(findings(1, good))}"


def main():
    arguments = sys.argv[1:]
    if arguments == ["--strings"]:
        for path in sources():
            for line, said in messages(path):
                print(f"{path.relative_to(ROOT)}:{line}: {said}")
        return 0
    self_test()
    files = [pathlib.Path(name).resolve() for name in arguments if not name.startswith("--")]
    if files:
        reads = {".rs": (messages, comments), ".toml": (plans,)}
        every = [(file, read) for file in files for read in reads.get(file.suffix, (written,))]
        for path, line, name, hint, sentence in (one for each in every for one in told(*each)):
            print(f"{path.relative_to(ROOT)}:{line}: {name} ({hint}): {sentence}")
        return 0
    before = dict(line.rsplit(" ", 1) for line in COUNTS.read_text().splitlines()) if COUNTS.exists() else {}
    now, every = {}, {}
    for part, files, read in parts():
        every[part] = [one for file in files for one in told(file, read)]
        for name in ["long", *(rule[0] for rule in RULES)]:
            count = sum(found[2] == name for found in every[part])
            now[f"{part}: {name}"] = count
    rose = [key for key, count in now.items() if key in before and count > int(before[key])]
    for key in rose:
        part, name = key.split(": ", 1)
        print(f"{key}: {before[key]} before, {now[key]} now:", file=sys.stderr)
        for path, line, found, hint, sentence in every[part]:
            if found == name:
                print(f"  {path.relative_to(ROOT)}:{line}: {sentence}\n    hint: {hint}", file=sys.stderr)
    if rose:
        return 1
    if "--update" in arguments or not before:
        COUNTS.write_text("".join(f"{key} {count}\n" for key, count in now.items()))
    total = {part: sum(count for key, count in now.items() if key.startswith(part + ": ")) for part, *_ in parts()}
    print("  " + ", ".join(f"{part}: {count}" for part, count in total.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
