# make study: tune on GPU 0, or on the CPU where there is none. make test: the tests. See README.md.
VENV  := .venv
BIN   := $(VENV)/bin
EXTRA := $(shell sh scripts/cuda_extra.sh)
ARGS  :=

INPUTS    := pyproject.toml constraints-dev.txt
INSTALLED := $(VENV)/.installed$(EXTRA:%=-%)
DEVELOP   := $(VENV)/.installed-dev

.PHONY: study test test-durations test-slow check docs nvrtc-all conformance fuzz model-report profiles peer-cpu search-contest kills domains headers lowest gpu wheel clean

study: $(INSTALLED)
	$(BIN)/lbmtune study $(if $(filter --device --device=% -d,$(ARGS)),,--device $(if $(EXTRA),0,cpu)) $(ARGS)

# bytecode is kept even where the environment says otherwise: the tests begin hundreds of processes
test test-slow: export PYTHONDONTWRITEBYTECODE :=
test: $(DEVELOP)
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(ARGS)

# the same, and the seconds that each file takes are kept: the longest files begin first from then on
test-durations: ARGS += --store-durations
test-durations: test

# what make test leaves out: every sample of the thinned tests, and everything with everything
test-slow: $(DEVELOP)
	$(BIN)/python -m pytest --numprocesses 3 -m slow $(ARGS)

check: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# reference pages, pictures and the table of published speeds from the code, and the documents as a site in build/site
docs: $(DEVELOP)
	$(BIN)/python -m scripts.docs.reference
	$(BIN)/python -m scripts.docs.pictures
	$(BIN)/python -m scripts.recorded.against_published --docs
	$(BIN)/mkdocs build --quiet --strict

# every legal combination of the catalogue's knobs through NVRTC (make test compiles one of each kind)
nvrtc-all: $(DEVELOP)
	$(BIN)/python -m scripts.nvrtc_all $(ARGS)

# everything that needs a GPU: its tests, the machine description, the studies behind the recorded sets
gpu: $(DEVELOP) $(INSTALLED)
	$(BIN)/python -m scripts.gpu build/gpu $(ARGS)

# damaged and hostile input of all kinds: each ends in one short sentence (make test: 200 of them)
fuzz: $(DEVELOP)
	$(BIN)/python -m scripts.fuzz $(ARGS)

# every pair of choices of the catalogue against the oracle, on the host shim and on the CPU (make test: a part)
conformance: $(DEVELOP)
	$(BIN)/python -m scripts.conformance $(ARGS)

domains: $(DEVELOP)
	$(BIN)/python -m scripts.random_domains $(ARGS)

# exported CUDA headers on the host shim, and CPU objects, on random domains: each is right or refuses them
headers: $(DEVELOP)
	$(BIN)/python -m scripts.random_headers $(ARGS)
	$(BIN)/python -m scripts.random_headers --cpu $(ARGS)

# how well the model predicts the recorded sets, and what each of its terms is worth
model-report: $(DEVELOP)
	$(BIN)/python -m scripts.recorded.model_report $(ARGS)

# the ladders that are kept, held against the model
profiles: $(DEVELOP)
	$(BIN)/python -m scripts.recorded.profiles $(ARGS)

# our CPU kernels beside lbmpy's generated ones, interleaved in one process
peer-cpu: $(VENV)/.installed-peer
	$(BIN)/python -m scripts.measurements.peer_cpu $(ARGS)

# all search strategies on the recorded sets; ARGS=--rivals plays those of others anew
search-contest: export OMP_NUM_THREADS := 1
search-contest: export OPENBLAS_NUM_THREADS := 1
search-contest: $(VENV)/.installed-contest
	nice -n 19 $(BIN)/python -m scripts.contest --write $(ARGS)

# studies that are killed at random moments and resumed: what is lost, doubled or left behind
kills: $(DEVELOP)
	$(BIN)/python -m scripts.kills $(ARGS)

# the tests of records, files and command lines with the least versions of all dependencies, in build/lowest
lowest: $(DEVELOP)
	$(BIN)/python -m scripts.lowest build/lowest $(ARGS)

wheel: $(DEVELOP)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist

$(VENV)/.installed: $(INPUTS)
	@sh scripts/environment.sh $(VENV)
	@touch $@

$(VENV)/.installed-%: $(INPUTS)
	@sh scripts/environment.sh $(VENV) $*
	@touch $@
