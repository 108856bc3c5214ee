"""The weights that a run starts from: of another run in the store, trained first if need be, or of a user's file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from fedbench import files
from fedbench import net as network
from fedbench.data.clients import as_seen
from fedbench.engine.weights import start_from
from fedbench.errors import UserError
from fedbench.spec import RunSpec, StartSpec
from fedbench.store.record import MODEL, Record
from fedbench.store.runs import Store

Weights = dict[str, Tensor]
LARGEST = 1 << 34
"""Bytes a file of weights may have."""
IMAGENET = 1000
"""Classes of ImageNet."""


def weights(start: StartSpec, store: Store, train: Callable[[RunSpec], Record]) -> Weights:
    """Return what a run starts from, by name; ``train`` returns a run from the store, or trains it.

    Raises:
        UserError: the run it names diverged or left no model; the file is missing, not the one meant, or holds none.
    """
    if start.run is None:
        return _of_file(start)
    record = train(start.run)
    what = f"run {record.key} ({start.run.method} on {start.run.data.dataset}, seed {start.run.seed})"
    if record.status != "finished":
        raise UserError(f"{what}, which another starts from, {record.status}: {record.reason}")
    if MODEL not in record.files:
        raise UserError(
            f"{what}, which another starts from, has no {MODEL}; remove it and it is trained again"
        )
    return weights_of((store.path(record.key) / MODEL).read_bytes(), f"{MODEL} of {what}")


def check_start(run: RunSpec, shape: Sequence[int]) -> None:
    """Check a user's file of weights against the network that is to start with it, before anything is trained.

    Args:
        run: may start from anything, or from random weights.
        shape: of a stored sample.

    Raises:
        UserError: the file is missing, not the one meant, not this network's, or has seen what is to be learned.
    """
    if run.start is None or run.start.run is not None:
        return
    loaded = _of_file(run.start)
    heads = [len(value) for value in loaded.values() if value.dim() == 2]
    if "imagenet" in run.data.datasets and heads and heads[-1] == IMAGENET:
        raise UserError(
            f"start.weights {run.start.weights} has {IMAGENET} outputs, as networks trained on ImageNet have: they know"
            " the classes of imagenet; start from random weights"
        )
    # how many outputs a task has is known with its data
    binary = run.data.labels.rule != "original" and run.task is None
    net = network.build_network(run.network.name, as_seen(shape, run.train), 1, 0, run.network.options)
    start_from(net, loaded, run.start.drop_head or not binary)


def model_bytes(model: Weights) -> bytes:
    """Return the content of a file that keeps a model."""
    buffer = io.BytesIO()
    torch.save(model, buffer)
    return buffer.getvalue()


def _of_file(start: StartSpec) -> Weights:
    if start.weights is None:
        raise UserError("start.weights, the path of the file to start from, is not given")
    try:
        content = files.read(Path(start.weights), LARGEST)
    except FileNotFoundError:
        raise UserError(f"cannot read start.weights {start.weights}: No such file") from None
    except ValueError as error:
        raise UserError(f"cannot read start.weights {start.weights}: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != start.sha256:
        raise UserError(f"start.weights {start.weights} is not the file meant: its SHA-256 is {digest}")
    return weights_of(content, f"start.weights {start.weights}")


def weights_of(content: bytes, what: str) -> Weights:
    """Read a dict of tensors without executing code; UserError, which says ``what`` it is not, where it holds none."""
    wanted = "a dict of tensors by name, as torch.save(module.state_dict(), path) writes"
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for what it cannot read
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{what} does not hold {wanted} ({first})") from None
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and _plain(of) for name, of in loaded.items()
    ):
        raise UserError(f"{what} does not hold {wanted}")
    return loaded


def _plain(value: object) -> bool:
    """Say whether it is a tensor of real numbers that are all there."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_meta:
        return False
    return not value.is_quantized and not value.is_complex()
