"""Container files, the bare Debian and the documentation install with the same few steps."""

from __future__ import annotations

import re
import tomllib

from projects import ROOT

README = (ROOT / "README.md").read_text()
DOCKER = (ROOT / "containers/Dockerfile").read_text()
APPTAINER = (ROOT / "containers/fedbench.def").read_text()
BARE = (ROOT / ".ci/bare-debian").read_text()


def test_all_install_the_same_debian_packages() -> None:
    installed = [
        re.findall(r"--no-install-recommends (.+?)(?: \\)?$", text, flags=re.M)
        for text in (DOCKER, APPTAINER)
    ]
    packages = re.search(r"^packages=\((.+)\)$", BARE, flags=re.M)
    assert packages and installed == [[packages[1]], [packages[1]]]
    assert "FROM debian:12" in DOCKER and "From: debian:12" in APPTAINER and "bookworm" in BARE


def test_all_take_the_steps_of_the_readme() -> None:
    """`make table1` is what the README begins with; it calls `make setup`, which is all that an image needs."""
    assert "```bash\nmake table1\n```" in README
    assert "RUN make setup\n" in DOCKER and 'CMD ["make", "table1"]' in DOCKER
    assert re.search(r"^    make setup$", APPTAINER, flags=re.M)
    assert BARE.rstrip().endswith("make --directory /fedbench table1")
    assert re.search(r"^table1: \$\(INSTALLED\)", (ROOT / "Makefile").read_text(), flags=re.M)


def test_the_apptainer_image_has_what_setup_reads() -> None:
    copied = dict(re.findall(r"^    (\S+) /fedbench/(\S+)$", APPTAINER, flags=re.M))
    assert all(name == at and (ROOT / name).exists() for name, at in copied.items())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, wheel = settings["project"], settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        "Makefile",
        "requirements.lock",
        "pyproject.toml",
        "src",
        project["readme"],
        *project["license-files"],
        *wheel["force-include"],
    }
    assert set(copied) == needed


def test_what_is_built_here_stays_out_of_the_docker_image() -> None:
    ignored = [
        (ROOT / name).read_text().splitlines()
        for name in (".gitignore", "containers/Dockerfile.dockerignore")
    ]
    git, docker = (
        {
            line.lstrip("!").strip("/").removeprefix("**/")
            for line in lines
            if line and not line.startswith("#")
        }
        for lines in ignored
    )
    assert docker == git
