"""Which files the rules of the workflow need and make."""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedbench.data.summary import ALL
from fedbench.errors import UserError
from fedbench.outputs import REPRODUCED
from fedbench.results import published
from fedbench.results.places import axes_placed
from fedbench.results.shipped import Shipped
from fedbench.spec import RunSpec
from fedbench.store.cell_files import FOLDER as RESULTS
from fedbench.study import configuration
from fedbench.study.cells import Cell, cells_before
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, FigureSpec, Paper, TableSpec

EVERY = "*"
"""All papers in place of one."""


class Inputs:
    """What one call of the workflow asks for. Cells of a paper are resolved once, and only when a job needs them.

    Paths are relative to the project's root, which is the working directory.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._plans: dict[str, Plan] = {}
        self._by_path: dict[str, dict[str, Cell]] = {}
        self._by_partition: dict[str, dict[str, RunSpec]] = {}

    @functools.cached_property
    def _papers(self) -> list[str]:
        """All papers, the one of this call first."""
        return list(dict.fromkeys([self.config.paper, *configuration.paper_keys()]))

    def plan(self, paper: str) -> Plan:
        """Return the plan of a paper at this scale."""
        if paper not in self._plans:
            self._plans[paper] = Plan(self.config, paper)
        return self._plans[paper]

    def paper(self, key: str) -> Paper:
        """Return what the configuration says about a paper."""
        return self.plan(key).study

    def cells(self, paper: str, target: str | None = None) -> list[Cell]:
        """List the cells of a table or figure at this scale; of the whole paper when no target is named."""
        return self.plan(paper).cells(target)

    def cells_by_path(self, paper: str) -> dict[str, Cell]:
        """Return all cells of a paper by the file their training leaves."""
        if paper not in self._by_path:
            self._by_path[paper] = {str(cell.path): cell for cell in self.cells(paper)}
        return self._by_path[paper]

    def cell(self, scale: str, paper: str, dataset: str, setting: str, method: str) -> Cell:
        """Return the cell whose result file has these parts in its path.

        Raises:
            UserError: this scale has no such cell.
        """
        path = f"results/cells/{scale}/{paper}/{dataset}/{setting}/{method}.json"
        try:
            return self.cells_by_path(paper)[path]
        except KeyError:
            near = difflib.get_close_matches(path, self.cells_by_path(paper), n=2)
            hint = f"--config scale={scale} has it, if at all" if scale != self.config.scale else ""
            hint = hint or (f"nearest: {', '.join(near)}" if near else "see `fedbench list`")
            raise UserError(f"{path} is not a cell of {paper} at scale {self.config.scale}; {hint}") from None

    def of_cell(self, cell: Cell) -> list[str]:
        """List what a cell trains on: prepared datasets, partitions, one per seed, and the cells it starts from."""
        before = cells_before(cell, self.cells_by_path(cell.paper).values())
        prepared = sorted({path for run in cell.runs for path in self.prepared(run)})
        return [*prepared, *self._partitions(cell.runs), *(str(other.path) for other in before)]

    def prepared(self, run: RunSpec) -> list[str]:
        """List the prepared datasets that a run trains on."""
        return [f"{self.config.data_dir}/prepared/{name}.json" for name in run.data.datasets]

    def _partitions(self, runs: Iterable[RunSpec]) -> list[str]:
        folder = f"{self.config.data_dir}/partitions"
        return sorted({f"{folder}/{run.data.dataset}/{run.data.partition_key(run.seed)}.npz" for run in runs})

    def partitioned(self, dataset: str, key: str) -> RunSpec:
        """Return a run that trains on a partition, this call's paper first.

        Raises:
            UserError: nothing at this scale has such a partition.
        """
        for paper in self._papers:
            if key in (rules := self._partition_rules(paper)):
                return rules[key]
        raise UserError(f"no cell at scale {self.config.scale} has a partition {dataset}/{key}")

    def _partition_rules(self, paper: str) -> dict[str, RunSpec]:
        """Return a run for every partition of a paper, by its key.

        None of a paper that this call cannot have: the mistakes of one are no reason to stop another's jobs.
        """
        if paper not in self._by_partition:
            try:
                runs = [run for cell in self.cells(paper) for run in cell.runs]
                tables = self.paper(paper).tables.values()
                runs += [run for table in tables if table.kind == "facts" for run in self._data(paper, table)]
            except UserError:
                runs = []
            self._by_partition[paper] = {run.data.partition_key(run.seed): run for run in runs}
        return self._by_partition[paper]

    def of_table(self, paper: str, name: str) -> list[str]:
        """List the results that a table shows, or for a table about the data what it counts.

        Raises:
            UserError: the table could not be built from them: its axes or its published numbers have a mistake.
        """
        spec = self.plan(paper).table(name)
        if spec.published:
            published.load_published(paper, spec.published, self.paper(paper).measures)
        if spec.kind == "leaderboard":
            return [str(cell.path) for cell in self._entered(paper, name, spec)]
        if spec.kind != "facts":
            axes_placed(self.plan(paper), name)
            return [str(cell.path) for cell in self.cells(paper, name)]
        runs = self._data(paper, spec)
        if spec.splits == [ALL]:
            return sorted({path for run in runs for path in self.prepared(run)})
        return self._partitions(runs)

    def _entered(self, paper_key: str, name: str, spec: TableSpec | FigureSpec) -> list[Cell]:
        """List the cells of a leaderboard or its figure that are trained for it.

        A paper that extends another trains what it adds or changes; what the other shipped under the same key is shown
        from there.
        """
        plan, paper, cells = self.plan(paper_key), self.paper(paper_key), self.cells(paper_key, name)
        if not paper.extends:
            return cells
        shipped = Shipped(plan)
        return [
            cell
            for cell in cells
            if paper.defines(cell.dataset, cell.method) or not shipped.has(cell, _metrics(spec, cell.dataset))
        ]

    def _data(self, paper_key: str, spec: TableSpec) -> list[RunSpec]:
        """List runs with the data of a table about the data: those datasets that the scale runs."""
        plan, paper = self.plan(paper_key), self.paper(paper_key)
        axes = paper.values(spec)
        settings = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        method = next(iter(paper.methods))
        return [
            plan.cell(dataset, setting, method).runs[0]
            for dataset in plan.datasets(spec)
            for setting in settings
        ]

    def shown_files(self, paper: str) -> list[str]:
        """List the files besides results that the tables and figures of a paper, or of all, show."""
        return [*self.configuration(paper), *self.published(paper), *self.shipped(paper)]

    def configuration(self, paper: str = EVERY) -> list[str]:
        """List the YAML files that describe a paper's tables and figures, or those of all, and what was tuned."""
        places = ("papers/{}.yaml", "studies/{}.yaml", "tuned/{}/**/*.yaml")
        about = [place.format(study) for place in places for study in self._studies(paper)]
        about += ["config.yaml", "scales/*.yaml", "datasets/*.yaml"]
        return _present(path for place in about for path in configuration.CONFIG_DIR.glob(place))

    def published(self, paper: str = EVERY) -> list[str]:
        """List the CSVs of the printed numbers of a paper, or of all, and what says how they were read."""
        if paper == EVERY:
            return _present(published.FOLDER.glob("**/*.csv"))
        tables = self.paper(paper).tables.values()
        printed = [published.locate(paper, table.published) for table in tables if table.published]
        return _present([*printed, published.FOLDER / "index.csv"])

    def shipped(self, paper: str = EVERY) -> list[str]:
        """List the CSVs of the shipped numbers and curves that are shown of a paper, or of all."""
        places = ["facts.csv", *(f"*/**/{study}.csv" for study in self._studies(paper))]
        shown = places if self.config.shipped else []
        return _present(path for place in shown for path in REPRODUCED.glob(place))

    def _studies(self, paper: str) -> list[str]:
        """Name a paper and the one that it extends."""
        return [EVERY] if paper == EVERY else [paper, *filter(None, [self.paper(paper).extends])]

    def of_figure(self, paper: str, name: str) -> list[str]:
        """List the results that a figure shows."""
        spec = self.paper(paper).figures.get(name)
        if spec is not None and spec.kind == "pareto":
            return [str(cell.path) for cell in self._entered(paper, name, spec)]
        return [str(cell.path) for cell in self.cells(paper, name)]

    def of_claims(self, paper: str) -> list[str]:
        """List the results that a paper's claims are compared with at this scale."""
        targets = dict.fromkeys(name for claim in self.paper(paper).claims for name in claim.targets)
        shown = (cell for name in targets for cell in self.cells(paper, name))
        return list(dict.fromkeys(str(cell.path) for cell in shown))

    def other_results(self, paper: str = EVERY) -> list[str]:
        """List the results on disk, of a paper or of all, that no table of this call is made of: other scales' too."""
        ours = self.of_claims(paper) if paper != EVERY else self.of_page(self.config.paper)
        on_disk = map(str, RESULTS.glob(f"*/{paper}/**/*.json"))
        return sorted({*on_disk} - {*ours})

    def everything(self, forms: Sequence[str]) -> list[str]:
        """List tables in each of ``forms``, claims and figures of the configured paper, at the top of their folders."""
        spec = self.paper(self.config.paper)
        return [
            *(f"tables/{name}.{form}" for name in spec.tables for form in forms),
            *["tables/claims.md"] * bool(spec.claims),
            *(f"figures/{name}.pdf" for name in spec.figures),
        ]

    def of_page(self, paper: str) -> list[str]:
        """List what the report page makes a paper's tables, figures and claims of: nothing that is built before it."""
        spec = self.paper(paper)
        results = [path for name in spec.tables for path in self.of_table(paper, name)]
        results += [path for name in spec.figures for path in self.of_figure(paper, name)]
        return list(dict.fromkeys(results))


def _present(paths: Iterable[Path]) -> list[str]:
    return sorted({str(path) for path in paths if path.is_file()})


def _metrics(spec: TableSpec | FigureSpec, dataset: str) -> list[str]:
    return spec.metrics_on(dataset) if isinstance(spec, TableSpec) else spec.metrics
