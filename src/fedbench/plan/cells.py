"""From the configuration to cells: the validated list of everything that can be run."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fedbench.errors import UserError, unknown
from fedbench.plan import starts
from fedbench.plan.configuration import CONFIG_DIR, load_paper, scale_of
from fedbench.plan.layers import Layer, nested, overrides
from fedbench.plan.merging import merged, overlaid
from fedbench.plan.schema import Config, FigureSpec, Paper, Scale, ScalePaper, TableSpec, Value
from fedbench.plan.tuned import tuned_for
from fedbench.specs import Name, RunSpec, Spec, as_value, digest, validated


class Cell(Spec):
    """One number of a table: a method on a setting of a dataset, one run per seed."""

    paper: Name
    scale: Name
    dataset: Name
    setting: dict[Name, Annotated[Value, AfterValidator(as_value)]]
    method: Name
    runs: list[RunSpec]

    @property
    def setting_label(self) -> str:
        """The setting as a part of a path, e.g. ``p4_imratio0.1``."""
        return label_of(self.setting)

    @property
    def name(self) -> str:
        """The cell's address, e.g. ``localscgdam/FashionMNIST/p4_imratio0.1/CoDA``."""
        return "/".join((self.paper, self.dataset, self.setting_label, self.method))

    @property
    def path(self) -> Path:
        """Where the train job leaves the cell's result."""
        return path_of(self.scale, self.paper, self.dataset, self.setting, self.method)

    @property
    def key(self) -> str:
        """A digest of the keys of all its runs: changes exactly when one of them does."""
        return digest([run.key for run in self.runs])


def label_of(setting: Mapping[str, Value]) -> str:
    """Return a setting as a part of a path."""
    return "_".join(f"{name}{value}" for name, value in setting.items()) or "default"


def path_of(scale: str, paper: str, dataset: str, setting: Mapping[str, Value], method: str) -> Path:
    """Return where the result of a cell is, which need not be resolved for that."""
    return Path("results", "cells", scale, paper, dataset, label_of(setting), f"{method}.json")


def piece_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return tuned values as a piece of a run specification: dotted names are places, others hyper-parameters."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        result = overlaid(result, nested(name if "." in name else f"params.{name}", value))
    return result


def resolve(
    paper: Paper, scale: Scale, dataset: str, setting: Mapping[str, Value], method: str, seed: int,
    extra: Mapping[str, Any] | None = None, tuned: Mapping[str, Any] | None = None, config_dir: Path = CONFIG_DIR,
) -> RunSpec:  # fmt: skip
    """Resolve one run: each layer wins over those before it.

    Paper defaults, dataset, method, scale, tuned values, setting, what the method does at that setting, what is fixed
    of the dataset, ``extra``. ``tuned`` takes the place of the values under ``config/tuned``, which ``None`` reads.
    """
    for kind, name, known in (("dataset", dataset, paper.datasets), ("method", method, paper.methods)):
        if name not in known:
            raise unknown(kind, name, known)
    layers = layers_of(paper, scale, dataset, setting, method, seed, tuned, config_dir)
    run = merged(*(layer.piece for layer in layers), extra or {})
    data, described = run.get("data", {}), config_dir / "datasets"
    if (own := _own_content(data.get("dataset"), described)) is not None:
        data["content"] = own
    if data.get("clients") == "sites":
        data["clients"] = _count_sites([data.get("dataset"), *data.get("sources", ())], described)
    label = f"{paper.key}/{dataset}/{method} at scale {scale.name}"
    if "cell" in (run.get("start") or {}):
        resolve_cell = functools.partial(
            _resolve_start, paper, scale, seed, config_dir, (dataset, method, setting)
        )
        run["start"] = starts.resolved(run["start"], dataset, setting, label, resolve_cell)
    return validated(RunSpec, run, label)


def layers_of(
    paper: Paper, scale: Scale, dataset: str, setting: Mapping[str, Value], method: str, seed: int,
    tuned: Mapping[str, Any] | None = None, config_dir: Path = CONFIG_DIR,
) -> list[Layer]:  # fmt: skip
    """Return the layers of a run by name, later ones win."""
    data, how = paper.datasets[dataset], paper.methods[method]
    source = f"{config_dir / 'papers' / paper.key}.yaml"
    found = tuned_for(paper, dataset, setting, method, scale, config_dir)
    path, chosen = ("tuning", tuned) if tuned is not None else (found.path, found.values)
    shorter, scaled = at_scale(paper, scale), f"scale {scale.name}"
    layers = [
        Layer(f"defaults of {source}", paper.defaults),
        Layer(f"dataset {dataset} of {source}", data.piece()),
        Layer(
            f"method {method} of {source}",
            {"method": how.algorithm, "params": how.params, "seed": seed, **how.piece()},
        ),
        Layer(scaled, {"train": shorter.train}),
        Layer(f"{scaled}, {dataset}", {"train": shorter.per_dataset.get(dataset, {})}),
        Layer(f"tuned ({path})", piece_of(chosen)),
    ]
    held = {name: entry for name, entry in paper.settings.items() if entry.holds(dataset)}
    for name, entry in held.items():
        value = setting[name]
        if "." in entry.sets and value not in entry.values:
            raise unknown(f"value of the setting {name}", str(value), map(str, entry.values))
        meant = entry.values.get(value, value)
        layers += [
            Layer(f"setting {name} = {value}", meant if place == "." else nested(place, meant))
            for place in entry.sets
        ]
    here = {"dataset": dataset, **{name: setting[name] for name in held}}
    for name, pieces in how.at.items():
        if name in here:
            layers.append(Layer(f"method {method} at {name} = {here[name]}", pieces.get(here[name], {})))
    layers.append(Layer(f"dataset {dataset} of {source}, fixed", data.fixed))
    return layers


