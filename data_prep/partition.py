"""Deal a prepared dataset to clients: ``partition.py --spec JSON --seed S --data-dir DIR``."""

from __future__ import annotations

import argparse
import json
import sys

from fedbench.data.partition import make_partition
from fedbench.errors import UserError, explain
from fedbench.spec import DataSpec, validated


def main() -> int:
    """Run the program; exit status 2 and one line on a mistake of the user."""
    parser = argparse.ArgumentParser(description="Deal a prepared dataset to clients by a data rule.")
    parser.add_argument("--spec", required=True, help="the data rule as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--data-dir", default="data", help="where prepared files and partitions are kept")
    arguments = parser.parse_args()
    try:
        print(make_partition(_spec(arguments.spec), arguments.seed, arguments.data_dir))
    except (UserError, OSError) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
        return 2
    return 0


def _spec(text: str) -> DataSpec:
    try:
        rule = json.loads(text)
    except ValueError as error:
        raise UserError(f"--spec {text}: {error}") from None
    return validated(DataSpec, rule, "--spec")


if __name__ == "__main__":
    sys.exit(main())
