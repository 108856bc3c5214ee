"""Labels as trained on, and the imbalance made by dropping training samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """Say of each class whether it is listed, ``[C]`` bool; ``a+b`` is listed by ``a`` as by ``b``."""
    chosen = np.zeros(len(names), dtype=bool)
    for wanted in spec.positive:
        if isinstance(wanted, int):
            meant = [at == wanted for at in range(len(names))]
        else:
            meant = [wanted == name or (all(parts := name.split("+")) and wanted in parts) for name in names]
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
    kept, quotas = np.ones(len(labels), dtype=bool), [*_quotas(labels, spec, classes)]
    for what, members, number in quotas:
        if number > len(members):
            negatives, most = int((labels == 0).sum()), len(quotas) * len(members)
            raise UserError(
                f"imratio {spec.imratio} needs {number} samples of {what} for {negatives} negatives, but there are "
                f"{len(members)}: the highest imratio here is {most / (most + negatives):.4g}."
            )
        if number == 0:
            raise UserError(f"the imbalance {spec.model_dump(exclude_none=True)} leaves no sample of {what}.")
        kept[rng.permutation(members)[number:]] = False
    return np.flatnonzero(kept)


def _quotas(
    labels: np.ndarray, spec: ImbalanceSpec, classes: np.ndarray | None
) -> Iterator[tuple[str, np.ndarray, int]]:
    """Say how many samples of each kind remain, in exact arithmetic on the decimals as written."""
    if spec.rule == "minority":
        counts = np.bincount(labels)
        for label in spec.minority:
            if not 0 <= label < len(counts) or not counts[label]:
                raise UserError(
                    f"minority class {label} has no training samples; labels go from 0 to {len(counts) - 1}."
                )
            number = int(int(counts[label]) / Fraction(str(spec.rho)))
            yield f"class {label}", np.flatnonzero(labels == label), number
        return
    if not np.isin(labels, (0, 1)).all():
        raise UserError(
            f"imbalance rule {spec.rule!r} needs binary labels: set labels.rule to 'halves' or 'named'."
        )
    positive, negatives = labels == 1, int((labels == 0).sum())
    if spec.rule == "remove_positives":
        yield "class 1", np.flatnonzero(positive), int((1 - Fraction(str(spec.share))) * int(positive.sum()))
        return
    ratio = Fraction(str(spec.imratio))
    quota = ratio / (1 - ratio) * negatives
    if spec.rule == "drop_positives":
        yield "class 1", np.flatnonzero(positive), int(quota)
        return
    assert classes is not None
    names = np.unique(classes[positive])
    for name in names:
        members = np.flatnonzero(positive & (classes == name))
        yield f"class {name}", members, int(quota / len(names))


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
