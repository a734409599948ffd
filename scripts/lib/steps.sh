# Sourced by the scripts: steps, with their times and results.

steps_started=${steps_started:-$(date +%s)}
steps_failed=""
steps_skipped=""

# A file with the output of failed steps, which is printed again at the end.
steps_said=${STEPS_SAID:-}

# STEPS_TIMES names a file with a line for each step that has ended: when it began, how long it took, its name.
# STEPS_BESIDE is set for steps that run in parallel with the others.

# said LOG: the last lines of a failed step; of tests, the output of each that failed.
said() {
  if grep -q '^failures:$' "$1"; then
    awk '/^failures:$/ { inside = !inside; next }
      /^---- .* stdout ----$/ { lines = 0 }
      inside && ++lines <= 30 { print substr($0, 1, 1000) }' "$1"
  else
    tail -n 40 "$1" | cut -c 1-1000
  fi
}

# step NAME COMMAND...: runs the command and prints its time. Keeps the name and the last lines of a failed step.
step() {
  step_name=$1
  shift
  step_began=$(date +%s)
  printf '\n== %s\n' "$step_name"
  # In the directory of $steps_said if that is set: an interrupted script then leaves no file elsewhere.
  step_log=${steps_said:+$steps_said.$$}
  step_log=${step_log:-$(mktemp)}
  # Not `if "$@"`: it would ignore a failing line in the middle of a function.
  {
    set +e
    (
      set -e
      "$@"
    ) </dev/null 2>&1
    echo $? >"$step_log.status"
  } | tee "$step_log"
  step_status=$(cat "$step_log.status")
  step_now=$(date +%s)
  [ -z "${STEPS_TIMES:-}" ] ||
    printf '%d %d %s%s\n' "$((step_began - steps_started))" "$((step_now - step_began))" "$step_name" "${STEPS_BESIDE:+ (beside the others)}" >>"$STEPS_TIMES"
  step_words="$((step_now - step_began)) s, $((step_now - steps_started)) s since the beginning"
  if [ "$step_status" -eq 0 ]; then
    printf '   %s: done (%s)\n' "$step_name" "$step_words"
  else
    printf '   %s: FAILED with %s (%s)\n' "$step_name" "$step_status" "$step_words"
    steps_failed="$steps_failed${steps_failed:+, }$step_name"
    [ -z "$steps_said" ] || { printf '\n-- %s\n' "$step_name" && said "$step_log"; } >>"$steps_said"
  fi
  rm -f "$step_log" "$step_log.status"
  return 0
}

# must NAME COMMAND...: a step that all later steps need: the script ends if it fails.
must() {
  step "$@"
  [ "$step_status" -eq 0 ] || exit 1
}

# skipped NAME WHY
skipped() {
  printf '\n== %s\n   %s: skipped (%s)\n' "$1" "$1" "$2"
  steps_skipped="$steps_skipped${steps_skipped:+, }$1"
}

# results: the failed and the skipped steps, as `joined` reads them.
results() {
  printf '%s\n%s\n' "$steps_failed" "$steps_skipped"
}

# beside SCRIPT: starts a script of steps in the background, at the lowest priority. A separate session allows to kill all
# of it.
beside() {
  export steps_started
  beside_results=$(mktemp)
  STEPS_BESIDE=yes setsid chrt --idle 0 "$1" "$beside_results" </dev/null &
  beside_pid=$!
  trap 'kill -- "-$beside_pid" 2>/dev/null || true; rm -f "$beside_results"' EXIT
  trap 'exit 130' INT TERM
}

# joined: waits until that script has ended, and adds its results.
joined() {
  if wait "$beside_pid"; then
    { read -r beside_failed && read -r beside_skipped; } <"$beside_results"
  else
    beside_failed="the steps in parallel (beside.sh)" beside_skipped=""
  fi
  trap - EXIT
  rm -f "$beside_results"
  steps_failed="$steps_failed${steps_failed:+${beside_failed:+, }}$beside_failed"
  steps_skipped="$steps_skipped${steps_skipped:+${beside_skipped:+, }}$beside_skipped"
}

# step_times: prints the time of each step, in the order in which they began.
step_times() {
  printf '\n   began    took  step\n'
  sort -n "$STEPS_TIMES" | while read -r began took name; do printf '%6s s %5s s  %s\n' "$began" "$took" "$name"; done
  printf '%16s  in all\n' "$(($(date +%s) - steps_started)) s"
}
