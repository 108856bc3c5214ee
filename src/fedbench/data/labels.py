"""Labels as trained on, and the imbalance made by dropping training samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fedbench.errors import UserError, unknown
from fedbench.random import stream
from fedbench.spec import ImbalanceSpec, LabelSpec


def relabel(classes: np.ndarray, names: Sequence[str], spec: LabelSpec, seed: int = 0) -> np.ndarray:
    """Map original classes ``[n]`` with their ``names`` to the labels that are trained on, ``[n]`` int64.

    ``halves``: 1 for the classes of the positive half, 0 for the others ("first half of the classes
    positive", localscgdam section 6.1; with an odd number the middle class belongs to the second half).
    ``random_halves``: the same with the classes in an order drawn by ``seed`` (codasca's ImageNet).
    ``named``: 1 for the classes that ``positive`` lists, by number or name, 0 for the others.

    Raises:
        UserError: no class has such a name or number, or all are listed.
    """
    if spec.rule == "original":
        return classes.astype(np.int64)
    if spec.rule == "named":
        listed: np.ndarray = _positive(names, spec)[classes].astype(np.int64)
        return listed
    order = np.arange(len(names))
    if spec.rule == "random_halves":
        order = stream(seed, "labels").permutation(order)
    first = np.isin(classes, order[: len(names) // 2])
    return (first if spec.positive_half == "first" else ~first).astype(np.int64)


def _positive(names: Sequence[str], spec: LabelSpec) -> np.ndarray:
    """Say of each class whether it is listed, ``[C]`` bool; a class ``a+b`` is listed by ``a`` as by ``b``."""
    chosen = np.zeros(len(names), dtype=bool)
    for wanted in spec.positive:
        if isinstance(wanted, int):
            meant = [at == wanted for at in range(len(names))]
        else:
            meant = [wanted == name or wanted in name.split("+") for name in names]
        if not any(meant):
            raise unknown("positive class", str(wanted), [*map(str, range(len(names))), *names])
        chosen |= meant
    if chosen.all():
        raise UserError("labels.positive lists every class: there would be no negatives.")
    return chosen


def flip(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the labels ``[n]`` with a ``share`` of the positives, rounded down, called negative.

    Raises:
        UserError: the labels are not binary, or have no positive.
    """
    if not share:
        return labels
    if not np.isin(labels, (0, 1)).all():
        raise UserError("labels.flip needs binary labels: set labels.rule to 'named' or 'halves'.")
    positives = np.flatnonzero(labels == 1)
    if not len(positives):
        raise UserError(f"labels.flip is {share}, but no positive is left to flip.")
    flipped = labels.copy()
    flipped[rng.permutation(positives)[: int(Fraction(str(share)) * len(positives))]] = 0
    return flipped


def keep(
    labels: np.ndarray, spec: ImbalanceSpec, rng: np.random.Generator, classes: np.ndarray | None = None
) -> np.ndarray:
    """Return the positions ``[m]`` int64, ascending, of the training samples that an imbalance rule keeps.

    ``drop_positives``: all negatives and floor(r / (1 - r) * n_neg) random positives, so that r of all are
    positive.
    ``drop_positives_per_class``: all negatives and floor(r / (1 - r) * n_neg / C) random positives of each of the C
    positive ``classes`` ``[n]`` (codasca's program: 55 of the 500 images of a class of CIFAR-100 for r = 0.1).
    ``remove_positives``: all negatives and floor((1 - share) * n_pos) random positives.
    ``minority``: floor(n_c / rho) random samples of each minority class c, all of the others.

    Raises:
        UserError: the rule does not fit the labels, or would need more samples than there are.
    """
    if spec.rule == "none":
        return np.arange(len(labels))
    if spec.rule == "drop_positives_per_class":
        assert classes is not None
        return _keep_per_class(labels, classes, spec, rng)
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
    """Say how many samples of each label remain, in exact arithmetic on the decimals as written."""
    if spec.rule in ("drop_positives", "remove_positives"):
        _check_binary(labels, spec)
        if spec.rule == "remove_positives":
            return {1: int((1 - Fraction(str(spec.share))) * int((labels == 1).sum()))}
        ratio = Fraction(str(spec.imratio))
        return {1: int(ratio / (1 - ratio) * int((labels == 0).sum()))}
    counts = np.bincount(labels)
    for label in spec.minority:
        if not 0 <= label < len(counts) or not counts[label]:
            raise UserError(
                f"minority class {label} has no training samples; labels go from 0 to {len(counts) - 1}."
            )
    return {label: int(int(counts[label]) / Fraction(str(spec.rho))) for label in spec.minority}


def _check_binary(labels: np.ndarray, spec: ImbalanceSpec) -> None:
    if not np.isin(labels, (0, 1)).all():
        raise UserError(
            f"imbalance rule {spec.rule!r} needs binary labels: set labels.rule to 'halves' or 'named'."
        )


def _keep_per_class(
    labels: np.ndarray, classes: np.ndarray, spec: ImbalanceSpec, rng: np.random.Generator
) -> np.ndarray:
    _check_binary(labels, spec)
    ratio, negatives = Fraction(str(spec.imratio)), int((labels == 0).sum())
    positive = np.unique(classes[labels == 1])
    number = int(ratio / (1 - ratio) * negatives / max(1, len(positive)))
    if not number:
        raise UserError(
            f"imratio {spec.imratio} leaves no sample of each of {len(positive)} positive classes beside {negatives}"
            " negatives."
        )
    kept = labels == 0
    for name in positive:
        members = np.flatnonzero(classes == name)
        if number > len(members):
            raise UserError(
                f"imratio {spec.imratio} needs {number} samples of each positive class for {negatives} negatives, but"
                f" there are {len(members)} of class {name}."
            )
        kept[rng.permutation(members)[:number]] = True
    return np.flatnonzero(kept)


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
