from __future__ import annotations

import shutil

from fedbench.data.partition import make_partition
from fedbench.data.summary import data_rows
from fedbench.spec import DataSpec


def test_rows_keep_their_order_and_say_what_is_missing(digits, tmp_path):
    shutil.copytree(digits / "prepared", tmp_path / "prepared")
    binary = DataSpec(
        dataset="digits",
        labels={"rule": "halves"},
        imbalance={"rule": "drop_positives", "imratio": 0.1},
        clients=4,
    )
    plain = DataSpec(dataset="digits", clients=7, validation=0.2)
    for spec in (binary, plain):
        make_partition(spec, 0, tmp_path)
    entries = [("STL10", DataSpec(dataset="stl10", clients=4), 0), ("Digits", binary, 0), ("all", plain, 0)]
    absent, halves, original = data_rows(entries, tmp_path)
    assert absent.dataset == "STL10" and absent.train is None and "stl10.json is missing" in absent.missing
    assert (halves.positive, halves.negative, halves.train) == (79, 717, 796)
    assert halves.ratio == 79 / 796 and halves.test == 359 and halves.clients == 4
    assert halves.shape == (1, 8, 8) and halves.classes == 10 and halves.missing == ""
    assert original.positive is None and original.ratio is None
    assert original.train + original.validation == 1438 and original.clients == 7
