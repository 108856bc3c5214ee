# Everything a newcomer needs: `make table1`, `make test`. `make help` lists the rest.

VENV     ?= .venv
CORES    ?= all
BIN      := $(abspath $(VENV))/bin
PYTHONS  := python3 python3.13 python3.12 python3.11
PYTHON   ?= $(shell for p in $(PYTHONS); do $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' \
              2>/dev/null && echo $$p && break; done)
INSTALLED := $(VENV)/.installed
# tests wait for processes that they start, so that half as many workers again as cores keep these busy
WORKERS  ?= $(shell $(PYTHON) -c 'import os; print(max(2, (os.cpu_count() or 1) * 3 // 2))')

QUIET    := $(if $(V),,--quiet all)

export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup table1 tables report docs numbers picture gallery test test-fast paper-scale gpu test-cluster bare-debian chaos error-rates lint format lock clean

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(INSTALLED)  ## make .venv and install the pinned versions (once)

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python >= 3.11 with ensurepip found; give one: make setup PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

table1: scale := $(or $(SCALE),demo)
table1: $(INSTALLED)  ## train and build Table 1 of the configured paper at scale demo (SCALE=reduced or paper for more, V=1 for each job)
	@$(BIN)/snakemake $(QUIET) --cores $(CORES) tables/table1.tex tables/table1.md --config scale=$(scale)
	@echo; $(BIN)/fedbench show table1 --scale $(scale) $(if $(V),--notes)
	@echo "Table 1 is in tables/table1.tex (also .csv and .md)."

tables: $(INSTALLED)  ## all tables and figures of the configured paper, at the configured scale or SCALE
	$(BIN)/snakemake --cores $(CORES) $(if $(SCALE),--config scale=$(SCALE))

report: $(INSTALLED)  ## all tables, figures, curves and configurations as one page: report.html
	$(BIN)/snakemake --cores $(CORES) report.html $(if $(SCALE),--config scale=$(SCALE))

test: $(INSTALLED)  ## linters, types and the whole test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(INSTALLED)  ## linters, types and unit tests: what needs no LaTeX, browser or scheduler
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/unit tests/workflow/test_style.py

paper-scale: $(INSTALLED)  ## train for HOURS (8) at the papers' own scale what reproduced/paper lacks, and add it there
	$(BIN)/python benchmarks/paper_scale.py --hours $(or $(HOURS),8)

gpu: $(INSTALLED)  ## on a machine with a GPU, for HOURS (1): its tests, benchmarks, then what paper-scale trains, and an archive
	$(BIN)/python benchmarks/paper_scale.py --hours $(or $(HOURS),1) --device cuda --checks --archive gpu-runs.tar.gz

test-cluster: $(INSTALLED)  ## the cluster's profiles on a SLURM of one node, where SLURM is installed
	FEDBENCH_TEST_CLUSTER=1 $(BIN)/python -m pytest -rs tests/cluster

bare-debian:  ## as root, where debootstrap is installed: the README's quick start on a bare Debian 12, in build/debian
	.ci/bare-debian

chaos: $(INSTALLED)  ## kill a workflow 20 times at random moments; the table must be that of an undisturbed one
	FEDBENCH_KILLS=20 $(BIN)/python -m pytest tests/faults/test_checkpoints.py -k undisturbed

error-rates: $(INSTALLED)  ## how often verdicts are wrong, simulated with 100,000 draws a case
	FEDBENCH_DRAWS=100000 $(BIN)/python -m pytest -s tests/unit/results -k rates

lint: $(INSTALLED)  ## linters and types only
	$(BIN)/python -m pytest tests/workflow/test_style.py

format: $(INSTALLED)  ## format Python and Snakemake files
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt workflow

lock: $(INSTALLED)  ## compile requirements.lock again from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --upgrade \
	  --quiet --custom-compile-command "make lock" --output-file requirements.lock

docs: $(INSTALLED)  ## the documentation and all reference results as a site, in site/; a dead link is an error
	$(BIN)/python -c "import material" 2>/dev/null || $(BIN)/python -m pip install --quiet "mkdocs-material>=9.6"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file .github/mkdocs.yml  # --quiet would hide the warnings that --strict counts
	cd site && $(BIN)/fedbench report  # of reproduced/ alone: there is no project in site/
	$(BIN)/python docs/pack.py site/report.html

numbers: $(INSTALLED)  ## tables and generated pages of README.md and docs/; names each sentence whose numbers are others
	$(BIN)/python benchmarks/documents.py

picture: $(INSTALLED)  ## the picture of the README, from reproduced/ and the published numbers
	$(BIN)/python benchmarks/picture.py

gallery: $(INSTALLED)  ## the built examples in tables/gallery and figures/gallery, and the page that shows them, from reproduced/
	$(BIN)/python benchmarks/gallery.py

clean:  ## remove what the workflow built; keeps data/ and the trained runs in results/
	rm -rf logs report.html
	find tables figures -mindepth 1 -maxdepth 1 ! -name gallery -exec rm -rf {} +
