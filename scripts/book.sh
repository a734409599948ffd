#!/bin/sh
# Builds the book: docs/ as a searchable site, in target/book. docs/README.md is the table of contents.
#
#   scripts/book.sh
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=0.4.52
mdbook="$target/tools-book/bin/mdbook"

if [ ! -x "$mdbook" ] || [ "$("$mdbook" --version)" != "mdbook v$version" ]; then
  say "Building mdBook $version: about 4 minutes on two CPUs."
  cargo install --quiet --locked --version "$version" --no-default-features --features search \
    --root "$target/tools-book" mdbook
fi

source="$target/book-source"
rm -rf "$source" "$target/book"
mkdir -p "$source"
python3 scripts/lib/book-source.py docs "$source/src"
cat >"$source/book.toml" <<'TOML'
[book]
title = "tactus"
description = "Makes a Linux machine real-time, and proves it"
language = "en"

[output.html]
no-section-label = true

[output.html.search]
limit-results = 20
TOML
"$mdbook" build --dest-dir "$target/book" "$source"
say "book: $target/book/index.html"
