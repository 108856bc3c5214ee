"""What the rules ask of one call of the workflow, by Snakemake's wildcards."""

from __future__ import annotations

import atexit
import functools
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import isfunction
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fedbench.data import datasets, prepared
from fedbench.errors import UserError, explain
from fedbench.spec import RunSpec
from fedbench.store import cell_files, code
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.layers import as_options
from fedbench.study.schema import Config
from fedbench.workflow import requests
from fedbench.workflow.inputs import EVERY, Inputs
from fedbench.workflow.requests import Requests

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Kind = TypeVar("Kind")
SILENT = {
    "checkpoint_seconds", "client_chunk", "compile", "device", "inputs", "keep_model", "mirror", "paper",
}  # fmt: skip
"""Keys of the configuration that no table shows: they decide how and where work is done."""
ALL_CORES = 1024
"""More than a machine has: a job that takes so many gets all of the call's."""


def or_exit(function: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
    """Call ``function``; what the user got wrong, and Ctrl-C, end the program with one line before anything began."""
    try:
        return function(*args, **kwargs)
    except (UserError, OSError) as error:
        raise SystemExit(f"error: {explain(error)}") from None
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on") from None


def ending_in_one_line(kind: type[Kind]) -> type[Kind]:
    """Let each public method of a class, and its making, end the program as :func:`or_exit` does."""

    def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(method)(lambda *args, **kwargs: or_exit(method, *args, **kwargs))

    for name, method in [*vars(kind).items()]:
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, guarded(method))
    return kind


