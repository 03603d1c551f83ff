# Two commands: `make quickstart` (train SEED on this machine) and `make test`. Both install what they need.
VENV ?= .venv
PY := $(VENV)/bin/python
# One OpenMP thread a process: the tests run several processes side by side.
export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY = 1
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help quickstart quickstart-lm test test-all mutants lint docs clean

help:
	@echo "make quickstart   install, then stage 1, SEED and GRPO on the embedded ALFWorld problem (under 10 minutes)"
	@echo "make quickstart-lm  the same steps with a real language model of 135M weights, cloned first"
	@echo "make test         install all test dependencies, then run the test suite"
	@echo "make test-all     the same with the tests that take more than a minute each"
	@echo "make mutants      put a small sample of faults into the core; the tests must notice them"
	@echo "make lint         ruff, codespell, vermin and mypy"
	@echo "make docs         rebuild the generated pages under docs/"
	@echo "make clean        remove $(VENV) and build output"

quickstart:
	@scripts/install.sh $(VENV) quickstart
	$(PY) -m seed_trainer.quickstart --output_dir runs/quickstart

# The RL starts early on purpose: the clone after twenty steps of eighty wins about half of its games, which leaves RL something to do.
LM := runs/quickstart-lm
CLONING := --use_peft true --lora_r 16 --lora_alpha 32 --lora_target_modules all-linear --dtype bfloat16 --use_cpu \
	--bf16 false --gradient_checkpointing false --learning_rate 1e-3 --lr_scheduler_type linear \
	--warmup_steps 3 --per_device_train_batch_size 8 --max_steps 80 --validation_share 0 --max_length 1000 \
	--save_strategy steps --save_steps 10 --report_to none --logging_steps 2
quickstart-lm:
	@scripts/install.sh $(VENV) quickstart
	$(VENV)/bin/pip install -q "gguf>=0.10" "peft>=0.13"
	$(PY) -m seed_trainer fetch smollm2 --output_dir $(LM)/smollm2
	$(PY) -m seed_trainer data --env_id seed/EZPoints-v0 --env_profile compact-text --target actions --slips 0.15 \
		--tasks 1500 --repeats 1 --output_dir $(LM)/data
	$(PY) -m seed_trainer sft --data $(LM)/data --model_name_or_path $(LM)/smollm2 $(CLONING) --output_dir $(LM)/clone
	[ -d $(LM)/clone-merged ] || $(PY) -m seed_trainer merge $(LM)/clone/checkpoint-20 --output_dir $(LM)/clone-merged
	$(PY) -m seed_trainer rl --config smollm2_cpu --method vanilla --output_dir $(LM)/before-rl
	for method in seed grpo; do $(PY) -m seed_trainer rl --config smollm2_cpu --method $$method \
		--output_dir $(LM)/$$method || exit 1; done

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
