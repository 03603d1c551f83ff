# Two commands: `make quickstart` (train SEED on this machine) and `make test`. Both install what they need.
VENV ?= .venv
PY := $(VENV)/bin/python
# One OpenMP thread a process: the tests run several processes side by side.
export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY = 1
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help quickstart test test-all mutants lint docs clean

help:
	@echo "make quickstart   install, then stage 1, SEED and GRPO on the embedded ALFWorld problem (under 10 minutes)"
	@echo "make test         install all test dependencies, then run the test suite"
	@echo "make test-all     the same with the tests that take more than a minute each"
	@echo "make mutants      put a small sample of faults into the core; the tests must notice them"
	@echo "make lint         ruff, codespell, vermin and mypy"
	@echo "make docs         rebuild the generated pages under docs/"
	@echo "make clean        remove $(VENV) and build output"

quickstart:
	@scripts/install.sh $(VENV) quickstart
	$(PY) -m seed_trainer.quickstart --output_dir runs/quickstart

test:
	@scripts/install.sh $(VENV) test
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m "not slow" $(PYTEST_ARGS)

test-all:
	@scripts/install.sh $(VENV) test
	$(PY) -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

# A run over many: make mutants MUTANTS=300
MUTANTS ?= 24
mutants:
	@scripts/install.sh $(VENV) test
	$(PY) -m scripts.mutation --sample $(MUTANTS)

lint:
	@scripts/install.sh $(VENV) lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/vermin -q --no-tips --violations -t=3.10- seed_envs benchmarks
	$(VENV)/bin/mypy seed_envs seed_trainer benchmarks tests scripts examples

docs:
	@scripts/install.sh $(VENV) quickstart
	$(PY) scripts/build_env_docs.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