@ending_in_one_line
class RuleFunctions:
    """The configuration of a call, and the answers to its rules.

    Attributes:
        config: of this call.
        inputs: which files its jobs need.
        mirror: where raw files may be, as an option of `data_prep/prepare.py`.
        options: what the call lays over `config/config.yaml`, as options of `fedbench`.
        gpu: GPUs that a cell takes.
        everything: what is made when no target is named.
    """

    def __init__(self, workflow: Any, given: Mapping[str, Any]) -> None:
        """Read the configuration; ``workflow`` is Snakemake's, ``given`` what ``--config`` gives."""
        self._workflow = workflow
        self.config = config = configuration.load_config(given, "--config")
        configuration.check_mirror(config)
        self.inputs = Inputs(config)
        self.mirror = f"--mirror {shlex.quote(config.mirror)}" if config.mirror else ""
        self.options = options_of(config)
        automatic = config.device == "auto" and shutil.which("nvidia-smi") is not None
        self.gpu = int(config.device == "cuda" or automatic)
        typeset = shutil.which("latexmk") and shutil.which("pdflatex")
        self.everything = self.inputs.everything(["tex", "pdf"] if typeset else ["tex"])
        self._checked: set[str] = set()
        self._by_other_code: dict[str, list[bool]] = {}
        """Whether other code made the runs of the cells of this call."""
        if workflow.is_main_process:
            atexit.register(self._tell_other_code)

    @functools.cached_property
    def _requests(self) -> Requests:
        """Made when the first rule asks: before, Snakemake does not know yet whether it runs dry."""
        return Requests(passing=self._workflow.dryrun, frozen=not self._workflow.is_main_process)

    def cell(self, wildcards: Any) -> Cell:
        """Return the cell that a training job's wildcards name."""
        return self.inputs.cell(**wildcards)

    def cell_data(self, wildcards: Any) -> list[str]:
        """List what a cell trains on."""
        return self.inputs.of_cell(self.cell(wildcards))

    def cell_request(self, wildcards: Any) -> list[str]:
        """List the request to train, unless the cell's file has the runs that are asked for, and the store too."""
        cell = self.cell(wildcards)
        self._has_other_code(cell)
        kept = all(Store().has(run.key) for run in cell.runs)
        return [] if kept and cell_files.state_of(cell.path)[0] == cell.key else self._training()

    def _has_other_code(self, cell: Cell) -> bool:
        if cell.name not in self._by_other_code:
            self._by_other_code[cell.name] = cell_files.other_code(cell, Store())
        return any(self._by_other_code[cell.name])

    def _tell_other_code(self) -> None:
        if line := code.remark(self._by_other_code):
            print(line, file=sys.stderr)

    def _training(self) -> list[str]:
        return [self._requests.ask((requests.TRAINING,), {}, anew=True)]

    def training_cores(self, wildcards: Any) -> int:
        """Return a cell's share of the cores for its seeds, when it is about to begin: more if few cells are left."""
        # a cluster's call has none (`workflow.cores` ends the program there), and asks for one for each job, which sees
        # all of its node
        cores = (self._workflow.is_main_process and self._workflow.resource_settings.cores) or 1
        waiting = (job for job in self._workflow.dag.needrun_jobs() if job.rule.name == "train")
        # no more are counted than share the cores: each of thousands of cells asks
        share = cores // max(1, len([*islice(waiting, cores)]))
        return 1 if self.gpu else max(1, min(share, len(self.cell(wildcards).runs)))

    def prepare_request(self, wildcards: Any) -> list[str]:
        """List the request to prepare a dataset, unless it was prepared by today's description of these raw files."""
        return [] if prepared.current(wildcards.dataset, self.config.data_dir) else self._training()

    def decoding_cores(self, wildcards: Any) -> int:
        """Return all of this call's cores for a dataset of pictures, one for any other."""
        return ALL_CORES if datasets.get(wildcards.dataset).of_pictures else 1

    def partitioned(self, wildcards: Any) -> RunSpec:
        """Return a run that trains on the partition that a job's wildcards name."""
        return self.inputs.partitioned(**wildcards)

    def partition_data(self, wildcards: Any) -> list[str]:
        """List the prepared datasets that a partition is made of."""
        return self.inputs.prepared(self.partitioned(wildcards))

    def partition_request(self, wildcards: Any) -> list[str]:
        """List the request to partition again, unless the summary of the partition is there."""
        path = f"{self.config.data_dir}/partitions/{wildcards.dataset}/{wildcards.key}.json"
        return [] if Path(path).is_file() else self._training()

    def table_inputs(self, wildcards: Any) -> list[str]:
        """List the results that a table shows."""
        return self._results(wildcards.paper, self.inputs.of_table(wildcards.paper, wildcards.table))

    def figure_inputs(self, wildcards: Any) -> list[str]:
        """List the results that a figure shows."""
        return self._results(wildcards.paper, self.inputs.of_figure(wildcards.paper, wildcards.figure))

    def claims_inputs(self, wildcards: Any) -> list[str]:
        """List the results of this scale that a paper's claims are compared with."""
        return self._results(wildcards.paper, self.inputs.of_claims(wildcards.paper))

    def page_inputs(self, wildcards: Any) -> list[str]:
        """List what the tables, figures and claims that the report page shows first are made of; it draws them."""
        return self.inputs.of_page(self.config.paper)

    def shown_files(self, wildcards: Any) -> list[str]:
        """List the files besides results that a target of a paper, or of all papers, shows."""
        return self.inputs.shown_files(getattr(wildcards, "paper", EVERY))

    def table_request(self, wildcards: Any) -> str:
        """Return the request for a table."""
        plan = self.inputs.plan(wildcards.paper)
        plan.table(wildcards.table)  # for an unknown one, names tables alone
        return self._request(wildcards.paper, wildcards.table, cells=plan.cells(wildcards.table))

    def figure_request(self, wildcards: Any) -> str:
        """Return the request for a figure."""
        cells = self.inputs.cells(wildcards.paper, wildcards.figure)
        return self._request(wildcards.paper, wildcards.figure, cells=cells)

    def claims_request(self, wildcards: Any) -> str:
        """Return the request for the claims of a paper."""
        paper, known = wildcards.paper, self.inputs.cells_by_path(wildcards.paper)
        cells = [known[path] for path in self.inputs.of_claims(paper)]
        return self._request(paper, "claims", others=self.inputs.other_results(paper), cells=cells)

    def page_request(self, wildcards: Any) -> str:
        """Return the request for the report page, which begins with the configured paper."""
        paper, others = self.config.paper, self.inputs.other_results()
        return self._request("report", others=others, cells=self.inputs.cells(paper), paper=paper)

    def _request(
        self, *target: str, others: Sequence[str] = (), cells: Sequence[Cell] = (), **given: str
    ) -> str:
        asked = self.asked(target[0] if target[1:] else EVERY)
        asked["config"] |= given
        asked["others"] = requests.digests(others)
        asked["other code"] = [cell.name for cell in cells if self._has_other_code(cell)]
        return self._requests.ask(target, asked)

    def asked(self, paper: str) -> dict[str, Any]:
        """Return what tables and figures of a paper, or of all, are made of besides results."""
        return {
            "config": self.config.model_dump(mode="json", exclude=SILENT),
            "code": requests.code(),
            "files": requests.digests(self.inputs.shown_files(paper)),
        }

    def _results(self, paper: str, paths: list[str]) -> list[str]:
        """Return results; a dry run checks the cells that are to be trained, as the beginning of training does."""
        if self._workflow.dryrun:
            known = self.inputs.cells_by_path(paper)
            new = [path for path in paths if path in known and path not in self._checked]
            self.check([known[path] for path in new if not Path(path).exists()])
            self._checked.update(new)
        return paths

    def check(self, cells: Sequence[Cell]) -> None:
        """End the program where cells ask for what is unknown, missing or does not fit."""
        if cells:
            from fedbench.train import preflight  # not above: PyTorch takes seconds

            preflight.check(cells)
            preflight.check_tables(cells)


def options_of(config: Config) -> str:
    """Return what a call's ``--config`` lays over the file, as options of `fedbench`."""
    file = configuration.load_config().model_dump(exclude={"scale", "paper"})
    given = config.model_dump()
    return as_options({key: given[key] for key in file if given[key] != file[key]})
