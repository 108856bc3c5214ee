"""From the configuration to cells: the validated list of everything that can be run."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench.configuration import CONFIG_DIR, load_paper, load_scale, load_tuned, merged
from fedbench.errors import UserError, unknown
from fedbench.extend import overlaid
from fedbench.schema import Config, FigureSpec, Paper, Scale, ScalePaper, TableSpec, Value
from fedbench.specs import RunSpec, Spec, digest, validated


class Cell(Spec):
    """One number of a table: a method on a setting of a dataset, one run per seed."""

    paper: str
    scale: str
    dataset: str
    setting: dict[str, Value]
    method: str
    runs: list[RunSpec]

    @property
    def setting_label(self) -> str:
        """The setting as a part of a path, e.g. ``p4_imratio0.1``."""
        return "_".join(f"{name}{value}" for name, value in self.setting.items()) or "default"

    @property
    def name(self) -> str:
        """The cell's address, e.g. ``localscgdam/FashionMNIST/p4_imratio0.1/CoDA``."""
        return "/".join((self.paper, self.dataset, self.setting_label, self.method))

    @property
    def path(self) -> Path:
        """Where the train job leaves the cell's result."""
        parts = (self.scale, self.paper, self.dataset, self.setting_label)
        return Path("results", "cells", *parts, f"{self.method}.json")

    @property
    def key(self) -> str:
        """A digest of the keys of all its runs: changes exactly when one of them does."""
        return digest([run.key for run in self.runs])


def _nested(dotted: str, value: Any) -> dict[str, Any]:
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def resolve(
    paper: Paper, scale: Scale, dataset: str, setting: Mapping[str, Value], method: str, seed: int,
    extra: Mapping[str, Any] | None = None, tuned: Mapping[str, Any] | None = None, config_dir: Path = CONFIG_DIR,
) -> RunSpec:  # fmt: skip
    """Resolve one run: paper defaults < dataset < method < tuned values < scale < setting < ``extra``.

    ``tuned`` overrides the method's hyper-parameters; ``None`` reads those under ``config/tuned``.
    """
    for kind, name, known in (("dataset", dataset, paper.datasets), ("method", method, paper.methods)):
        if name not in known:
            raise unknown(kind, name, known)
    data, how = paper.datasets[dataset], paper.methods[method]
    if tuned is None:
        tuned = load_tuned(paper.key, dataset, config_dir).get(method, {})
        if not tuned and paper.extends and not paper.defines(dataset, method):
            tuned = load_tuned(paper.extends, dataset, config_dir).get(method, {})
    shorter = at_scale(paper, scale)
    layers: list[Mapping[str, Any]] = [
        paper.defaults,
        {"data": data.data, "network": data.network, "train": data.train},
        {"method": how.algorithm, "params": {**how.params, **tuned}, "train": how.train, "seed": seed},
        {"train": shorter.train},
        {"train": shorter.per_dataset.get(dataset, {})},
    ]
    for name, entry in paper.settings.items():
        value = setting[name]
        if "." in entry.sets and value not in entry.values:
            raise unknown(f"value of the setting {name}", str(value), map(str, entry.values))
        meant = entry.values.get(value, value)
        layers += [meant if place == "." else _nested(place, meant) for place in entry.sets]
    layers.append(data.fixed)
    run = merged(*layers, extra or {})
    if (own := _own_content(run.get("data", {}).get("dataset"), config_dir / "datasets")) is not None:
        run["data"]["content"] = own
    label = f"{paper.key}/{dataset}/{method} at scale {scale.name}"
    return validated(RunSpec, run, label)


def _own_content(dataset: str | None, folder: Path) -> str | None:
    """Return the digest of a dataset that a file in ``folder`` describes; None for any other."""
    if not (folder / f"{dataset}.yaml").is_file():
        return None
    from fedbench.data import datasets

    return datasets.content(str(dataset), folder)


