"""Cells, and how the layers of the configuration make their runs."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import functools
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fedbench.errors import UserError, unknown
from fedbench.metric_table import Measure
from fedbench.spec import Name, RunSpec, Spec, as_value, digest, validated
from fedbench.study import checks
from fedbench.study.configuration import CONFIG_DIR, file_of, load_paper, paper_keys, study_path
from fedbench.study.layers import Layer, datasets_of, merged, nested, overlaid, part_of
from fedbench.study.schema import Paper, Scale, ScalePaper, Value
from fedbench.study.tuned import tuned_for

log = logging.getLogger(__name__)
warned = functools.cache(log.warning)
"""Says a thing once."""

Place = tuple[str, Mapping[str, Value], str]
"""Dataset, setting and method of a cell."""


class Cell(Spec):
    """One number of a table: a method on a setting of a dataset, one run per seed."""

    paper: Name
    scale: Name
    dataset: Name
    setting: dict[Name, Annotated[Value, AfterValidator(as_value)]]
    method: Name
    runs: list[RunSpec]
    unread: frozenset[Name] = frozenset()
    """Settings that its name leaves out: they change nothing on its dataset."""
    measures: dict[str, Measure] = {}
    """The study's own metrics, by which numbers are read off curves; no part of a run."""
    asked: dict[str, Any] = {}
    """What the configuration that it was resolved by says of seeds, datasets, constants and places of runs."""

    @property
    def setting_label(self) -> str:
        """The setting as a part of a path, e.g. ``p4_imratio0.1``."""
        return label_of({name: value for name, value in self.setting.items() if name not in self.unread})

    @property
    def name(self) -> str:
        """The cell's address, e.g. ``localscgdam/FashionMNIST/p4_imratio0.1/CoDA``."""
        return "/".join((self.paper, self.dataset, self.setting_label, self.method))

    @functools.cached_property
    def path(self) -> Path:
        """Where the train job leaves the cell's result."""
        return path_of(self.scale, self.paper, self.dataset, self.setting_label, self.method)

    @functools.cached_property
    def key(self) -> str:
        """A digest of the keys of all its runs: changes exactly when one of them does."""
        return digest([run.key for run in self.runs])


class FromCell(Spec):
    """The cell whose model a run starts from: what is not said is as in the run itself, the seed always."""

    method: str
    dataset: str | None = None
    setting: dict[str, Value] = {}


def label_of(setting: Mapping[str, Value]) -> str:
    """Return a setting as a part of a path."""
    return "_".join(f"{name}{value}" for name, value in setting.items()) or "default"


def path_of(scale: str, paper: str, dataset: str, setting_label: str, method: str) -> Path:
    """Return where the result of a cell is, which need not be resolved for that."""
    return Path("results", "cells", scale, paper, dataset, setting_label, f"{method}.json")


