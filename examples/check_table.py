"""Hold the verdicts of a table against those that examples/verdicts.py recomputes from the runs, without fedbench:

python examples/check_table.py tables/localscgdam/table1.csv
"""

import sys
from pathlib import Path

import pandas as pd
import yaml
from verdicts import against_print, norm

WORDS = ("matches", "above print", "below print", "inconclusive")


def differences(path):
    """How many verdicts agree, the places where they do not, and how many numbers are made of others."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = rows[rows["verdict"].isin(WORDS)]
    agree, differ, made = 0, [], 0
    for (study, table, scale), part in rows.groupby(["paper", "table", "scale"]):
        axes = ["dataset", *yaml.safe_load(Path(f"config/papers/{study}.yaml").read_text())["settings"]]
        said = against_print(study, scale)
        for row in part.to_dict("records"):
            place = tuple(norm(row.get(axis, "")) for axis in axes)
            ours = said.get((table, place, row["method"], row["metric"]))
            made += ours is None
            agree += ours == row["verdict"]
            if ours not in (None, row["verdict"]):
                differ.append(
                    f"{scale} {place} {row['method']} {row['metric']}: {ours}, not {row['verdict']}"
                )
    return agree, differ, made


if __name__ == "__main__":
    agree, differ, made = differences(sys.argv[1])
    print(*differ, sep="\n", end="\n" * bool(differ))
    print(f"{agree} of {agree + len(differ)} verdicts agree", end="")
    print(f"; {made} numbers are made of others and were not recomputed" * bool(made))
    sys.exit(bool(differ))
