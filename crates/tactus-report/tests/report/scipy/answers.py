#!/usr/bin/env python3
"""What SciPy says of the tests that comparisons rest on, as JSON. The samples come from a small generator, so that they
are the same everywhere. `scipy_answers.py > scipy.json` writes the answers that are kept for machines without SciPy."""

import json
import math

from scipy import stats

STATE = 20261123


def unit():
    global STATE
    STATE = (STATE * 6364136223846793005 + 1442695040888963407) % 2**64
    return ((STATE >> 33) + 0.5) / 2**31


def sample(n, level, spread):
    # Rounded, so that what is written is what is tested.
    draws = (math.sqrt(-2 * math.log(unit())) * math.cos(2 * math.pi * unit()) for _ in range(n))
    return [round(level * math.exp(spread * draw), 9) for draw in draws]


def p(base, now, factor, alternative, method):
    scaled = [value * factor for value in base]
    return float(stats.mannwhitneyu(now, scaled, alternative=alternative, method=method).pvalue)


cases = []
for m, n, ratio, factor in [
    (5, 5, 1.0, 1.0), (5, 5, 2.0, 1.1), (8, 8, 1.0, 1.1), (8, 8, 1.05, 1.1), (8, 8, 1.3, 1.1), (8, 8, 0.8, 1.1),
    (19, 1, 1.2, 1.0), (19, 1, 1.0, 1.25), (20, 3, 1.1, 1.1), (6, 13, 1.1, 1.0), (30, 30, 1.02, 1.0),
    (40, 40, 1.1, 1.1), (50, 60, 1.03, 1.0), (100, 80, 0.98, 1.0),
]:
    base, now = sample(m, 100.0, 0.1), sample(n, 100.0 * ratio, 0.1)
    # As many pairs as are counted; above it the normal approximation.
    method = "exact" if m * n <= 1600 else "asymptotic"
    cases.append({
        "base": base, "now": now, "factor": factor,
        "larger": p(base, now, factor, "greater", method),
        "smaller": p(base, now, factor, "less", method),
    })

families = []
for n in [1, 2, 7, 30]:
    values = [round(unit() ** 3, 12) for _ in range(n)]
    families.append({"p": values, "bh": [float(q) for q in stats.false_discovery_control(values, method="bh")]})

print(json.dumps({"samples": cases, "families": families}, indent=1))
