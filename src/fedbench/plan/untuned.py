"""Which cells run with hyper-parameters that no trial chose on their dataset: they say nothing of the best method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedbench.plan.cells import Cell, layers_of
from fedbench.plan.configuration import CONFIG_DIR, load_paper, scale_of
from fedbench.plan.schema import Config, Paper, Scale, Value
from fedbench.plan.tuned import tuned_for

NAMED = 4
"""Methods of a dataset that are named; more are counted."""


def is_untuned(
    paper: Paper,
    dataset: str,
    setting: Mapping[str, Value],
    method: str,
    scale: Scale,
    config_dir: Path = CONFIG_DIR,
) -> bool:
    """Say whether a method has a grid, but no trials chose its values on a dataset at a setting.

    Values that are published need no trials where the scale has ``constants: paper``, and what the setting or the
    dataset fixes, such as the step sizes of a theory, needs none at all.
    """
    entry = paper.methods[method]
    varied = {name for names in entry.grid for name in names.split(", ")}
    if varied <= ({*entry.published} if scale.constants == "paper" else set()):
        return False
    tuned = tuned_for(paper, dataset, setting, method, scale, config_dir)
    if tuned.values or tuned.published:
        return False
    layers = layers_of(paper, scale, dataset, setting, method, 0, config_dir=config_dir)
    tuned_at = next(at for at, layer in enumerate(layers) if layer.name.startswith("tuned "))
    fixed = {name for layer in layers[tuned_at + 1 :] for name in layer.piece.get("params", {})}
    return not varied <= fixed


def untuned(cells: Sequence[Cell], config: Config, config_dir: Path = CONFIG_DIR) -> list[Cell]:
    """List the cells of one paper that run with values that no trial chose on their dataset."""
    if not cells:
        return []
    paper, scale = load_paper(cells[0].paper, config_dir), scale_of(config, config_dir)
    return [
        cell
        for cell in cells
        if is_untuned(paper, cell.dataset, cell.setting, cell.method, scale, config_dir)
    ]


def methods_by_dataset(cells: Sequence[Cell]) -> str:
    """Name the methods of cells by their dataset: ``Digits: CoDA, FedAvg and 3 more; MNIST: CoDA``."""
    texts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        names = list(dict.fromkeys(cell.method for cell in cells if cell.dataset == dataset))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        texts.append(f"{dataset}: {', '.join(names[:NAMED])}{more}")
    return "; ".join(texts)


def warning(cells: Sequence[Cell], config: Config, config_dir: Path = CONFIG_DIR) -> str:
    """Say in one line which of the cells of one paper are not tuned, and the cure; empty where all are."""
    not_tuned = untuned(cells, config, config_dir)
    if not not_tuned:
        return ""
    return (
        f"warning: {len(not_tuned)} of {len(cells)} cells are not tuned for their dataset "
        f"({methods_by_dataset(not_tuned)}): the order of methods will say nothing. "
        f"First: fedbench tune {not_tuned[0].dataset} --paper {cells[0].paper}"
    )
