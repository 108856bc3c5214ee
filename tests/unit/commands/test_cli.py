"""The command line: what it prints and how it ends; the schemas by which editors check files."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from toy import PAPER, call, write_yaml

import fedbench
from fedbench.commands import schema
from fedbench.data.datasets._torchvision import CifarSet
from fedbench.data.prepared import prepare
from fedbench.errors import UserError
from fedbench.store.runs import Store
from fedbench.study.configuration import paper_keys, study_path

pytestmark = pytest.mark.usefixtures("project")
CELL = "toy/Digits/p2_imratio0.2/Plain"


def test_list_and_run() -> None:
    listed = call("list").stdout
    lines = listed.splitlines()
    assert lines[0] == f"{CELL}  0/2 runs, not tuned" and len(lines) == 10
    assert "tables of toy: table1" in listed and "papers: " in listed

    trained, stored = ([*re.findall("  seed .*finished.*", call("run", CELL).stdout)] for _ in range(2))
    assert trained == stored and len(trained) == 2 == len(Store().keys())
    assert ": finished test_ap 0." in trained[0] and ", test_auc 0." in trained[0]
    assert call("list", CELL).stdout == f"{CELL}  2/2 runs, not tuned\n"
    assert call("list", "p2").stdout.splitlines()[0] == f"{CELL}  2/2 runs, not tuned"


def test_options_reach_the_cells_and_a_cells_name_names_its_paper_but_a_pattern_need_not() -> None:
    assert call("list", "--set", "seeds=0,1,2", CELL).stdout == f"{CELL}  0/3 runs, not tuned\n"
    assert call("list", "--set", "seeds=[4]", CELL).stdout == f"{CELL}  0/1 runs, not tuned\n"
    assert "toy/Printed/p2_imratio0.2/Plain  0/1 runs" in call("list", "--scale", "paper").stdout
    Path("config/papers/other.yaml").write_text(Path("config/papers/toy.yaml").read_text())
    listed = call("list", "--paper", "other", "--set", "datasets=Digits")
    assert listed.stdout.startswith("other/Digits/p2_imratio0.2/Plain ")
    assert "Did you mean 'other/'?" in call("list", "other", status=2).stderr
    for pattern, cell in (
        ("other/Digits/p2_imratio0.2/Plain", "other/Digits/p2_imratio0.2/Plain"),
        ("*/Digits/p2_*/Proximal", "toy/Digits/p2_imratio0.2/Proximal"),
    ):
        said = call("run", pattern, "--set", "seeds=0", "--set", "client_chunk=3").stdout
        assert f"[1/1] {cell} " in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run plain", "Did you mean 'Plain'?"),
        ("list --scale dem", "unknown scale 'dem'. Did you mean 'demo'?"),
        ("list --set seeds", "set takes KEY=VALUE such as train.iterations=200, not 'seeds'"),
        ("list --set tolerance=x", "error: --set: tolerance: "),
        ("list --set seeds=[0", "set seeds: '[0' is not valid YAML"),
        ("list --set train.iteration=3", "Did you mean 'iterations'?"),
        ("list --set trian.iterations=3", "unknown place of a run 'trian.iterations'"),
        ("list --set network={name:mlp}", "a run 'network'. Did you mean 'network.…'?"),
        ("list --set train.period=3", "that is the setting p of toy"),
        ("show Plain", "/Plain, ...); give the name of one"),
        ("show p2_imratio0.2/Plain", "/Plain_too); give the name of one"),
        (f"predict {CELL} --images pictures", "give --data too"),
        ("show tabel1", "unknown table or figure 'tabel1'. Did you mean 'table1'"),
        ("show tyo/table1", "unknown table or figure 'tyo/table1'. Did you mean 'toy/table1'"),
        ("table toy/table9", "table9"),
        ("table toy/figure1", "`fedbench figure toy/figure1` draws it"),
        ("figure table1", "`fedbench table toy/table1` builds it"),
        ("table toy/claims", "`fedbench claims toy` prints them"),
        ("schema studdy", "unknown kind of file 'studdy'. Did you mean 'study'"),
    ],
)
def test_mistakes_end_with_one_line_and_status_2(arguments: str, says: str) -> None:
    said = call(*arguments.split(), status=2).stderr
    assert said.startswith("error: ") and says in said and said.count("\n") == 1


def test_an_init_that_broke_off_is_completed_by_the_next_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk it leaves no half file, and names the one that found no room."""

    def full(source: Path, path: Path) -> None:
        path.write_bytes(source.read_bytes()[:9])
        if source.name == "config.yaml":
            raise OSError(errno.ENOSPC, "No space left on device", str(source))
        copy(source, path)

    copy, mine = shutil.copy, tmp_path / "mine"
    monkeypatch.setattr(shutil, "copy", full)
    assert f"cannot write {mine / 'config/config.yaml'}: No space" in call("init", str(mine), status=2).stderr
    assert {path.name for path in mine.rglob("*") if path.is_file()} == {"Snakefile", "README.md"}
    monkeypatch.setattr(shutil, "copy", copy)
    call("init", str(mine))
    assert (mine / "config/config.yaml").read_bytes() == (ROOT / "config/config.yaml").read_bytes()
    (mine / "Snakefile").write_text("mine")
    assert "Snakefile exists already; give a new folder" in call("init", str(mine), status=2).stderr
    assert (mine / "Snakefile").read_text() == "mine"


