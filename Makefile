# make, or make help, prints the targets
VENV  := .venv
BIN   := $(VENV)/bin
EXTRA := $(shell sh scripts/cuda_extra.sh)
ARGS  :=

INPUTS    := pyproject.toml constraints-dev.txt
INSTALLED := $(VENV)/.installed$(EXTRA:%=-%)
DEVELOP   := $(VENV)/.installed-dev

.PHONY: help study test test-landing test-durations test-slow test-peer check docs nvrtc-all conformance fuzz model-report profiles peer-cpu search-contest kills domains headers lowest gpu wheel clean

help:  ## print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-16s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

study: $(INSTALLED)  ## tune on GPU 0, or on the CPU where there is none
	$(BIN)/lbmtune study $(if $(filter --device --device=% -d,$(ARGS)),,--device $(if $(EXTRA),0,cpu)) $(ARGS)

# bytecode is kept even where the environment says otherwise: the tests begin hundreds of processes
test test-landing test-durations test-slow: export PYTHONDONTWRITEBYTECODE :=
SPREAD := --numprocesses 3 --dist loadfile --no-loadscope-reorder

test: $(DEVELOP)  ## the tests of every day (ARGS="-k NAME": some of them)
	$(BIN)/python -m pytest $(SPREAD) -m "not slow and not landing" $(ARGS)

test-landing: $(DEVELOP)  ## the tests that take longer, and run before a change lands
	$(BIN)/python -m pytest $(SPREAD) -m "landing and not slow" $(ARGS)

# tests share what the first of them computes; without those for landings another test comes first, and takes that time
test-durations: $(DEVELOP)  ## all tests but slow ones, and keep their processor seconds, from which those of every day follow
	$(BIN)/python -m pytest $(SPREAD) --store-durations anew
	$(BIN)/python -m pytest $(SPREAD) --store-durations longer -m "not slow and not landing"

test-slow: $(DEVELOP)  ## what both make test and test-landing leave out: every sample of the thinned tests
	$(BIN)/python -m pytest --numprocesses 3 -m slow $(ARGS)

check: $(DEVELOP)  ## ruff, mypy --strict and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(DEVELOP)  ## reference pages, pictures and tables from the code; the site in build/site
	$(BIN)/python -m scripts.docs.reference
	$(BIN)/python -m scripts.docs.pictures
	$(BIN)/python -m scripts.recorded.against_published --docs
	$(BIN)/mkdocs build --quiet --strict

nvrtc-all: $(DEVELOP)  ## every legal combination of knobs through NVRTC
	$(BIN)/python -m scripts.nvrtc_all $(ARGS)

gpu: $(DEVELOP) $(INSTALLED)  ## everything that needs a GPU: tests, machine description, recorded studies
	$(BIN)/python -m scripts.gpu build/gpu $(ARGS)

fuzz: $(DEVELOP)  ## 5,000 damaged and hostile inputs
	$(BIN)/python -m scripts.fuzz $(ARGS)

conformance: $(DEVELOP)  ## every pair of knob values against the oracle, on the host shim and the CPU
	$(BIN)/python -m scripts.conformance $(ARGS)

domains: $(DEVELOP)  ## kernels of all families on 2,000 random domains
	$(BIN)/python -m scripts.random_domains $(ARGS)

headers: $(DEVELOP)  ## exported CUDA headers and CPU objects on random domains
	$(BIN)/python -m scripts.random_headers $(ARGS)
	$(BIN)/python -m scripts.random_headers --cpu $(ARGS)

model-report: $(DEVELOP)  ## predictions beside the recorded sets, and the worth of each term
	$(BIN)/python -m scripts.recorded.model_report $(ARGS)

profiles: $(DEVELOP)  ## recorded loss breakdowns beside the model
	$(BIN)/python -m scripts.recorded.profiles $(ARGS)

peer-cpu: $(VENV)/.installed-peer  ## our CPU kernels beside those of lbmpy, interleaved in one process
	$(BIN)/python -m scripts.measurements.peer_cpu $(ARGS)

test-peer: $(DEVELOP) $(VENV)/.installed-peer  ## tests with lbmpy, which is installed for them
	$(BIN)/python -m pytest -m peer $(ARGS)

search-contest: export OMP_NUM_THREADS := 1
search-contest: export OPENBLAS_NUM_THREADS := 1
search-contest: $(VENV)/.installed-contest  ## all search strategies on the recorded sets (ARGS=--rivals: others too)
	nice -n 19 $(BIN)/python -m scripts.contest --write $(ARGS)

kills: $(DEVELOP)  ## studies killed at random moments and resumed
	$(BIN)/python -m scripts.kills $(ARGS)

lowest: $(DEVELOP)  ## tests with the least versions of all dependencies, in build/lowest
	$(BIN)/python -m scripts.lowest build/lowest $(ARGS)

wheel: $(DEVELOP)  ## the wheel, in dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## remove .venv, build and dist
	rm -rf $(VENV) build dist

$(VENV)/.installed: $(INPUTS)
	@sh scripts/environment.sh $(VENV)
	@touch $@

$(VENV)/.installed-%: $(INPUTS)
	@sh scripts/environment.sh $(VENV) $*
	@touch $@
