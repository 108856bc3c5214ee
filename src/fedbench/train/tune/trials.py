"""What tuning tries: the methods with a grid, the combinations of each, and the runs of a combination."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study import cells
from fedbench.study.layers import overlaid, overrides
from fedbench.study.schema import FigureSpec, MethodEntry, Paper, Scale, TableSpec, Value


def tunable(
    paper: Paper,
    methods: Sequence[str] | None,
    at: Mapping[str, Value],
    source: Path,
    say: Callable[[str], None],
) -> list[str]:
    """List the methods to tune at a dataset and settings. Without names, methods that have no grid are left out.

    Raises:
        UserError: there is none left, or one that was named has no grid.
    """
    asked = [
        name for name in methods or _with_cells(paper, str(at["dataset"])) if paper.methods[name].has(at)
    ]
    fixed = [name for name in asked if not paper.methods[name].grid]
    if fixed and methods:
        raise UserError(f"{source}: methods.{fixed[0]} has no grid: there is nothing to try")
    if fixed:
        say(f"not tuned, as {source} gives no grid: {', '.join(fixed)}")
    if asked and len(fixed) == len(asked):
        raise UserError(f"{source}: no method has a grid: there is nothing to try")
    return [name for name in asked if name not in fixed]


def _with_cells(paper: Paper, dataset: str) -> list[str]:
    """List the methods that a table or figure shows on a dataset; all where none does."""
    ours = not paper.datasets[dataset].printed

    def stands_in(spec: TableSpec | FigureSpec) -> bool:
        added = spec.additions if isinstance(spec, TableSpec) else []
        return dataset in spec.datasets or (ours if added is None else dataset in added)

    shown = {name for spec in paper.targets.values() if stands_in(spec) for name in spec.methods}
    return [name for name in paper.methods if name in (shown or paper.methods)]


def trials_of(paper: Paper, method: MethodEntry, name: str) -> list[dict[str, Any]]:
    """List the combinations a method tries: its grid, which must have exactly ``paper.tune.trials`` of them."""
    assert paper.tune is not None
    options = [
        [_pairs(names.split(", "), value) for value in values] for names, values in method.grid.items()
    ]
    trials = [
        {key: value for part in chosen for key, value in part.items()}
        for chosen in itertools.product(*options)
    ]
    if len(trials) != paper.tune.trials:
        raise UserError(
            f"{paper.key}: the grid of {name} has {len(trials)} combinations,"
            f" but every method gets {paper.tune.trials}"
        )
    return trials


def _pairs(names: list[str], value: Any) -> dict[str, Any]:
    """Give each of several names its part of a list; one name takes the value as it is."""
    return dict(zip(names, value if len(names) > 1 else [value], strict=True))


def trial_specs(
    paper: Paper, dataset: str, method: str, params: dict[str, Any], given: Mapping[str, Any] | None = None
) -> list[RunSpec]:
    """Resolve the runs of one trial: the paper's setting with training data held out, one for each seed.

    First those whose score counts, then the short ones (:class:`~fedbench.study.tuning.StableSpec`). ``given`` is
    what the call sets in all runs, over ``params`` too.
    """
    assert paper.tune is not None
    tune = paper.tune.on(dataset)
    scale = Scale(name="tune", description="", seeds=tune.seeds, papers={})
    held_out = {} if tune.validation is None else {"data": {"validation": tune.validation}}
    extra = overlaid({"train": tune.train, **held_out}, cells.piece_of(params))
    given = overrides(given or {})

    def run(seed: int, setting: Mapping[str, Value], train: Mapping[str, Any]) -> RunSpec:
        changes = overlaid(overlaid(extra, {"train": train}), given)
        at = _setting(paper, method, setting)
        return cells.resolve(paper, scale, dataset, at, method, changes, tuned={}).seeded(seed)

    runs = [run(seed, tune.setting, {}) for seed in tune.seeds]
    if tune.stable is not None:
        setting = {**tune.setting, **tune.stable.setting}
        runs += [run(seed, setting, tune.stable.train) for seed in tune.stable.seeds]
    if not runs[0].data.validation:
        raise UserError(
            f"{paper.key}: nothing of {dataset} is held out to tune on; give `validation` in the section `tune`"
        )
    return runs


def _setting(paper: Paper, method: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Complete the values of a trial's settings; where the method has no cell there, it is tuned at its own first."""
    setting = {name: values.get(name, entry.default) for name, entry in paper.settings.items()}
    for name, allowed in paper.methods[method].only.items():
        if name in setting and setting[name] not in allowed:
            setting[name] = allowed[0]
    return setting
