"""The RO-Crate of an artifact: files, data and runs in linked data, by the profiles for runs of a workflow.

Written as plain JSON: RO-Crate 1.1 with the profiles Workflow RO-Crate 1.0, Process and Workflow Run Crate 0.5
(https://www.researchobject.org/workflow-run-crate/).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fedbench.data.dataset import Dataset
from fedbench.report.artifact.facts import Facts
from fedbench.report.numbers.names import target_name
from fedbench.report.numbers.origin import Behind
from fedbench.store.runs import STORE

NAME = "ro-crate-metadata.json"
ROCRATE = "https://w3id.org/ro/crate/1.1"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
}
LICENCE = "https://spdx.org/licenses/Apache-2.0"
WORKFLOW = "code/workflow/Snakefile"
SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
MEDIA = {
    "csv": "text/csv", "json": "application/json", "md": "text/markdown", "pdf": "application/pdf",
    "tex": "application/x-tex",
}  # fmt: skip
Entity = dict[str, Any]


def write(facts: Facts) -> str:
    """Return ``ro-crate-metadata.json``."""
    shipped = f"code/reproduced/{facts.scale}/{facts.paper.key}.csv"
    parts = [
        _entity("code/", "Dataset", name=f"fedbench at commit {facts.commit}", license=_ref(LICENCE)),
        *_workflow(facts),
        _file("README.md", "What to type to check the table") | {"about": _ref("./")},
        _file("code/requirements.lock", "The versions of all packages, with hashes", "text/plain"),
        _file(shipped, "A row for each run and metric"),
        *(
            _file(path, f"{target_name(facts.table)}, .{path.partition('.')[2]}")
            for path in facts.table_files
        ),
        *(_folder(run) for run in facts.behind if run.trained),
    ]
    about = [
        *(
            _entity(address, "CreativeWork", name=name, version=address.rpartition("/")[2])
            for address, name in PROFILES.items()
        ),
        _entity(LICENCE, "CreativeWork", name="Apache License 2.0"),
        *_software(facts),
        *(_data(data) for data in facts.data),
        *(_training(run, shipped) for run in facts.behind),
        _building(facts, shipped),
    ]
    graph = [_descriptor(), _root(facts, parts), *parts, *about]
    return json.dumps({"@context": f"{ROCRATE}/context", "@graph": graph}, indent=1) + "\n"


def _entity(address: str, kind: str | list[str], **said: Any) -> Entity:
    return {"@id": address, "@type": kind, **{name: value for name, value in said.items() if value}}


def _ref(address: str) -> Entity:
    return {"@id": address}


def _refs(addresses: Iterable[str]) -> Entity | list[Entity]:
    """Refer to several entities, or to one: RO-Crate wants no list of one."""
    several = [_ref(address) for address in addresses]
    return several[0] if len(several) == 1 else several


def _file(path: str, name: str, media: str = "") -> Entity:
    return _entity(path, "File", name=name, encodingFormat=media or MEDIA[path.rpartition(".")[2]])


def _descriptor() -> Entity:
    return _entity(NAME, "CreativeWork", about=_ref("./"), conformsTo=_refs([ROCRATE, WORKFLOW_CRATE]))


def _root(facts: Facts, parts: list[Entity]) -> Entity:
    mentioned = [f"#run-{run.key}" for run in facts.behind]
    return _entity(
        "./",
        "Dataset",
        name=f"{target_name(facts.table)} of {facts.paper.title}, rebuilt at scale {facts.scale}",
        description="A table as fedbench rebuilt it, with the code, the runs behind it and how to check it: README.md.",
        datePublished=facts.made.isoformat(),
        license=_ref(LICENCE),
        conformsTo=_refs(PROFILES),
        mainEntity=_ref(WORKFLOW),
        hasPart=_refs(part["@id"] for part in parts),
        mentions=_refs([*mentioned, "#table"]),
    )


def _workflow(facts: Facts) -> list[Entity]:
    kinds = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    return [
        _entity(
            WORKFLOW, kinds, name="The Snakemake workflow", version=facts.commit, license=_ref(LICENCE),
            programmingLanguage=_ref(SNAKEMAKE),
        )
    ]  # fmt: skip


def _software(facts: Facts) -> list[Entity]:
    language = _entity(
        SNAKEMAKE, "ComputerLanguage", name="Snakemake", identifier=_ref("https://doi.org/10.1093/bioinformatics/bts480"),
        url=_ref("https://snakemake.readthedocs.io"),
    )  # fmt: skip
    versions = sorted({commit for run in facts.behind for commit in run.commits} or {"unknown"})
    trainers = [
        _entity(f"#fedbench-{commit}", "SoftwareApplication", name="fedbench run", softwareVersion=commit)
        for commit in versions
    ]
    return [language, *trainers]


def _folder(run: Behind) -> Entity:
    name = f"{run.cell.name}, seed {run.spec.seed}: configuration, numbers, curve"
    return _entity(f"code/{STORE / run.key}/", "Dataset", name=name)


def _data(data: Dataset) -> Entity:
    return _entity(
        f"#data-{data.name}", "CreativeWork", name=data.title, license=data.licence, description=data.source
    )


def _training(run: Behind, shipped: str) -> Entity:
    result = f"code/{STORE / run.key}/" if run.trained else shipped
    return _entity(
        f"#run-{run.key}",
        "CreateAction",
        name=f"Training of {run.cell.name} at scale {run.cell.scale}, seed {run.spec.seed}",
        description=f"Hardware: {run.hardware or 'not known'}.",
        instrument=_refs(f"#fedbench-{commit}" for commit in run.commits or ["unknown"]),
        object=_refs(f"#data-{name}" for name in run.spec.data.datasets),
        result=_ref(result),
        actionStatus=_ref(f"http://schema.org/{'Completed' if run.finished else 'Failed'}ActionStatus"),
    )


def _building(facts: Facts, shipped: str) -> Entity:
    runs = {f"code/{STORE / run.key}/" if run.trained else shipped for run in facts.behind}
    return _entity(
        "#table",
        "CreateAction",
        name=f"The rule `table` of the workflow: {facts.target} at scale {facts.scale}",
        description="From the runs, their numbers in print and the configuration to the table in all its forms.",
        instrument=_ref(WORKFLOW),
        object=_refs(sorted(runs)),
        result=_refs(facts.table_files),
        actionStatus=_ref("http://schema.org/CompletedActionStatus"),
    )
