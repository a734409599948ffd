#!/bin/sh
# Runs the commands of the README and the guide: every block that begins with ```sh tested, and every workflow that begins
# with ```yaml tested.
#
#   scripts/readme-commands.sh [FILE.md...]     TACTUS=path, default target/release/tactus
#
# The blocks of one file run in order, in one scratch directory; files run in parallel. A block that begins with
# ```toml NAME.toml becomes the file of that name there. `tactus` is the built program; `run` and `measure` take one second
# (--duration 1s, -D 1): this tests the commands, not the machine. So a limit that
# is not met (exit code 1) or not decided (3) does not fail a block.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tactus=$(realpath "${TACTUS:-$root/target/release/tactus}")
[ -x "$tactus" ] || { echo "error: $tactus is not built" >&2 && exit 2; }
[ $# -gt 0 ] || set -- "$root/README.md" "$root"/docs/guide/*.md

scratch=$(mktemp -d "${TMPDIR:-/tmp}/tactus-readme.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/bin"

cat >"$scratch/bin/tactus" <<END
#!/bin/sh
ended() {
  case "\$1:\${ANY_ANSWER:-}" in 1:yes | 3:yes) exit 0 ;; *) exit "\$1" ;; esac
}
command=\${1:-}
case "\$command" in
  run) short=--duration time=\${TACTUS_SHORT:-1s} ;;
  measure) short=-D time=1 ;;
  compare) "$tactus" "\$@"; ended \$? ;;
  *) exec "$tactus" "\$@" ;;
esac
count=\$#
while [ "\$count" -gt 0 ]; do
  case "\$1" in
    --duration | -D) shift && count=\$((count - 1)) ;;
    *) set -- "\$@" "\$1" ;;
  esac
  shift
  count=\$((count - 1))
done
"$tactus" "\$@" "\$short" "\$time"
ended \$?
END
chmod +x "$scratch/bin/tactus"
PATH="$scratch/bin:$PATH"
export PATH

# commands FILE: runs its blocks until one fails.
commands() {
  place="$scratch/$(basename "$1" .md)"
  mkdir "$place"
  # One script per block, named after its first line.
  awk -v place="$place" -v lib="$root/scripts/lib" '
    /^```sh tested *$/ { script = sprintf("%s/.block-%05d", place, NR); print "set -eux" >script; next }
    /^```yaml tested *$/ {
      block = sprintf("%s/.block-%05d", place, NR)
      script = block ".yml"
      print "exec python3 \"" lib "/workflow.py\" \"" script "\"" >block
      close(block)
      next
    }
    # A file that a block uses: ```toml NAME.toml
    /^```[a-z]+ [A-Za-z0-9_-]+[.][a-z]+ *$/ { script = place "/" $2; printf "" >script; next }
    /^```/ && script { close(script); script = "" }
    script { print >script }
  ' "$1"
  for script in "$place"/.block-*; do
    case "$script" in *.yml | *'*') continue ;; esac
    line=${script##*.block-}
    name="${1#"$root"/}:$(echo "$line" | sed 's/^0*//')"
    # The steps of a workflow are judged by their exit codes.
    any_answer=yes
    [ ! -e "$script.yml" ] || any_answer=no
    if (cd "$place" && ANY_ANSWER=$any_answer sh "$script") </dev/null >"$place/.said" 2>&1; then
      echo "  $name"
    else
      status=$?
      cat "$place/.said"
      echo "error: the commands at $name ended with status $status" >&2
      return 1
    fi
  done
}

# Files are independent: they run in parallel, and their outputs are printed one after the other.
running=""
for file in "$@"; do
  [ -e "$file" ] || continue
  # One lock for each file: measurements of different files do not see each other.
  TACTUS_LOCK=$(basename "$file") commands "$file" >"$scratch/$(basename "$file").out" 2>&1 &
  running="$running $!:$(basename "$file").out"
done
failed=0
for one in $running; do
  wait "${one%%:*}" || failed=1
  cat "$scratch/${one#*:}" | tee -a "$scratch/all"
done
[ "$failed" -eq 0 ] || exit 1
blocks=$(grep -c '^  [^ ]*:[0-9]*$' "$scratch/all" || true)
echo "  $blocks blocks of commands"
[ "$blocks" -gt 0 ] || { echo "error: no block begins with \`\`\`sh tested" >&2 && exit 1; }
