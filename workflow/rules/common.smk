"""Helpers of the rules: what the configuration asks for, which files that is, and what to say when a job fails."""

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError

from fedbench import cells, cluster, configuration, progress, recovery
from fedbench.data import datasets
from fedbench.errors import UserError, unknown
from fedbench.report import published
from fedbench.runs import Store

# `fedbench` and `python` in the rules are those of the environment that runs Snakemake, activated or not
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def checked(function, *args, **kwargs):
    """Call ``function``; what the user got wrong ends the program with one line, before anything has begun."""
    try:
        return function(*args, **kwargs)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


def given_options():
    """What this call's --config lays over the file, as options of `fedbench`."""
    file = checked(configuration.load_config).model_dump(exclude={"scale", "paper"})
    given = {key: value for key, value in CONFIG.model_dump().items() if key in file and value != file[key]}
    return " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in given.items())


CONFIG = checked(configuration.load_config, overrides=config)
# these two reach the jobs as resources: unlike params, a change of them runs nothing again
MIRROR = f"--mirror {shlex.quote(CONFIG.mirror)}" if CONFIG.mirror else ""
OPTIONS = given_options()
GPU = int(CONFIG.device == "cuda" or (CONFIG.device == "auto" and shutil.which("nvidia-smi") is not None))


def put_right_after_crash():
    """Free what a killed workflow left locked, and mend times that a wrong clock gave to files."""
    checked(recovery.release_stale_lock)
    folders = [
        "config",
        f"{CONFIG.data_dir}/prepared",
        f"{CONFIG.data_dir}/partitions",
        "results/cells",
        "tables",
        "figures",
    ]
    recovery.settle_clock(path for folder in folders for path in Path(folder).rglob("*") if path.is_file())


if workflow.is_main_process:
    put_right_after_crash()
    cluster.mend_arrays()
else:
    cluster.run_own_task()


@functools.cache
def paper_file(paper):
    """What the configuration says about a paper."""
    return checked(configuration.load_paper, paper)


@functools.cache
def found_cells(paper, target=None):
    """As :func:`paper_cells`, but a mistake is an error that can be caught."""
    return cells.cells_of(CONFIG, paper, target)


def paper_cells(paper, target=None):
    """The cells of a table or figure at this scale; of the whole paper when no target is named."""
    return checked(found_cells, paper, target)


@functools.cache
def cells_by_path(paper):
    """All cells of a paper by the file their training leaves."""
    return {str(cell.path): cell for cell in paper_cells(paper)}


def cell_of(wildcards):
    """The cell that a training job's wildcards name."""
    path = "results/cells/{scale}/{paper}/{dataset}/{setting}/{method}.json".format(**wildcards)
    try:
        return cells_by_path(wildcards.paper)[path]
    except KeyError:
        raise WorkflowError(
            f"{path} is no cell of {wildcards.paper} at scale {CONFIG.scale}; see `fedbench list`"
        )


def cell_key(wildcards):
    """What the cell's numbers depend on, and nothing else: a job is done again when this changes."""
    return cell_of(wildcards).key


def cell_name(wildcards):
    """The cell's address on the command line."""
    return cell_of(wildcards).name


def partition_path(run):
    """The partition that a run trains on."""
    return f"{CONFIG.data_dir}/partitions/{run.data.dataset}/{run.data.partition_key(run.seed)}.npz"


def cell_data(wildcards):
    """The prepared dataset and the partitions, one per seed, that a cell trains on."""
    runs = cell_of(wildcards).runs
    prepared = {f"{CONFIG.data_dir}/prepared/{run.data.dataset}.npz" for run in runs}
    dealt = {
        f"{CONFIG.data_dir}/partitions/{run.data.dataset}/{run.data.partition_key(run.seed)}.npz"
        for run in runs
    }
    return sorted(prepared) + sorted(dealt)


@functools.cache
def data_rules(paper):
    """The data rule and seed behind every partition of a paper, by its key.

    None of a paper that this call cannot have: the mistakes of one are no reason to stop another's jobs.
    """
    try:
        return {run.data.partition_key(run.seed): run for cell in found_cells(paper) for run in cell.runs}
    except UserError:
        return {}


def partitioned(wildcards):
    """A run that trains on the partition that a job's wildcards name."""
    for paper in dict.fromkeys([CONFIG.paper, *configuration.paper_keys()]):
        if wildcards.key in data_rules(paper):
            return data_rules(paper)[wildcards.key]
    raise WorkflowError(
        f"no cell at scale {CONFIG.scale} has a partition {wildcards.dataset}/{wildcards.key}"
    )


def own_content(wildcards):
    """What a dataset of the user's own is made of: it is prepared again when this changes."""
    return checked(datasets.content, wildcards.dataset)


def partition_spec(wildcards):
    """The data rule of a partition, as JSON."""
    return partitioned(wildcards).data.model_dump_json()


def partition_seed(wildcards):
    """The seed of a partition."""
    return partitioned(wildcards).seed


def table_spec(wildcards):
    """What the configuration says about a table."""
    tables = paper_file(wildcards.paper).tables
    if wildcards.table not in tables:
        raise SystemExit(f"error: {unknown(f'table of {wildcards.paper}', wildcards.table, tables)}")
    return tables[wildcards.table]


