"""The description of a run: typed, validated, with everything that changes the run's numbers, and the run's key."""

from __future__ import annotations

from fedbench.spec.base import Name, Spec, as_value, digest, named, validated
from fedbench.spec.data import NUMERICS, DataSpec, ImbalanceSpec, LabelSpec, PartitionSpec
from fedbench.spec.run import LATE_PARAMS, NetworkSpec, RunSpec, StartSpec, TaskSpec
from fedbench.spec.train import NoiseSpec, NormalizeSpec, ParticipationSpec, StagesSpec, TrainSpec

__all__ = [
    "LATE_PARAMS", "NUMERICS", "DataSpec", "ImbalanceSpec", "LabelSpec", "Name", "NetworkSpec", "NoiseSpec",
    "NormalizeSpec", "ParticipationSpec", "PartitionSpec", "RunSpec", "Spec", "StagesSpec", "StartSpec", "TaskSpec",
    "TrainSpec", "as_value", "digest", "named", "validated",
]  # fmt: skip
