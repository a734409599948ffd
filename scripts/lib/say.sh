# Sourced by the scripts: messages, root, and a test for programs.

# Prints the prefix of a command that needs root: nothing as root, or `sudo`; `none` if neither is possible.
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

# fail ERROR [HINT]: prints both in the form of tactus, and exits with 2.
fail() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 2
}

# rustup's directory and the system's tools are not on every PATH.
PATH="$PATH:${HOME:-/root}/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
export PATH
