"""The command line: what it prints and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml
from typer.testing import CliRunner, Result

from fedbench.commands.cli import app
from fedbench.data.datasets._torchvision import CifarSet
from fedbench.store.runs import Store

pytestmark = pytest.mark.usefixtures("project")
ONE = "toy/Digits/p2_imratio0.2/Plain"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def error_of(result: Result) -> str:
    """The message of a user's mistake: one line, status 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return result.stderr


def test_list_and_run() -> None:
    listed = call("list")
    assert listed.exit_code == 0
    lines = listed.stdout.splitlines()
    assert lines[0] == f"{ONE}  0/2 runs, not tuned" and len(lines) == 10
    assert "tables of toy: table1" in listed.stdout and "papers: " in listed.stdout

    result = call("run", ONE)
    assert result.exit_code == 0, result.output
    assert f"[1/1] {ONE}  scale demo" in result.stdout
    assert "seed 0: finished test_auc 0." in result.stdout and "seed 1: finished" in result.stdout
    assert Path("results/cells/demo/toy/Digits/p2_imratio0.2/Plain.json").exists()
    assert len(Store().keys()) == 2
    assert call("list", ONE).stdout == f"{ONE}  2/2 runs, not tuned\n"
    assert call("list", "p2").stdout.splitlines()[0] == f"{ONE}  2/2 runs, not tuned"


def test_a_cells_name_names_its_paper_but_a_pattern_need_not() -> None:
    toy = Path("config/papers/toy.yaml").read_text()
    Path("config/papers/other.yaml").write_text(toy)
    listed = call("list", "--paper", "other", "--set", "datasets=Digits")
    assert listed.stdout.startswith("other/Digits/p2_imratio0.2/Plain ")
    result = call("run", "other/Digits/p2_imratio0.2/Plain", "--set", "seeds=0")
    assert "[1/1] other/Digits/p2_imratio0.2/Plain" in result.stdout
    result = call("run", "*/Digits/p2_*/Proximal", "--set", "seeds=0")
    assert "[1/1] toy/Digits/p2_imratio0.2/Proximal" in result.stdout


def test_options_reach_the_cells() -> None:
    assert call("list", "--set", "seeds=0,1,2", ONE).stdout == f"{ONE}  0/3 runs, not tuned\n"
    assert call("list", "--set", "seeds=[4]", ONE).stdout == f"{ONE}  0/1 runs, not tuned\n"
    printed = call("list", "--scale", "paper").stdout
    assert "toy/Printed/p2_imratio0.2/Plain  0/1 runs" in printed
    result = call("run", ONE, "--set", "seeds=0", "--set", "client_chunk=3")
    assert result.exit_code == 0


def test_a_diverged_run_ends_with_status_3_after_all_others() -> None:
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Plain": {"lr": 1e30}}})
    result = call("run", "p2", "--set", "seeds=0")
    assert result.exit_code == 3
    assert "seed 0: diverged parameters became non-finite" in result.stdout
    assert f"{ONE} seed 0" in result.stderr and "Traceback" not in result.output
    assert "[3/3] toy/Digits/p2_imratio0.2/Plain_too" in result.stdout
    assert result.stdout.count("finished") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nothing"], "no cell matches 'nothing'"),
        (["run", "toyz/Digits/p2_imratio0.2/Plain"], "unknown paper 'toyz'. Did you mean 'toy'?"),
        (["list", "--scale", "dem"], "unknown scale 'dem'. Did you mean 'demo'?"),
        (["list", "--paper", "toi"], "unknown paper 'toi'"),
        (["list", "--set", "seed=1"], "unknown key of the configuration 'seed'. Did you mean 'seeds'?"),
        (["list", "--set", "seeds"], "--set takes KEY=VALUE, not 'seeds'"),
        (["list", "--set", "seeds=[0"], "--set seeds: '[0' is not valid YAML"),
        (["list", "--set", "seeds=a"], "not a list of whole numbers"),
        (["run", ONE, "--set", "device=gpu"], "device: Input should be 'auto', 'cpu' or 'cuda'"),
        (["tune", "Digit"], "unknown dataset of toy 'Digit'"),
        (["tune", "Digits", "plain"], "unknown method of toy 'plain'"),
        (["run", "plain"], "Did you mean 'Plain'?"),
        (["list", "--set", "train.iteration=3"], "Did you mean 'iterations'?"),
        (["list", "--set", "trian.iterations=3"], "unknown place of a run 'trian.iterations'"),
        (["list", "--set", "train.period=3"], "that is the setting p of toy"),
        (["show", "Plain"], "give the name of one"),
        (["table", "toy/table9"], "table9"),
        (["figure", "toy/figure9"], "figure9"),
        (["table", "toy/claims"], "`fedbench claims toy` prints them"),
        (["show", "claims", "--set", "paper=toy"], "`fedbench claims toy` prints them"),
    ],
)
def test_mistakes_end_with_one_line_and_status_2(arguments: list[str], says: str) -> None:
    assert says in error_of(call(*arguments))


