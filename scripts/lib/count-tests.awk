# Sums the `test result:` lines of a cargo test log into one line, and fails when a test failed or
# there was none. A test that skipped itself passed in cargo's eyes: its output (--show-output) has a
# line that begins with `SKIPPED` or `skipped`; it is counted as skipped here.

/^test result: / {
  results++
  for (i = 1; i < NF; i++) {
    word = $(i + 1)
    sub(/;$/, "", word)
    if (word == "passed") passed += $i
    if (word == "failed") failed += $i
    if (word == "ignored") skipped += $i
  }
}

# A test program that dies says no result.
/^error: test failed, to rerun pass|^error: could not compile|^error: doctest failed/ { broken = 1 }

/^---- .* stdout ----$/ { section = $0 }

/^(SKIPPED|skipped)[:,] / {
  # Several reasons of one test are one skipped test; sections of different programs are told apart
  # by the results that stand before them.
  key = results " " section
  if (!(key in seen)) {
    seen[key] = 1
    passed--
    skipped++
  }
}

END {
  printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
  exit (failed > 0 || broken || passed <= 0) ? 1 : 0
}