def _resolve_start(
    paper: Paper, scale: Scale, seed: int, config_dir: Path, child: tuple[str, str, Mapping[str, Value]],
    dataset: str, setting: Mapping[str, Value], method: str,
) -> RunSpec:  # fmt: skip
    """Resolve the run that another one starts from."""
    if (dataset, method, setting) == child:
        raise UserError(f"{paper.key}/{dataset}/{method}: start.cell is the cell itself")
    try:
        return resolve(paper, scale, dataset, setting, method, seed, config_dir=config_dir)
    except RecursionError:
        raise UserError(f"{paper.key}/{dataset}/{method}: start.cell: cells start from each other") from None


def _own_content(dataset: str | None, folder: Path) -> str | None:
    """Return the digest of a dataset that a file in ``folder`` describes; None for any other."""
    if not (folder / f"{dataset}.yaml").is_file():
        return None
    from fedbench.data import datasets

    return datasets.content(str(dataset), folder)


def _count_sites(names: Sequence[str], folder: Path) -> int:
    """Return how many sites own the samples: each is a client."""
    from fedbench.data import sites

    return sites.count(names, folder)


def cells_of(
    config: Config, paper_key: str, target: str | None = None, config_dir: Path = CONFIG_DIR,
    known: dict[str, Cell] | None = None,
) -> list[Cell]:  # fmt: skip
    """List the cells of a table or figure (``None``: of the whole paper) that the scale runs, each once.

    ``known`` holds cells of this paper that were resolved with this configuration before, and gets the others: to
    resolve one takes a millisecond.
    """
    paper, scale = load_paper(paper_key, config_dir), scale_of(config, config_dir)
    specs: Mapping[str, TableSpec | FigureSpec] = {**paper.tables, **paper.figures}
    if target is not None and target not in specs:
        raise unknown(f"table or figure of {paper_key}", target, specs)
    chosen = specs.values() if target is None else [specs[target]]
    known = {} if known is None else known
    cells: dict[str, Cell] = {}
    for spec in chosen:
        for dataset, setting, method in places_run(config, paper, scale, spec):
            place = repr((dataset, setting, method))  # 1 and True are equal, and two settings
            if place not in known:
                known[place] = cell_at(config, paper, scale, dataset, setting, method, config_dir)
            cells.setdefault(known[place].name, known[place])
    return list(cells.values())


def places_run(
    config: Config, paper: Paper, scale: Scale, spec: TableSpec | FigureSpec
) -> Iterator[tuple[str, dict[str, Value], str]]:
    """List dataset, setting and method of the cells of a table or figure that a scale runs."""
    axes = paper.values(spec)
    for name, run in at_scale(paper, scale).settings.items():
        axes[name] = [value for value in axes[name] if value in run or len(axes[name]) == 1]
    for dataset in datasets_run(config, paper, scale, spec):
        for values in itertools.product(*axes.values()):
            setting = dict(zip(axes, values, strict=True))
            for method in spec.methods:
                if paper.methods[method].has({"dataset": dataset, **setting}):
                    yield dataset, setting, method


def cell_at(
    config: Config,
    paper: Paper,
    scale: Scale,
    dataset: str,
    setting: dict[str, Value],
    method: str,
    config_dir: Path = CONFIG_DIR,
) -> Cell:
    """Return the cell of one place at a scale, whether the scale runs it or not."""
    seeds = config.seeds if config.seeds is not None else scale.seeds
    for name, entry in paper.settings.items():
        if at := next((place for place in config.set if place in entry.sets), None):
            raise UserError(
                f"set {at}: that is the setting {name} of {paper.key}, which is part of a cell's name; give the table"
                f" another value of {name} in config/papers/{paper.key}.yaml"
            )
    extra = overrides(config.set)
    first = resolve(paper, scale, dataset, setting, method, seeds[0], extra, config_dir=config_dir)
    runs = [first.seeded(seed) for seed in seeds]
    facts = {
        "paper": paper.key,
        "scale": scale.name,
        "dataset": dataset,
        "setting": setting,
        "method": method,
    }
    return validated(Cell, facts | {"runs": runs}, f"{paper.key}/{dataset}/{method}")


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
    ours = [name for name, entry in paper.datasets.items() if not entry.printed]
    additions = (ours if spec.additions is None else spec.additions) if isinstance(spec, TableSpec) else []
    here = [name for name in wanted if name in spec.datasets or name in additions]
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
        hint = "a word has to be a whole part of a name, * matches anything; " if whole else ""
        parts = {part for cell in cells for part in (cell.name, *cell.name.split("/"))}
        folded = {part.lower(): part for part in sorted(parts)}
        near = difflib.get_close_matches(pattern.lower(), folded, n=1)
        meant = f" Did you mean {folded[near[0]]!r}?" if near else ""
        raise UserError(
            f"no cell matches {pattern!r}; {hint}`fedbench list` shows the cells of this scale.{meant}"
        )
    return found
