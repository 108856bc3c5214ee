"""The plan: what there is to run of a study at a scale. It is made once and passed to whatever asks about runs."""

from __future__ import annotations

import functools
import itertools
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fedbench.errors import UserError, unknown
from fedbench.spec import validated
from fedbench.study.cells import Cell, at_scale, layers_of, resolve
from fedbench.study.configuration import load_config, load_paper, scale_of, study_path
from fedbench.study.figures import PREDICTED
from fedbench.study.layers import Layer, as_options, overrides
from fedbench.study.references import TRAINING
from fedbench.study.schema import Config, FigureSpec, Paper, TableSpec, Value
from fedbench.study.tuned import Tuned, tuned_for
from fedbench.study.unread import unread

SHOWN_ONLY = {"scale", "paper", "tolerance", "shipped", "set"}
"""Keys of the configuration that change no run, or are said apart."""
ASKED = ("seeds", "datasets", "constants", "set")
"""Keys of the configuration that, besides study and scale, decide what a cell is."""
NAMED = 4
"""Methods of a dataset that are named; more are counted."""


class Plan:
    """A study at one scale. Its YAML is read and checked once, and each cell is resolved once, when it is asked for.

    Attributes:
        config: of this call, with the study as its ``paper``.
        study: what the configuration says of the study.
        scale: with the constants that are asked for.
    """

    def __init__(self, config: Config, study: str | None = None, *, like: Plan | None = None) -> None:
        """Read the study, by default that of the configuration; one ``like`` another plan's is not read again.

        Raises:
            UserError: there is none, or it has a mistake.
        """
        self.study: Paper = like.study if like else load_paper(study or config.paper)
        self.config = config.model_copy(update={"paper": self.study.key})
        self.scale = scale_of(config)
        self._set = overrides(config.set)
        self._resolved: dict[str, Cell] = {}
        self._unread: dict[str, frozenset[str]] = {}
        self._others: dict[str, Plan] = like._others if like else {}
        self._others[self.config.model_dump_json()] = self

    def at(self, config: Config) -> Plan:
        """Return the plan of the same study under another configuration, which is made once."""
        config = config.model_copy(update={"paper": self.study.key})
        return self._others.get(config.model_dump_json()) or Plan(config, like=self)

    @property
    def seeds(self) -> list[int]:
        """The seeds of every cell: this call's, else the scale's."""
        return self.config.seeds if self.config.seeds is not None else self.scale.seeds

    def table(self, name: str) -> TableSpec:
        """Return what the study says of a table; :class:`UserError` where there is none of that name."""
        if name not in self.study.tables:
            raise unknown(f"table of {self.study.key}", name, self.study.tables)
        return self.study.tables[name]

    def figure(self, name: str) -> FigureSpec:
        """Return what the study says of a figure; :class:`UserError` where there is none of that name."""
        if name not in self.study.figures:
            raise unknown(f"figure of {self.study.key}", name, self.study.figures)
        return self.study.figures[name]

    def cells(self, target: str | None = None) -> list[Cell]:
        """List the cells of a table or figure (``None``: of the whole study) that the scale runs, each once."""
        specs = self.study.targets
        if target is not None and target not in specs:
            raise unknown(f"table or figure of {self.study.key}", target, specs)
        chosen = specs.values() if target is None else [specs[target]]
        cells = (self.cell(*place) for spec in chosen for place in self.places(spec))
        return list({cell.name: cell for cell in cells}.values())

    def places(self, spec: TableSpec | FigureSpec) -> Iterator[tuple[str, dict[str, Value], str]]:
        """List dataset, setting and method of the cells of a table or figure that the scale runs."""
        axes = self.study.values(spec)
        for name, run in at_scale(self.study, self.scale).settings.items():
            if name not in axes:
                raise unknown(f"setting of {self.study.key} in scales/{self.scale.name}.yaml", name, axes)
            axes[name] = [value for value in axes[name] if value in run or len(axes[name]) == 1]
        for dataset in self.datasets(spec):
            for values in itertools.product(*axes.values()):
                setting = dict(zip(axes, values, strict=True))
                for method in spec.methods:
                    if self.study.methods[method].has({"dataset": dataset, **setting}):
                        yield dataset, setting, method

    def datasets(self, spec: TableSpec | FigureSpec) -> list[str]:
        """List the datasets of a table or figure that are run: its own, our additions, else the scale's stand-in."""
        study, run = self.study, at_scale(self.study, self.scale)
        wanted = next(
            chosen for chosen in (self.config.datasets, run.datasets, [*study.datasets]) if chosen is not None
        )
        for name in (*wanted, *run.per_dataset, *filter(None, [run.stand_in])):
            if name not in study.datasets:
                raise unknown(f"dataset of {study.key}", name, study.datasets)
        ours = [name for name, entry in study.datasets.items() if not entry.printed]
        if isinstance(spec, TableSpec):
            shown: set[str | None] = {*spec.datasets, *(ours if spec.additions is None else spec.additions)}
        else:
            shown = {*spec.datasets} if {*wanted} & {*spec.datasets} else {run.stand_in}
        return [name for name in wanted if name in shown]

    def cell(self, dataset: str, setting: Mapping[str, Value], method: str) -> Cell:
        """Return the cell of one place, whether the scale runs it or not. To resolve one takes a millisecond."""
        place = repr((dataset, setting, method))  # 1 and True are equal, and two settings
        if place not in self._resolved:
            self._resolved[place] = self._resolve(dataset, setting, method)
        return self._resolved[place]

    def _resolve(self, dataset: str, setting: Mapping[str, Value], method: str) -> Cell:
        study, scale = self.study, self.scale
        for name, entry in study.settings.items():
            if at := next((place for place in self.config.set if place in entry.sets), None):
                raise UserError(
                    f"set {at}: that is the setting {name} of {study.key}, which is part of a cell's name; give the "
                    f"table another value of {name} in {study_path(study.key)}"
                )
        run = resolve(study, scale, dataset, setting, method, self._set)
        facts = {
            "paper": study.key,
            "scale": scale.name,
            "dataset": dataset,
            "setting": setting,
            "method": method,
            "runs": [run.seeded(seed) for seed in self.seeds],
            "measures": study.measures,
            "asked": self.config.model_dump(include={*ASKED}),
            "unread": setting.keys() - self.told(dataset, setting),
        }
        return validated(Cell, facts, f"{study.key}/{dataset}/{method}")

    def told(self, dataset: str, setting: Mapping[str, Value]) -> dict[str, Value]:
        """Return a setting without what changes nothing on the dataset, unless another value tells cells apart."""
        known = self.study.settings
        if dataset not in self._unread:
            self._unread[dataset] = (
                unread(self.study, dataset) if dataset in self.study.datasets else frozenset()
            )
        silent = self._unread[dataset] | ({TRAINING} & known.keys())  # federated runs are called as ever
        untold = {name for name in silent if setting.get(name) == known[name].default}
        return {name: value for name, value in setting.items() if name not in untold}

    def keeping(self, cell: Cell) -> Config:
        """Return the configuration to train a cell by: it keeps predictions where a figure is drawn from them."""
        drawn = (name for name, figure in self.study.figures.items() if figure.kind in PREDICTED)
        keep = self.config.keep_model or any(
            cell.name == of.name for name in drawn for of in self.cells(name)
        )
        return self.config.model_copy(update={"keep_model": keep})

    def layers(self, cell: Cell) -> list[Layer]:
        """Return the layers of the configuration that a cell's runs are made of."""
        return layers_of(self.study, self.scale, cell.dataset, cell.setting, cell.method)

    def tuned(self, cell: Cell) -> Tuned:
        """Return what was tuned for a cell."""
        return tuned_for(self.study, cell.dataset, cell.setting, cell.method, self.scale)

    def untuned(self, cells: Sequence[Cell]) -> list[Cell]:
        """List those of some cells that run with values that no trial chose on their dataset.

        Values that are published need no trials where the scale has ``constants: paper``, and what the setting or the
        dataset fixes, such as the step sizes of a theory, needs none at all. Without a grid a method counts where
        others are tuned.
        """
        return [cell for cell in cells if self._is_untuned(cell)]

    def _is_untuned(self, cell: Cell) -> bool:
        entry = self.study.methods[cell.method]
        varied = {name for names in entry.grid or entry.params for name in names.split(", ")}
        if varied <= ({*entry.published} if self.scale.constants == "paper" else set()):
            return False
        tuned = self.tuned(cell)
        if tuned.values or tuned.published or not (entry.grid or self._tunes_others(cell)):
            return False
        layers = self.layers(cell)
        tuned_at = next(at for at, layer in enumerate(layers) if layer.name.startswith("tuned "))
        fixed = {name for layer in layers[tuned_at + 1 :] for name in layer.piece.get("params", {})}
        return not varied <= fixed

    def _tunes_others(self, cell: Cell) -> bool:
        rivals = (
            tuned_for(self.study, cell.dataset, cell.setting, name, self.scale) for name in self.study.methods
        )
        return any(rival.values or rival.published for rival in rivals)

    def named_untuned(self, cells: Sequence[Cell]) -> str:
        """Name the methods of cells by dataset, and which of them have no grid."""
        return methods_by_dataset(cells, [name for name, of in self.study.methods.items() if not of.grid])

    def untuned_warning(self, cells: Sequence[Cell]) -> str:
        """Say in one line which of some cells are not tuned, and the cure; empty where all are."""
        not_tuned = self.untuned(cells)
        if not not_tuned:
            return ""
        tunable = [cell.dataset for cell in not_tuned if self.study.methods[cell.method].grid]
        cure = f"fedbench tune {tunable[0]} --paper {self.study.key}" if tunable else "give each a `grid`"
        return (
            f"warning: {len(not_tuned)} of {len(cells)} cells are not tuned for their dataset "
            f"({self.named_untuned(not_tuned)}): the order of methods will say nothing. First: {cure}"
        )

    @functools.cached_property
    def _file(self) -> Config:
        """What the user's file says, without this call's options."""
        return load_config()

    def command(self, cell: Cell) -> str:
        """Return the command that trains one cell alone, as this call does."""
        return f"fedbench run {self.words(cell)}"

    def words(self, cell: Cell, **changes: Any) -> str:
        """Return the name and the options by which a command takes a cell as this call does, but for ``changes``."""
        config = self.config.model_copy(update=changes)
        given, kept = (each.model_dump(exclude=SHOWN_ONLY) for each in (config, self._file))
        if given["datasets"] != kept["datasets"]:
            given["datasets"] = [cell.dataset]
        laid = {name: value for name, value in given.items() if value != kept[name]} | self.config.set
        return " ".join(filter(None, [shlex.quote(cell.name), f"--scale {cell.scale}", as_options(laid)]))


def methods_by_dataset(cells: Sequence[Cell], gridless: Collection[str] = ()) -> str:
    """Name the methods of cells by their dataset: ``Digits: CoDA, Mine (no grid) and 3 more; MNIST: CoDA``."""
    texts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        known = dict.fromkeys(cell.method for cell in cells if cell.dataset == dataset)
        names = [name + " (no grid)" * (name in gridless) for name in known]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        texts.append(f"{dataset}: {', '.join(names[:NAMED])}{more}")
    return "; ".join(texts)
