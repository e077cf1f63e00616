.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINUTES ?= 5
unexport PYTHONDONTWRITEBYTECODE  # without bytecode, every process of the tests would compile all modules

.PHONY: help demo test quick uncompiled check bench fuzz kills docs dist clean

# Workers fill the cores: threads of BLAS and OpenMP beside them would only wait for each other.
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TREEDOT_COMPILE=$(COMPILE) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
COMPILE := always  # whatever the work, so that the tests are those of compiled code
# Of the readers, those of brackets and of the units of source code have compiled code.
CORE := $(addprefix tests/,trees readers/brackets readers/code/test_units.py _runtime/test_hashing.py vectors/dense vectors/sparse vectors/test_encoders.py vectors/test_spec.py kernels)

help: ## List the tasks
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-11s%s\n", $$1, $$2}'

# An environment with treedot, and with one of its extras.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
$(BIN)/treedot: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	@touch $@
EXTRAS := $(addprefix $(VENV)/,dev docs dist)
$(EXTRAS): $(VENV)/%: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[$*]'
	@touch $@ $(BIN)/treedot

demo: $(BIN)/treedot ## Make a tour with pictures: vectors, questions, near-duplicates; writes demo/index.html
	$(BIN)/treedot demo -o demo

check: $(VENV)/dev ## Style, types, layers and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/check_docstrings.py

test: check ## All checks, all tests, the examples of the documentation
	MPLBACKEND=agg $(PYTEST)

quick: $(VENV)/dev ## All tests but those marked slow, with fewer generated examples
	MPLBACKEND=agg $(PYTEST) -m "not slow" --hypothesis-profile=quick

uncompiled: COMPILE := never
uncompiled: $(VENV)/dev ## The tests of the core without compiled code
	$(PYTEST) -m "not large and not corpus" -W "ignore:overflow:RuntimeWarning" $(CORE)

bench: $(VENV)/dev ## Measure speed and memory; writes results/
	$(BIN)/python -m benchmarks

fuzz: $(VENV)/dev ## Give damaged and hostile input to everything for MINUTES=5; failures go to fuzz-failures/
	$(BIN)/python -m fuzz --minutes $(MINUTES)

kills: $(VENV)/dev ## Kill everything that writes files, 200 times, and look at what is left
	$(BIN)/python -m fuzz.kills

docs: $(VENV)/docs ## Build the documentation as a site; writes build/docs/index.html
	rm -rf build/docs docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

dist: $(VENV)/dist ## Check the release files, build the source distribution and the wheel, try both; writes dist/
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/hadolint Dockerfile
	rm -rf build/lib dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/check_dist.py dist
	$(BIN)/python .ci/try_wheel.py dist

clean: ## Remove what the tasks made
	rm -rf $(VENV) build demo dist docs/generated fuzz-failures results src/*.egg-info \
	  .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