def cells_of(
    config: Config, paper_key: str, target: str | None = None, config_dir: Path = CONFIG_DIR
) -> list[Cell]:
    """List the cells of a table or figure (``None``: of the whole paper) that the scale runs, each once."""
    paper, scale = load_paper(paper_key, config_dir), load_scale(config.scale, config_dir)
    specs: Mapping[str, TableSpec | FigureSpec] = {**paper.tables, **paper.figures}
    if target is not None and target not in specs:
        raise unknown(f"table or figure of {paper_key}", target, specs)
    chosen = specs.values() if target is None else [specs[target]]
    cells: dict[str, Cell] = {}
    for spec in chosen:
        axes = {name: spec.settings.get(name, [entry.default]) for name, entry in paper.settings.items()}
        for dataset in datasets_run(config, paper, scale, spec):
            for values in itertools.product(*axes.values()):
                setting = dict(zip(axes, values, strict=True))
                for method in spec.methods:
                    cell = _cell(config, paper, scale, dataset, setting, method, config_dir)
                    cells.setdefault(cell.name, cell)
    return list(cells.values())


def _cell(
    config: Config,
    paper: Paper,
    scale: Scale,
    dataset: str,
    setting: dict[str, Value],
    method: str,
    config_dir: Path,
) -> Cell:
    seeds = config.seeds if config.seeds is not None else scale.seeds
    first = resolve(paper, scale, dataset, setting, method, seeds[0], config_dir=config_dir)
    runs = [first.model_copy(update={"seed": seed}) for seed in seeds]
    return Cell(paper=paper.key, scale=scale.name, dataset=dataset, setting=setting, method=method, runs=runs)


def at_scale(paper: Paper, scale: Scale) -> ScalePaper:
    """What a scale runs of a paper, and what it shortens: as the scale's file says, and over it the paper's own.

    A paper that extends another runs what that one does and the datasets it adds. One that nobody names runs as it
    is written, all of it.
    """
    plan = scale.papers.get(paper.key)
    if plan is None and paper.extends in scale.papers:
        plan = scale.papers[paper.extends]
        if plan.datasets is not None:
            datasets = dict.fromkeys([*plan.datasets, *paper.defined.get("datasets", [])])
            plan = plan.model_copy(update={"datasets": list(datasets)})
    own = paper.scales.get(scale.name)
    if plan is None or own is None:
        return plan or own or ScalePaper()
    return ScalePaper(**overlaid(plan.model_dump(), own.model_dump(exclude_unset=True)))


def datasets_run(config: Config, paper: Paper, scale: Scale, spec: TableSpec | FigureSpec) -> list[str]:
    """The datasets of a table or figure that are run: its own, our additions, else the scale's stand-in."""
    plan = at_scale(paper, scale)
    wanted = next(
        chosen for chosen in (config.datasets, plan.datasets, [*paper.datasets]) if chosen is not None
    )
    for name in (*wanted, *plan.per_dataset, *filter(None, [plan.stand_in])):
        if name not in paper.datasets:
            raise unknown(f"dataset of {paper.key}", name, paper.datasets)
    table = isinstance(spec, TableSpec)
    here = [name for name in wanted if name in spec.datasets or (table and not paper.datasets[name].printed)]
    if not here and not table and plan.stand_in is not None and plan.stand_in in wanted:
        here = [plan.stand_in]
    return here


def matching(cells: Sequence[Cell], pattern: str, whole: bool = False) -> list[Cell]:
    """Select the cell of that name, else those that match a shell pattern or hold the text.

    With ``whole``, for what cannot be undone, the pattern has to match one or more whole parts of the name, which
    are paper, dataset, setting and method: ``LocalSGDM`` is not ``LocalSGDM_RL`` too, ``LocalSGDM*`` is.

    Raises:
        UserError: there is none.
    """

    def fits(name: str) -> bool:
        if whole:
            return fnmatch.fnmatchcase(f"/{name}/", f"*/{pattern}/*")
        return fnmatch.fnmatchcase(name, pattern) or pattern in name

    exact = [cell for cell in cells if cell.name == pattern]  # LocalSGDM alone, not LocalSGDM_RL with it
    found = exact or [cell for cell in cells if fits(cell.name)]
    if not found:
        hint = "a word has to be a whole part of a name, * stands for more; " if whole else ""
        raise UserError(f"no cell matches {pattern!r}; {hint}`fedbench list` shows the cells of this scale")
    return found
