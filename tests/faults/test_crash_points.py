"""A training that dies before any one of the changes it makes to files ends, started again, with the same bytes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from fedbench.data.prepared import prepare
from forks import stand_ins


def test_dying_before_any_change_to_a_file_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    prepare("digits", tmp_path / "data")
    worker = Path(__file__).with_name("crash_worker.py")
    done = subprocess.run(
        [stand_ins() / "python", worker, tmp_path / "data"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["wrong"] == {}, done.stderr
    # folder, lock, journal, checkpoints, curve, record, the rename, cleaning up, the cell
    assert said["changes"] > 20
    assert [Path(name).name for name in said["files"]] == ["FedAvg.json", "curve.csv"]
