#!/usr/bin/env python3
"""Copies docs/ to a source directory for mdBook, and writes its table of contents.

    scripts/lib/book-source.py docs OUT      OUT is replaced

The table is made from the headings and the items of docs/README.md. A link out of docs/ would be dead in the book: its
text stays, followed by the path in the repository.
"""
import pathlib
import re
import shutil
import sys

docs, out = map(pathlib.Path, sys.argv[1:])
shutil.rmtree(out, ignore_errors=True)
shutil.copytree(docs, out)
outside = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:README|CONTRIBUTING|crates|contrib|scripts|studies)[^)]*)\)")
for page in out.rglob("*.md"):
    text = page.read_text()
    page.write_text(outside.sub(r"\1 (`\2`)", text))

summary = ["# Summary", "", "[The book](README.md)"]
for line in (docs / "README.md").read_text().splitlines():
    if match := re.match(r"## (.+)|(The probe|Environments|Judging and showing):$", line):
        summary += ["", f"# {match[1] or match[2]}", ""]
    elif match := re.match(r"- (\[[^]]+\]\([^)]+\))", line):
        summary.append(f"- {match[1]}")
(out / "SUMMARY.md").write_text("\n".join(summary) + "\n")

# mdBook leaves out a page that the table does not list, and makes an empty page for an entry without a file.
listed = set(re.findall(r"\]\(([^)]+)\)", "\n".join(summary))) | {"style.md"}
pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
if listed != pages:
    sys.exit(f"docs/README.md: not listed: {sorted(pages - listed)}; no such page: {sorted(listed - pages)}")
