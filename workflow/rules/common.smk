"""What the rules ask: ties this call's configuration and Snakemake's own objects to `fedbench.workflow`."""

import json
import os
import shlex
import shutil
import sys
import time
from itertools import islice
from pathlib import Path

from fedbench.data import datasets, prepared
from fedbench.errors import UserError, explain
from fedbench.jobs import cluster, progress, recovery
from fedbench.plan import configuration, untuned
from fedbench.store.runs import STORE, Store
from fedbench.workflow import besides, failures, room, targets
from fedbench.workflow import checked as checked_before
from fedbench.workflow.follow import follow, tell
from fedbench.workflow.inputs import Inputs

# `fedbench` and `python` in the rules are those of the environment that runs Snakemake, activated or not
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def checked(function, *args, **kwargs):
    """Call ``function``; what the user got wrong ends the program with one line, before anything has begun."""
    try:
        return function(*args, **kwargs)
    except (UserError, OSError) as error:
        raise SystemExit(f"error: {explain(error)}") from None


def given_options():
    """What this call's --config lays over the file, as options of `fedbench`."""
    file = checked(configuration.load_config).model_dump(exclude={"scale", "paper"})
    given = {key: value for key, value in CONFIG.model_dump().items() if key in file and value != file[key]}
    return " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in given.items())


CONFIG = checked(configuration.load_config, overrides=config)
checked(configuration.check_mirror, CONFIG)
INPUTS = Inputs(CONFIG)
# these two reach the jobs as resources: unlike params, a change of them runs nothing again
MIRROR = f"--mirror {shlex.quote(CONFIG.mirror)}" if CONFIG.mirror else ""
OPTIONS = given_options()
GPU = int(CONFIG.device == "cuda" or (CONFIG.device == "auto" and shutil.which("nvidia-smi") is not None))
FORMS = ["tex", "pdf"] if shutil.which("latexmk") and shutil.which("pdflatex") else ["tex"]
EVERYTHING = checked(INPUTS.everything, FORMS)
LOGS_BEFORE = {}
CHECKED = set()


if workflow.is_main_process:
    checked(recovery.put_right, CONFIG.data_dir)
    cluster.mend_arrays()
else:
    cluster.run_own_task()


def cell_of(wildcards):
    """The cell that a training job's wildcards name."""
    return checked(INPUTS.cell, **wildcards)


def cell_key(wildcards):
    """What the cell's numbers depend on, and nothing else: a job is done again when this changes."""
    return cell_of(wildcards).key


def cell_name(wildcards):
    """The cell's address on the command line."""
    return cell_of(wildcards).name


def cell_data(wildcards):
    """What a cell trains on. One without a result is trained: Snakemake alone takes it for a file that has served."""
    cell = cell_of(wildcards)
    if not cell.path.exists():
        workflow.dag.forcefiles.add(str(cell.path))
    return checked(INPUTS.of_cell, cell)


def asking(question, *names):
    """Make an input or params function: it asks about wildcards, by their names."""
    return lambda wildcards: checked(question, *(getattr(wildcards, name) for name in names))


def asking_for_results(question, *names):
    """Likewise for the results of a table or figure; a dry run checks what is to be trained, as `begin` does."""
    ask = asking(question, *names)

    def asked(wildcards):
        paths = ask(wildcards)
        if workflow.dryrun:
            known = INPUTS.cells_by_path(wildcards.paper)
            new = [
                path for path in paths if path in known and path not in CHECKED and not os.path.exists(path)
            ]
            check_planned([known[path] for path in new])
            CHECKED.update(new)
        return paths

    return asked


def check_cells(cells):
    """End the program where cells ask for what is unknown, missing or does not fit."""
    if cells:
        from fedbench.jobs import preflight  # not above: PyTorch takes seconds

        checked(preflight.check, cells)


def check_planned(cells):
    """Likewise in a dry run, which says nothing new of what another has checked."""
    if not checked_before.passed(cells):
        check_cells(cells)
        checked_before.note(cells)


# what a dataset of the user's own is made of: it is prepared again when this changes
own_content = asking(datasets.content, "dataset")
# what a table and a figure show of results, and digests of everything else that they show
table_inputs = asking_for_results(INPUTS.of_table, "paper", "table")
figure_inputs = asking_for_results(INPUTS.of_figure, "paper", "figure")
shown_besides = asking(INPUTS.besides, "paper")
# likewise for a paper's claims, to which results of other scales belong
claims_inputs = asking_for_results(INPUTS.of_claims, "paper")
claims_besides = asking(INPUTS.besides_claims, "paper")
# what a typeset table shows besides the table: how it is typeset
typeset_besides = asking(besides.code)
# the tables and figures of a paper's document
document_inputs = asking(INPUTS.built, "paper")


def decoding_cores(wildcards):
    """All of this call's cores for a dataset of pictures, one for any other."""
    return 1024 if checked(datasets.get, wildcards.dataset).of_pictures else 1


def preparing_options(wildcards, threads):
    """Where raw files may be, and how many processes decode pictures."""
    return f"{MIRROR} --cores {threads}".strip()


def training_cores(wildcards):
    """A cell's share of the cores for its seeds, asked when it is about to begin: more than one if few cells are left."""
    # a cluster's call has none; `workflow.cores` ends the program there
    cores = workflow.resource_settings.cores or 1
    waiting = (job for job in workflow.dag.needrun_jobs() if job.rule.name == "train")
    # no more are counted than share the cores: each of thousands of cells asks
    share = cores // max(1, len([*islice(waiting, cores)]))
    return 1 if GPU else max(1, min(share, len(cell_of(wildcards).runs)))