def test_tune_writes_the_choice_that_run_uses() -> None:
    result = call("tune", "Digits", "Plain")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("Digits Plain, trial ") == 4
    assert result.stdout.splitlines()[-1] == "config/tuned/toy/Digits.yaml"


def test_doctor_reports() -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    for part in ("fedbench ", "Python ", "device: cpu", "disk: ", "run store: 0 finished runs", "digits"):
        assert part in result.stdout


def test_a_broken_dataset_hides_no_other_from_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("in its own code")

    monkeypatch.setattr(CifarSet, "status", broken)
    result = call("doctor")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.startswith("  ")}
    assert lines["cifar10"].endswith("broken: ZeroDivisionError: in its own code")
    assert "prepared: " in lines["digits"] and "melanoma" in lines


def test_the_installed_command_ends_the_same_way() -> None:
    def run(*arguments: str) -> Any:
        code = "from fedbench.commands.cli import main; main()"
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)

    good = run("list", ONE)
    assert (good.returncode, good.stdout) == (0, f"{ONE}  0/2 runs, not tuned\n")
    bad = run("list", "nothing")
    assert bad.returncode == 2 and bad.stderr.startswith("error: no cell matches") and bad.stdout == ""


def test_a_place_of_a_run_can_be_set_for_a_call_and_is_shown_with_its_layer() -> None:
    """It is another run with another key; of keys that exclude each other the one that is set stays."""
    before, after = (call("show", ONE, *more).stdout for more in ((), ("--set", "train.rounds=2")))
    assert before.splitlines()[1] != after.splitlines()[1], "another key"
    (line,) = [line.split() for line in after.splitlines() if line.startswith("train.rounds ")]
    assert line == ["train.rounds", "2", "this", "call's", "set"]
    assert "train.iterations " not in after and "train.epochs " not in after
    assert "setting p = 2" in before and "defaults of config/papers/toy.yaml" in before


def test_claims_at_a_scale_that_is_none() -> None:
    said = error_of(call("claims", "toy", "--scale", "demmo"))
    assert said.startswith("error: unknown scale 'demmo'. Did you mean 'demo'? Known: ")


def test_a_paper_without_claims_says_so() -> None:
    result = call("claims", "toy")
    assert result.exit_code == 0, result.output
    assert result.stdout == "toy makes no claims: there is no `claims:` in config/papers/toy.yaml\n"


def test_claims_of_all_studies_are_those_of_each_in_order() -> None:
    claim = {"says": "Plain is ahead", "in": ["table1"]}
    claim["better"] = {"method": "Plain", "than": ["Plain_too"], "metric": "test_auc"}  # type: ignore[assignment]
    for key in ("first", "second"):
        write_yaml(Path(f"config/papers/{key}.yaml"), {**PAPER, "title": f"The {key}", "claims": [claim]})
    said = call("claims")
    assert said.exit_code == 0, said.output
    assert said.stdout == call("claims", "first").stdout + call("claims", "second").stdout
    assert "Claims of The first" in said.stdout and "Plain is ahead" in said.stdout


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
