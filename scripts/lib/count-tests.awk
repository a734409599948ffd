# Sums the `test result:` lines of a cargo test log into one line, and fails if a test failed or none
# passed. Cargo counts a test that skipped itself as passed. Its output (--show-output) has a line that
# begins with `SKIPPED` or `skipped`: it is counted as skipped here.

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

# A test program that dies prints no result.
/^error: test failed, to rerun pass|^error: could not compile|^error: doctest failed/ { broken = 1 }

/^---- .* stdout ----$/ { section = $0 }

/^(SKIPPED|skipped)[:,] / {
  # A test with several reasons counts once. The number of results so far distinguishes equal sections of
  # different programs.
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