def table_inputs(wildcards):
    """The results that a table shows, or for a table of datasets their partitions."""
    spec = table_spec(wildcards)
    if spec.kind == "results":
        return [str(cell.path) for cell in paper_cells(wildcards.paper, wildcards.table)]
    paper, scale = paper_file(wildcards.paper), checked(configuration.load_scale, CONFIG.scale)
    datasets = cells.datasets_run(CONFIG, paper, scale, spec)
    setting = {name: spec.settings.get(name, [entry.default])[0] for name, entry in paper.settings.items()}
    found = [cell for cell in paper_cells(paper.key) if cell.dataset in datasets and cell.setting == setting]
    return sorted({partition_path(cell.runs[0]) for cell in found})


def table_published(wildcards):
    """The file of published numbers that a table is held against."""
    name = table_spec(wildcards).published
    return [str(published.locate(wildcards.paper, name))] if name else []


def paper_files(wildcards):
    """The YAML of a paper, and that of the paper it extends."""
    base = paper_file(wildcards.paper).extends
    return [f"config/papers/{key}.yaml" for key in (wildcards.paper, base) if key]


def figure_inputs(wildcards):
    """The results that a figure shows."""
    return [str(cell.path) for cell in paper_cells(wildcards.paper, wildcards.figure)]


def everything(paper):
    """The tables and figures of a paper; tables typeset too where LaTeX is installed."""
    spec = paper_file(paper)
    forms = ["tex", "pdf"] if shutil.which("latexmk") and shutil.which("pdflatex") else ["tex"]
    tables = [f"tables/{name}.{form}" for name in spec.tables for form in forms]
    return tables + [f"figures/{name}.pdf" for name in spec.figures]


def training_state():
    """How many cells of this call are trained, in training, failed and left, and where those in training are."""
    dag, scheduler = workflow.dag, workflow.scheduler
    trained = [job for job in dag.jobs if job.rule.name == "train"]
    at_work = {job for item in list(scheduler.running) for job in (item if item.is_group() else [item])}
    running = [cell_of(job.wildcards) for job in trained if job in at_work]
    done = sum(not dag.needrun(job) or dag.finished(job) for job in trained)
    failed = sum(job in scheduler.failed for job in trained)
    return progress.report(len(trained), done, running, failed, Store()) if trained else []


def tell_training_state():
    """Print :func:`training_state`, in a terminal and in a log alike."""
    for line in training_state():
        print(line, file=sys.stderr, flush=True)


def follow_training():
    """Tell every half minute how the training stands, whenever that has changed."""

    def follow():
        before = []
        while True:
            time.sleep(progress.LOG_SECONDS)
            try:
                now = training_state()
            except RuntimeError:  # the scheduler changed its lists meanwhile
                continue
            if now != before:
                print(*now, sep="\n", file=sys.stderr, flush=True)
                before = now

    threading.Thread(target=follow, daemon=True).start()


def built(paper):
    """A paper's own tables and figures."""
    spec = paper_file(paper)
    tables = [f"tables/{paper}/{name}.tex" for name in spec.tables]
    return tables + [f"figures/{paper}/{name}.pdf" for name in spec.figures]


def page_inputs(wildcards):
    """The tables and figures that the report page shows first."""
    return built(CONFIG.paper)


def document_inputs(wildcards):
    """The tables and figures of a paper's document."""
    return built(wildcards.paper)


def shown_besides(wildcards):
    """A digest of the results on disk that the report page shows besides those of this call."""
    here = cells_by_path(CONFIG.paper)
    found = sorted(path for path in Path("results/cells").rglob("*.json") if str(path) not in here)
    return cells.digest([[str(path), path.stat().st_mtime_ns] for path in found])


def stamp(path):
    """What changes about a file when it is written anew; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


LOGS_BEFORE = {}


def remember_logs(dag):
    """Note which logs are those of earlier calls: they say nothing about this one."""
    LOGS_BEFORE.update({name: stamp(name) for job in dag.needrun_jobs() for name in job.log})


def explain_failures(dag):
    """Say which jobs did not finish, why, and how to run one alone; then build what they feed from what there is."""
    unfinished = {job: job.shellcmd.partition(" > ")[0] for job in dag.needrun_jobs() if job.is_shell}
    tried = [job for job in unfinished if stamp(job.log[0]) not in (None, LOGS_BEFORE.get(job.log[0]))]
    for job in sorted(tried, key=lambda job: str(job.output[0])):
        said = Path(job.log[0]).read_text(errors="replace").splitlines()[-8:]
        print(
            f"\nnot finished: {job.output[0]}", *(f"    {line}" for line in said), sep="\n", file=sys.stderr
        )
        print(f"  its log:      {job.log[0]}\n  run it alone: {unfinished[job]}", file=sys.stderr)
    for step in ("table", "figure", "own_table", "own_figure", "page", "document"):
        for job in (job for job in unfinished if job.rule.name == step):
            if any(Path(name).exists() for name in job.input.get("shown", job.input)):
                print(f"\nbuilt from the cells that are there: {job.output[0]}", file=sys.stderr)
                subprocess.run(unfinished[job], shell=True, check=False)
                dag.workflow.persistence.started(
                    job
                )  # marks its files incomplete: the next call builds them again