def training_options(wildcards, threads):
    """This call's options for `fedbench`, and how many seeds are trained at a time."""
    return f"{OPTIONS} --cores {threads}" if threads > 1 else OPTIONS


def prepare_again(wildcards):
    """No file, as raw ones are fetched by the job: a dataset whose raw files have changed is prepared again."""
    if checked(prepared.outdated, wildcards.dataset, CONFIG.data_dir):
        workflow.dag.forcefiles.add(f"{CONFIG.data_dir}/prepared/{wildcards.dataset}.npz")
    return []


def partition_data(wildcards):
    """The prepared datasets that a partition is made of."""
    return INPUTS.prepared(checked(INPUTS.partitioned, **wildcards))


def partition_spec(wildcards):
    """The data rule of a partition, as JSON."""
    return checked(INPUTS.partitioned, **wildcards).data.model_dump_json()


def partition_seed(wildcards):
    """The seed of a partition."""
    return checked(INPUTS.partitioned, **wildcards).seed


def page_inputs(wildcards):
    """What the tables, figures and claims are made of that the report page shows first; it draws them itself."""
    return checked(INPUTS.of_page, CONFIG.paper)


def page_besides(wildcards):
    """Digests of everything else that the report page shows."""
    return checked(INPUTS.besides_page)


PACE = {}


def training_state():
    """How many cells of this call are trained, in training, failed and left, and how long that takes, in one line.

    Where each of those in training is, `fedbench list` says from another terminal.
    """
    dag, scheduler = workflow.dag, workflow.scheduler
    trained = [job for job in dag.jobs if job.rule.name == "train"]
    at_work = {job for item in list(scheduler.running) for job in (item if item.is_group() else [item])}
    running = sum(job in at_work for job in trained)
    done = sum(not dag.needrun(job) or dag.finished(job) for job in trained)
    failed = sum(job in scheduler.failed for job in trained)
    if not trained:
        return []
    waiting = [job for job in trained if dag.needrun(job) and not dag.finished(job)]
    part = sum(progress.share_done(cell_of(job.wildcards), Store()) for job in waiting)
    PACE.setdefault("began", time.monotonic())
    PACE.setdefault("done", done + part)
    seconds, left = time.monotonic() - PACE["began"], len(trained) - done - failed - part
    return [
        progress.counts(len(trained), done, running, failed)
        + progress.time_left(PACE["done"], done + part, left, seconds)
    ]


def failed_logs():
    """The logs of the jobs that have failed."""
    failed = [job for item in [*workflow.scheduler.failed] for job in (item if item.is_group() else [item])]
    return [str(log) for job in failed for log in job.log]


def stop_for_disk():
    """Begin no more jobs: each would find out alone that the disk is full. Those at work go on."""
    tell(["a job failed because of the disk: no more are begun, those at work finish"])
    workflow.scheduler.exit_gracefully()


def tell_untuned(trained):
    """Say in a line for each paper which of its cells are not tuned, before a night of training."""
    for paper in dict.fromkeys(cell.paper for cell in trained):
        if line := checked(
            untuned.warning, INPUTS.plan(paper), [cell for cell in trained if cell.paper == paper]
        ):
            tell([line])


def begin(dag):
    """Check what is to be trained, and the disk, before any job; note which logs are old; tell how the training stands."""
    checked(cluster.check, workflow.executor_plugin.name)
    waiting = [*dag.needrun_jobs()]
    LOGS_BEFORE.update({name: failures.stamp(name) for job in waiting for name in job.log})
    trained = [cell_of(job.wildcards) for job in waiting if job.rule.name == "train"]
    written = [str(file) for job in waiting for file in [*job.output, *job.log]]
    checked(room.check, [*written, *(str(STORE / run.key) for cell in trained for run in cell.runs)])
    if trained:
        check_cells(trained)
        tell_untuned(trained)
        if CONFIG.compile:
            from fedbench.engine import compiled

            checked(compiled.check)
    training_state()  # what was done before is no part of the pace
    PACE["end"] = follow(training_state)
    room.watch(failed_logs, stop_for_disk)


def check_targets():
    """Answer a slip in what was asked for before anything runs."""
    for argument in sys.argv[1:] if workflow.is_main_process else ():
        if targets.like_a_file(argument):
            checked(targets.check, argument, sys.argv[1:], INPUTS, [rule.name for rule in workflow.rules])


def tell_the_end():
    """Say in a last line how the training stands."""
    PACE.get("end", lambda: None)()
    tell(training_state())


def explain_failures(dag):
    """Say which jobs did not finish, why, and how to run one alone; then build what they feed from what there is."""
    jobs = {
        failures.Job(
            job.rule.name,
            str(job.output[0]),
            str(job.log[0]),
            job.shellcmd,
            tuple(map(str, job.input.get("shown", job.input))),
        ): job
        for job in dag.needrun_jobs()
        if job.is_shell
    }
    failures.explain(jobs, LOGS_BEFORE)
    # marked incomplete: the next call builds them again
    failures.build_from_what_is_there(jobs, lambda job: dag.workflow.persistence.started(jobs[job]))
