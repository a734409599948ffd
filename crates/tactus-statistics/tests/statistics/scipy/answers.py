#!/usr/bin/env python3
"""What SciPy says of the same samples, as JSON. They come from a small generator, so that they are the same everywhere.
`answers.py > kept.json` writes the answers that are kept for machines without SciPy."""

import json
import math

import numpy as np
from scipy import optimize, stats

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

signed_ranks = []
for n, shift in [(1, 0.0), (5, 0.1), (6, 0.2), (8, 0.0), (10, 0.1), (10, -0.2), (20, 0.05), (45, 0.03), (60, 0.0)]:
    differences = [round(math.log(value / 100.0) + shift, 9) for value in sample(n, 100.0, 0.1)]
    signed_ranks.append({
        "differences": differences, "p": float(stats.wilcoxon(differences, method="exact").pvalue),
    })

# Periods of so many places, of which so many have the property; in so many of them the lot fell on one that has it.
binomials = []
for places, marked, times in [
    ([10] * 20, [1] * 20, 6), ([10] * 30, [1] * 30, 5), ([8] * 12, [2] * 12, 6), ([10] * 600, [1] * 600, 90),
    ([5, 10, 20] * 4, [1, 2, 3] * 4, 5), ([10] * 9 + [4] * 3, [1] * 9 + [3] * 3, 4), ([10] * 25, [9] * 25, 25),
]:
    chances = [some / all for some, all in zip(marked, places)]
    binomials.append({
        "places": places, "marked": marked, "times": times, "p": float(stats.poisson_binom(chances).sf(times - 1)),
    })


def maxima(n, xi):
    """Of blocks of time, in ns: a power law, an exponential one, and one with an end."""
    draws = (unit() for _ in range(n))
    return [round(19_000 + 4_200 * (-math.log(u) if xi == 0 else (u**-xi - 1) / xi)) for u in draws]


def law(x):
    """The generalised Pareto distribution whose score is nought: shape and scale."""
    mean = x.mean()

    def score(at):
        xi, z = at[0], x / (mean * at[1])
        inside = 1 + xi * z
        return [np.log(inside).mean() / xi**2 - (1 + 1 / xi) * (z / inside).mean(), (1 + xi) * (z / inside).mean() - 1]

    start = optimize.minimize(
        lambda at: -stats.genpareto.logpdf(x, at[0], scale=mean * math.exp(at[1])).sum(), [0.05, 0.0],
        method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 10_000},
    ).x
    found = optimize.root(score, [start[0], math.exp(start[1])], tol=1e-13).x
    assert np.abs(score(found)).max() < 1e-10
    return float(found[0]), float(mean * found[1])


def tail(values):
    data = np.array(values, dtype=float)
    threshold = np.sort(data)[-len(data) // 5 - 1]
    x = data[data > threshold] - threshold
    xi, sigma = law(x)
    half, scores = len(data) // 2, stats.norm.ppf(stats.rankdata(data) / (len(data) + 1))
    c, n = scores - scores.mean(), len(data)
    return {
        "maxima": values, "threshold": float(threshold), "xi": xi, "sigma": sigma,
        "likelihood": float(stats.genpareto.logpdf(x, xi, scale=sigma).sum()),
        "halves": float(stats.mannwhitneyu(data[:half], data[half:], alternative="two-sided", method="asymptotic").pvalue),
        "ljung_box": float(n * (n + 2) * sum((c[:-h] @ c[h:] / (c @ c)) ** 2 / (n - h) for h in range(1, 11))),
        "kpss": float((np.cumsum(c) ** 2).sum() / (n * (c @ c))),
    }


tails = [tail(maxima(n, xi)) for n, xi in [(1800, 0.0), (600, 0.25), (600, -0.25)]]

answers = {
    "samples": cases, "families": families, "signed_ranks": signed_ranks, "binomials": binomials, "tails": tails,
}
lines = (f'"{name}": [\n' + ",\n".join(json.dumps(one) for one in some) + "\n]" for name, some in answers.items())
print("{\n" + ",\n".join(lines) + "\n}")