def piece_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return tuned values as a piece of a run specification: dotted names are places, others hyper-parameters."""
    places = (name if "." in name else f"params.{name}" for name in values)
    return functools.reduce(overlaid, map(nested, places, values.values()), {})


def resolve(
    paper: Paper, scale: Scale, dataset: str, setting: Mapping[str, Value], method: str,
    extra: Mapping[str, Any] | None = None, tuned: Mapping[str, Any] | None = None,
) -> RunSpec:  # fmt: skip
    """Resolve the run of a place with seed 0: each layer of the configuration wins over those before it.

    Paper defaults, dataset, method, scale, tuned values, setting, what the method does at that setting, what is fixed
    of the dataset, ``extra``. ``tuned`` takes the place of the values under ``config/tuned``, which ``None`` reads.
    """
    for kind, name, known in (("dataset", dataset, paper.datasets), ("method", method, paper.methods)):
        if name not in known:
            raise unknown(kind, name, known)
    label = f"{paper.key}/{dataset}/{method} at scale {scale.name}"
    layers = layers_of(paper, scale, dataset, setting, method, tuned)
    if told := checks.lost_length(paper, scale.name, at_scale(paper, scale), dataset):
        warned(f"{file_of(paper, 'datasets', dataset)}: {told}")
    run = merged(*(layer.piece for layer in layers), extra or {}, {"seed": 0})
    data, train, start = (part_of(run, name) for name in ("data", "train", "start"))
    _fill_in(data)
    if train:
        train.setdefault("prior", _default_prior(data))
        select = str(train.get("select"))
        if paper.contrary(select):
            raise UserError(
                f"{label}: train.select: a run would choose by the largest {select}, and the study says that lower is "
                "better; let the task measure its negative"
            )
    if "cell" in start:
        cell = validated(FromCell, start["cell"], f"{label}: start.cell")
        rest = {name: value for name, value in start.items() if name != "cell"}
        at = cell.dataset or dataset, {**setting, **cell.setting}, cell.method
        run["start"] = rest | {"run": _resolve_start(paper, scale, (dataset, setting, method), at)}
    return validated(RunSpec, run, label)


def layers_of(
    paper: Paper, scale: Scale, dataset: str, setting: Mapping[str, Value], method: str,
    tuned: Mapping[str, Any] | None = None,
) -> list[Layer]:  # fmt: skip
    """Return the layers of a run by name, later ones win."""
    data, how = paper.datasets[dataset], paper.methods[method]
    source = study_path(paper.key)
    of_data, of_method = file_of(paper, "datasets", dataset), file_of(paper, "methods", method)
    tuned_values = tuned_for(paper, dataset, setting, method, scale)
    path, chosen = ("tuning", tuned) if tuned is not None else (tuned_values.path, tuned_values.values)
    shorter, scaled = at_scale(paper, scale), f"scale {scale.name}"
    layers = [
        Layer(f"defaults of {source}", paper.defaults),
        Layer(f"dataset {dataset} of {of_data}", data.piece()),
        Layer(
            f"method {method} of {of_method}", {"method": how.algorithm, "params": how.params, **how.piece()}
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
    at = {"dataset": dataset, **{name: setting[name] for name in held}}
    for name, pieces in how.at.items():
        if name in at:
            layers.append(Layer(f"method {method} at {name} = {at[name]}", pieces.get(at[name], {})))
    layers.append(Layer(f"dataset {dataset} of {of_data}, fixed", data.fixed))
    return layers


def _resolve_start(paper: Paper, scale: Scale, child: Place, at: Place) -> RunSpec:
    """Resolve the run that another one, at the place ``child``, starts from."""
    label = f"{paper.key}/{at[0]}/{at[2]}"
    if at == child:
        raise UserError(f"{label}: start.cell is the cell itself")
    try:
        return resolve(paper, scale, *at)
    except RecursionError:
        raise UserError(f"{label}: start.cell: cells start from each other") from None


def _default_prior(data: Mapping[str, Any]) -> str:
    """Return ``train.prior`` where no YAML names it: clients that may differ in their shares have their mean."""
    if part_of(data, "partition").get("rule", "even") == "even":
        return "pooled"
    if part_of(data, "labels").get("rule", "original") != "original":
        return "client"
    from fedbench.data import datasets

    with contextlib.suppress(UserError):  # who trains says what is wrong with the dataset
        return "pooled" if len(datasets.get(str(data.get("dataset"))).classes) > 2 else "client"
    return "client"


def _fill_in(data: dict[str, Any]) -> None:
    """Add the digest of datasets that YAML files describe, and the number of ``clients: sites``."""
    names, of_sites = datasets_of(data), data.get("clients") == "sites"
    described = [name for name in names if (CONFIG_DIR / f"datasets/{name}.yaml").is_file()]
    if described or of_sites:
        from fedbench.data import datasets

        if described:
            contents = [datasets.content(name) for name in described]
            data["content"] = contents[0] if described == names[:1] else digest([described, contents])
        if of_sites:
            data["clients"] = datasets.count_sites(names)


def at_scale(paper: Paper, scale: Scale) -> ScalePaper:
    """What a scale runs of a paper, and what it shortens: as the scale's file says, and over it the paper's own.

    A paper that extends another runs what that one does and the datasets it adds. One that the scale does not name runs
    in full.
    """
    plan = scale.papers.get(paper.key)
    if plan is None and paper.extends in scale.papers:
        plan = scale.papers[paper.extends]
        if plan.datasets is not None:
            datasets = dict.fromkeys([*plan.datasets, *paper.defined.get("datasets", [])])
            plan = plan.model_copy(update={"datasets": list(datasets)})
    of_paper = paper.scales.get(scale.name)
    if plan is None or of_paper is None:
        return plan or of_paper or ScalePaper()
    return ScalePaper(**overlaid(plan.model_dump(), of_paper.model_dump(exclude_unset=True)))


def runs_before(cell: Cell) -> list[RunSpec]:
    """List the runs that those of a cell start from, and what these start from: the first to train comes first."""
    by_key: dict[str, RunSpec] = {}
    for run in cell.runs:
        chain = []
        while run.start is not None and run.start.run is not None:
            run = run.start.run
            chain.append(run)
        by_key |= {parent.key: parent for parent in reversed(chain)}
    return list(by_key.values())


def cells_before(cell: Cell, cells: Iterable[Cell]) -> list[Cell]:
    """List those of ``cells`` that train what a cell starts from; what none of them does is trained with the cell."""
    if not any(run.start is not None for run in cell.runs):
        return []
    wanted = {run.key for run in runs_before(cell)}
    return [other for other in cells if not wanted.isdisjoint(run.key for run in other.runs)]


def paper_of(pattern: str) -> str | None:
    """Return the paper that a pattern begins with, as ``climb/`` or the full name of a cell does; else None."""
    named, slash, rest = pattern.partition("/")
    full = rest.count("/") == 2 and named and not set(named) & set("*?[")
    return named if full or (slash and named in paper_keys()) else None


def matching(cells: Sequence[Cell], pattern: str, whole_parts: bool = False) -> list[Cell]:
    """Select the cell of that name, else those whose name matches a shell pattern, else those a part of which does.

    With ``whole_parts``, for what cannot be undone, the pattern has to match one or more whole parts of the name, which
    are paper, dataset, setting and method: ``LocalSGDM`` is not ``LocalSGDM_RL`` too, ``LocalSGDM*`` is.

    Raises:
        UserError: there is none.
    """
    ways = [f"*/{pattern.strip('/')}/*"] if whole_parts else [f"/{pattern}/", f"*{pattern}*"]
    named = [cell for cell in cells if cell.name == pattern]  # LocalSGDM alone, not LocalSGDM_RL with it
    matches = ([cell for cell in cells if fnmatch.fnmatchcase(f"/{cell.name}/", way)] for way in ways)
    if chosen := named or next(filter(None, matches), []):
        return chosen
    method, paper = pattern.rpartition("/")[2], load_paper(cells[0].paper) if cells else None
    if paper and method in paper.methods.keys() - {cell.method for cell in cells}:
        if any(method in spec.methods for spec in paper.targets.values()):
            raise UserError(
                f"{method} has no cell at scale {cells[0].scale}, which leaves it out; take another one"
            )
        raise UserError(
            f"no table or figure of {paper.key} shows {method}: name it in the `methods` of one in "
            f"{study_path(paper.key)}"
        )
    hint = "a word has to be a whole part of a name, * matches anything; " if whole_parts else ""
    parts = {part for cell in cells for part in (cell.name, *cell.name.split("/"))}
    parts |= {f"{key}/" for key in paper_keys()}
    folded = {part.lower(): part for part in sorted(parts)}
    near = [folded[name] for name in difflib.get_close_matches(pattern.lower(), folded, n=1)]
    gap = pattern.replace("/", "/*/")  # parts between which others stand
    if any(fnmatch.fnmatchcase(f"{cell.name}/", f"*{gap}*") for cell in cells):
        near = [gap]
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UserError(
        f"no cell matches {pattern!r}; {hint}`fedbench list` shows the cells of this scale.{meant}"
    )


def single(cells: Sequence[Cell], pattern: str) -> Cell:
    """Return the cell that fits as for :func:`matching`; UserError where several do."""
    matches = matching(cells, pattern)
    if len(matches) > 1:
        names = ", ".join(cell.name for cell in matches[:3]) + (", ..." if len(matches) > 3 else "")
        raise UserError(f"{pattern!r} fits {len(matches)} cells ({names}); give the name of one")
    return matches[0]
