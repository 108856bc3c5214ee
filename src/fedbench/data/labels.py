"""Labels as trained on, and the imbalance made by dropping training samples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fedbench.errors import UserError
from fedbench.specs import ImbalanceSpec, LabelSpec


def relabel(classes: np.ndarray, n_classes: int, spec: LabelSpec) -> np.ndarray:
    """Map original classes ``[n]`` to the labels that are trained on, ``[n]`` int64.

    ``halves``: 1 for the classes of the positive half, 0 for the others ("first half of the classes
    positive", localscgdam section 6.1; with an odd number the middle class belongs to the second half).
    """
    if spec.rule == "original":
        return classes.astype(np.int64)
    first = classes < n_classes // 2
    return (first if spec.positive_half == "first" else ~first).astype(np.int64)


def keep(labels: np.ndarray, spec: ImbalanceSpec, rng: np.random.Generator) -> np.ndarray:
    """Return the positions ``[m]`` int64, ascending, of the training samples that an imbalance rule keeps.

    ``drop_positives``: all negatives and floor(r / (1 - r) * n_neg) random positives, so that r of all are
    positive.
    ``minority``: floor(n_c / rho) random samples of each minority class c, all of the others.

    Raises:
        UserError: the rule does not fit the labels, or would need more samples than there are.
    """
    if spec.rule == "none":
        return np.arange(len(labels))
    kept = np.ones(len(labels), dtype=bool)
    for label, number in _targets(labels, spec).items():
        members = np.flatnonzero(labels == label)
        if number > len(members):
            negatives, highest = len(labels) - len(members), len(members) / len(labels)
            raise UserError(
                f"imratio {spec.imratio} needs {number} positives for {negatives} negatives, "
                f"but there are {len(members)}: the highest imratio here is {highest:.4g}."
            )
        if number == 0:
            raise UserError(
                f"the imbalance {spec.model_dump(exclude_none=True)} leaves no sample of class {label}."
            )
        kept[rng.permutation(members)[number:]] = False
    return np.flatnonzero(kept)


def _targets(labels: np.ndarray, spec: ImbalanceSpec) -> dict[int, int]:
    """Say how many samples of which labels remain, in exact arithmetic on the decimals as written."""
    if spec.rule == "drop_positives":
        if not np.isin(labels, (0, 1)).all():
            raise UserError(
                "imbalance rule 'drop_positives' needs binary labels: set labels.rule to 'halves'."
            )
        ratio = Fraction(str(spec.imratio))
        return {1: int(ratio / (1 - ratio) * int((labels == 0).sum()))}
    counts = np.bincount(labels)
    for label in spec.minority:
        if not 0 <= label < len(counts) or not counts[label]:
            raise UserError(
                f"minority class {label} has no training samples; labels go from 0 to {len(counts) - 1}."
            )
    return {label: int(int(counts[label]) / Fraction(str(spec.rho))) for label in spec.minority}


def hold_out(
    labels: np.ndarray, share: float, rng: np.random.Generator, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the positions ``[v]`` int64, ascending, of a random ``share`` of the samples of every label.

    The number is rounded half up for each label. With ``groups`` ``[n]`` whole groups are drawn, so the number
    is about that.

    Raises:
        UserError: a label lies in too few groups to be on both sides.
    """
    if groups is not None and len(labels):
        return _hold_out_groups(labels, groups, share, rng)
    parts = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        number = int(Fraction(str(share)) * len(members) + Fraction(1, 2))
        parts.append(rng.permutation(members)[:number])
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)


def _hold_out_groups(
    labels: np.ndarray, groups: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Offer the groups in random order, those with the rarest labels first.

    A group is drawn if at least half of its samples of its rarest label are still wanted: groups of one sample
    give the numbers that are drawn without groups.
    """
    names, label = np.unique(labels, return_inverse=True)
    _, group = np.unique(groups, return_inverse=True)
    counts = np.zeros((group.max() + 1, len(names)), dtype=np.int64)
    np.add.at(counts, (group, label), 1)
    total = counts.sum(0)
    twice = np.array([int(2 * Fraction(str(share)) * int(n)) for n in total])  # wanted, in exact arithmetic
    rarest = np.where(counts > 0, total, len(labels) + 1).argmin(1)
    held, drawn = np.zeros_like(total), np.zeros(len(counts), dtype=bool)
    order = rng.permutation(len(counts))
    for g in order[np.argsort(total[rarest[order]], kind="stable")]:
        drawn[g] = 2 * held[rarest[g]] + counts[g, rarest[g]] <= twice[rarest[g]]
        held += drawn[g] * counts[g]
    wanted = (twice + 1) // 2
    one_sided = ((wanted > 0) & (held == 0)) | ((wanted < total) & (held == total))
    if one_sided.any():
        k = int(one_sided.argmax())
        raise UserError(
            f"the {total[k]} samples of label {names[k]} lie in {(counts[:, k] > 0).sum()} groups: too few to "
            f"hold out {share:.4g} of them in whole groups. Take another share, or data with more groups."
        )
    return np.flatnonzero(drawn[group])
