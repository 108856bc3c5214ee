"""The verdicts on claims that compare methods, without fedbench: pandas, SciPy and the files of the repository.

python examples/claims.py localscgdam reduced
"""

import sys

import numpy as np
from scipy import stats
from verdicts import LEVEL, least_spread, norm, places, read

MATTERS = {"accuracy": 0.01, "norm": 0.0}
"""The smallest difference that matters, by the last word of a metric; 0.005 of an AUC or AP."""


def p_above(d, bound, least, among=1):
    """Student's t, of a spread that is ``least`` or more, times the number of comparisons."""
    d = d[~np.isnan(d)]
    if len(d) < 2 or np.isneginf(d).any():
        return 1.0
    known = d[np.isfinite(d)]
    d = np.where(np.isfinite(d), d, known.max() if len(known) else bound + 1) - bound
    if (s := max(d.std(ddof=1), least)) <= 1e-9 * abs(d.mean()):
        return float(d.mean() <= 0)
    return min(among * stats.t.sf(d.mean() / s * np.sqrt(len(d)), len(d) - 1), 1.0)


def listed(given):
    """One value or several, as several."""
    return given if isinstance(given, list) else [given]


def effects(paper, values, diverged, claim, asked):
    """[rivals, places, seeds]: method less rival, -inf if the method diverged, inf if its rival; the least spread."""
    names, than, when = ["dataset", *paper["settings"]], asked["than"], asked.get("when", {})
    data = [d for d, kind in paper["datasets"].items() if claim.get("own_data") or kind.get("printed", True)]
    free = {*when, *(than if isinstance(than, dict) else {})}
    by_place, read = {}, {}
    for table in listed(claim["in"]):
        for place in places(paper, table):
            at = dict(zip(names, place, strict=True))
            if at["dataset"] in data and all(
                at[n] in [*map(norm, listed(v))] for n, v in claim.get("only", {}).items()
            ):
                by_place[tuple((n, v) for n, v in at.items() if n not in free)] = at

    def runs(at, method, setting):
        place = tuple(norm(v) for v in {**at, **setting}.values())
        lost = dict.fromkeys(diverged.get((place, method), []), -np.inf)
        sign = -1 if asked["metric"].endswith(("loss", "norm")) else 1  # lower is better
        ours = values.get((place, method, asked["metric"]), {})
        read.setdefault(place, []).extend(ours.values())
        return {s: sign * v for s, v in ours.items()} | lost

    rows = []
    for method in listed(asked["method"]):
        sides = [(method, than)] if isinstance(than, dict) else [(rival, {}) for rival in listed(than)]
        for rival, setting in sides:
            pairs = [(runs(at, method, when), runs(at, rival, setting)) for at in by_place.values()]
            rows += [
                [{s: -np.inf if np.isneginf(a[s]) else a[s] - b[s] for s in a if s in b} for a, b in pairs]
            ]
    every = sorted({s for row in rows for pair in row for s in pair})
    array = np.array([[[pair.get(s, np.nan) for s in every] for pair in row] for row in rows])
    array = array.reshape(len(rows), len(by_place), -1)
    least = {}
    for place, of in ((place, of) for place, of in read.items() if of):
        least[place[0]] = min(least.get(place[0], np.inf), least_spread(of, asked["metric"]))
    least = max(least.values(), default=0.0)
    return array[:, (n := (~np.isnan(array).any(0)).sum(-1)) >= min(3, max(1, n.max(initial=0)))], least


def judged(d, least, form, holds, margin, matters):
    """Supported, contradicted, not supported, undecided, by [rivals, places, seeds]; three seeds decide."""
    if not d.size or (~np.isnan(d).any(0)).sum(-1).max() < 3:
        return "undecided" if d.size else "not run"
    if holds == "average":  # where a rival diverged, the seed counts as the others do
        usual = np.nanmean(np.where(np.isfinite(d), d, np.nan), -1, keepdims=True)
        d = np.where(np.isposinf(d) & ~np.isposinf(d).all(1, keepdims=True), usual, d)
        d = np.where(np.isneginf(d).any(1) & ~np.isnan(d).any(1), -np.inf, d.mean(1))[:, None]
    rivals, m = d.shape[:2]
    low, enough = (-margin, None) if form == "no_worse" else (margin, max(margin, matters))

    def up(n):
        return np.array([[p_above(x, low, least, n) for x in row] for row in d])

    def down(bound, n):
        return np.array([[p_above(-x, -bound, least, n) for x in row] for row in d])

    against = min(low, 0.0) if form == "no_worse" else 0.0
    if holds == "most":
        k, bounds = m // 2 + 1, (against, enough)
        supported = np.sort(up(m - k + 1).max(0))[k - 1]
        lost, small = (np.sort(down(b, k * rivals).min(0))[m - k] if b is not None else 1 for b in bounds)
    else:
        supported, lost = up(1).max(), down(against, rivals * m).min()
        small = 1.0 if enough is None else down(enough, (1 + (m > 1)) * rivals * m).min()
        if m > 1 and enough is not None:
            small = min(small, min(p_above(-x, -enough, least, 2 * rivals) for x in d.mean(1)))
    words = ("supported", supported), ("contradicted", lost), ("not supported", small)
    return next((word for word, p in words if p <= LEVEL), "undecided")


def judge(study, scale):
    """{number of the claim: verdict}, of those with forms better and no_worse on final values."""
    paper, values, diverged = read(study, scale)
    said = {}
    for number, claim in enumerate(paper.get("claims", []), 1):
        form = next((name for name in ("better", "no_worse") if name in claim), None)
        if form and not claim.get("untested") and not {"change", "over"} & {*claim[form]}:
            d, least = effects(paper, values, diverged, claim, claim[form])
            matters = MATTERS.get(claim[form]["metric"].split("_")[-1], 0.005)
            margin, holds = claim[form].get("margin", 0.0), claim.get("holds", "average")
            said[number] = judged(d, least, form, holds, margin, matters)
    return said


if __name__ == "__main__":
    for claim, verdict in judge(*sys.argv[1:3]).items():
        print(claim, verdict)