def test_the_cure_of_predictions_that_lack_trains_what_was_asked_for() -> None:
    """Not three seeds at full length: its runs have other keys than those of the call."""
    asked = ["--set", "seeds=[1]", "--set", "train.iterations=4"]
    said = call("predict", CELL, *asked, status=2).stderr
    assert "seed 1 was not trained here" in said
    run = shlex.split(said.split("`")[1])[1:]
    call("run", CELL, *asked)
    cures = call("predict", CELL, *asked, status=2).stderr.split("`")[1::2]
    (cell,) = fedbench.cells(CELL, seeds=[1], set={"train.iterations": 4})
    with pytest.raises(UserError) as lacking:
        _ = fedbench.run(cell).predictions
    assert str(lacking.value).split("`")[1::2] == cures, "in Python too, where a cell is resolved before"
    forget, again = (shlex.split(cure)[1:] for cure in cures)
    assert run == again and "1 of 1 runs forgotten" in call(*forget).stdout
    call(*run)
    assert call("predict", CELL, *asked).stdout.startswith("seed,part,row")


def test_tune_writes_the_choice_that_run_uses() -> None:
    said = call("tune", "Digits", "Plain").stdout
    assert said.count("Digits Plain, trial ") == 4
    assert said.splitlines()[-1] == "config/tuned/toy/Digits.yaml"


def test_doctor_reports_and_a_broken_dataset_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("in its own code")

    monkeypatch.setattr(CifarSet, "status", broken)
    said = call("doctor").stdout
    for part in ("fedbench ", "Python ", "device: cpu", "disk: ", "run store: 0 finished runs"):
        assert part in said
    lines = {line.split()[0]: line for line in said.splitlines() if line.startswith("  ")}
    assert lines["cifar10"].endswith("broken: ZeroDivisionError: in its own code")
    assert "prepared: " in lines["digits"] and "melanoma" in lines


def test_a_place_of_a_run_can_be_set_for_a_call_and_is_shown_with_its_layer() -> None:
    """It is another run with another key; of keys that exclude each other the one that is set stays."""
    before, after = (call("show", CELL, *more).stdout for more in ((), ("--set", "train.rounds=2")))
    assert before.splitlines()[1] != after.splitlines()[1], "another key"
    (line,) = [line.split() for line in after.splitlines() if line.startswith("train.rounds ")]
    assert line == ["train.rounds", "2", "this", "call's", "set"]
    assert "train.iterations " not in after and "train.epochs " not in after
    assert "setting p = 2" in before and "defaults of config/papers/toy.yaml" in before
    figure = call("show", "figure1").stdout.splitlines()
    assert figure[0] == "toy/figure1 at scale demo: Curves"
    assert figure[1].endswith("fedbench figure toy/figure1 --scale demo")
    assert figure[2:] == [f"toy/Digits/p{p}_imratio0.2/Plain  0/2 runs" for p in (4, 8)]


def test_a_cell_names_its_features_and_ends_with_the_command_that_trains_it() -> None:
    Path("config/datasets").mkdir(exist_ok=True)
    Path("t.csv").write_text("age,crp,kind\n" + "".join(f"{n},{n % 7},{'ab'[n % 2]}\n" for n in range(40)))
    Path("config/datasets/t.yaml").write_text("file: t.csv\nlabel: kind\n")
    more = ("--set", "data.dataset=t", "--set", "data_dir=data")
    assert "features:" not in call("show", CELL, *more).stdout, "it is not prepared"
    prepare("t", "data")
    *_, features, command = call("show", CELL, *more).stdout.splitlines()
    assert features == "features: age, crp"
    sets = "--set 'data_dir=\"data\"' --set 'data.dataset=\"t\"'"
    assert command == f"train it: fedbench run {CELL} --scale demo {sets}"


