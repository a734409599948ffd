# Sourced by the scripts: words, root, and what the machine has.

# What needs root is done with this in front: nothing, or sudo; `none` when there is neither.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    echo ""
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    echo sudo
  else
    echo none
  fi
}

has() {
  command -v "$1" >/dev/null 2>&1
}

say() {
  printf '%s\n' "$*"
}

# An error and what would help, as the command says them too.
fail() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 2
}

# rustup's own directory and the system's tools are not on everybody's PATH.
PATH="$PATH:${HOME:-/root}/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
export PATH