def test_claims_of_all_studies_are_those_of_each_in_order() -> None:
    for option in ([], ["--write"]):
        assert "toy makes no claims" in call("claims", "toy", *option).stdout
    assert not Path("tables/toy/claims.md").exists()
    better = {"method": "Plain", "than": ["Plain_too"], "metric": "test_auc"}
    claim = {"says": "Plain is ahead", "in": ["table1"], "better": better}
    for key in ("first", "second"):
        write_yaml(Path(f"config/papers/{key}.yaml"), {**PAPER, "title": f"The {key}", "claims": [claim]})
    said = call("claims").stdout
    assert said == call("claims", "first").stdout + call("claims", "second").stdout
    assert "Claims of The first" in said and "Plain is ahead" in said


def test_a_terminal_without_a_character_and_a_pipe_that_closes_end_without_a_traceback() -> None:
    write = "import sys; sys.argv = ['fedbench', 'list']; from fedbench.commands import cli; cli.print = lambda *_: "
    for print_, status in (
        ("sys.stdout.write('\u2021\\n')", 0),  # the mark of shipped numbers
        ("[sys.stdout.write('x' * 100_000), sys.stdout.flush()]", 1),
    ):
        with subprocess.Popen(
            [sys.executable, "-c", f"{write}{print_}; cli.main()"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        ) as process:  # fmt: skip
            assert process.stdout is not None and process.stderr is not None
            if status:
                process.stdout.close()
            said = process.stderr.read().decode()
            assert process.wait() == status and "Traceback" not in said, said


def test_commands_begin_without_what_takes_seconds_to_import() -> None:
    code = "import sys, fedbench.commands.cli; assert not {'pandas', 'scipy', 'torch'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


ROOT = Path(__file__).parents[3]
SHIPPED = [
    ("config", ROOT / "config/config.yaml"),
    *(("study", ROOT / study_path(key)) for key in paper_keys()),
    *(("scale", path) for path in sorted((ROOT / "config/scales").glob("*.yaml"))),
]


VALIDATORS = {kind: jsonschema.Draft202012Validator(schema.schema(kind)) for kind in schema.FILES}


@pytest.mark.parametrize("kind", schema.FILES)
def test_it_is_a_schema_and_json_in_which_every_key_says_what_it_means(kind: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    made = json.loads(schema.text_of(kind), parse_constant=refuse)
    jsonschema.Draft202012Validator.check_schema(made)
    parts = {kind: made, **made["$defs"]}
    keys = {(part, name): key for part in parts for name, key in parts[part].get("properties", {}).items()}
    assert [place for place, key in keys.items() if not key.get("description")] == []


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda part: getattr(part, "stem", part))
def test_shipped_files_are_right_and_name_their_schema(kind: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    VALIDATORS[kind].validate(yaml.safe_load(text))
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / schema.FOLDER / f"{kind}.json"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("tabels", {}),
        ("defaults.data.cleints", 3),
        ("defaults.data.imbalance.rule", "minoritty"),
        ("defaults.train.weight_decay", -1.0),
        ("tables.table1.rows", "rho"),
        ("key", "climb"),  # which fedbench fills in
    ],
)
def test_a_mistake_is_marked_where_it_is(place: str, value: Any) -> None:
    study = yaml.safe_load((ROOT / "config/papers/climb.yaml").read_text(encoding="utf-8"))
    *parents, last = place.split(".")
    functools.reduce(lambda inner, name: inner[name], parents, study)[last] = value
    assert not VALIDATORS["study"].is_valid(study)


def test_what_is_committed_is_what_the_code_says() -> None:
    cure = "run `fedbench schema --write`"
    for kind in schema.FILES:
        committed = (ROOT / schema.FOLDER / f"{kind}.json").read_text(encoding="utf-8")
        assert committed == schema.text_of(kind), cure


def test_a_table_that_is_not_there_is_not_typeset() -> None:
    assert "tables/none.tex" in call("typeset", "tables/none.tex", status=2).output
