# `make demo` and `make test` are all a newcomer needs; both work on a bare machine with Python ≥ 3.10 and make.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.ready
# Where tools that tests need are built once and kept: kubectl, if the machine has none.
TOOLS   ?= $(HOME)/.cache/paddlecloud/tools
export PATH := $(PATH):$(TOOLS)

.PHONY: setup demo test lint rendered bench soak format clean help

help:
	@echo "make demo    bring the platform up, cache data, train two real models, serve one, show what happened"
	@echo "make test    every test that needs no cluster"
	@echo "make lint    ruff, mypy, layer contracts"
	@echo "make bench   every figure we claim, recomputed; make bench-cluster beside a real Kubernetes"
	@echo "make soak    the long versions: kill rounds, fuzzing, large sets"
	@echo "make cluster, make test-cluster    a real Kubernetes on this machine, and every test that needs one (root)"

setup: $(STAMP)

$(STAMP): pyproject.toml suites/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable . --editable ./suites --group test --group lint
	@touch $@

demo: setup
	@$(BIN)/python examples/demo.py

# Files are shared out to the workers, whole ones, so that what the tests of a file share is made once. In the order of
# their names: the long ones, in tests/embedded, come before the many short ones that fill up the rest. One more than the
# two cores that this is meant for: tests wait for timers as often as for processors.
WORKERS ?= 3

test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What is made and checked in: from the chart deploy/ and what tests compare it with, from the kinds docs/kinds.
rendered: setup
	@$(BIN)/python charts/rendered.py
	@$(BIN)/python suites/rendered.py
	@$(BIN)/python docs/tools/kind_pages.py
	@$(BIN)/python docs/tools/component_files.py

bench: setup
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group bench
	$(BIN)/python -m bench

soak: setup
	PDC_SOAK=1 $(BIN)/python -m pytest -m soak --timeout 3600

clean:
	rm -rf $(VENV) .cache dist build

# A real Kubernetes on this machine (docs/design/cluster-fixture.md): needs root; built once, then ready in seconds.
# `make cluster NODES=3 WITH="volcano knative juicefs argo"` starts more of it.
CLUSTER := PYTHONPATH=tests $(BIN)/python -m cluster.harness
NODES   ?= 1
WITH    ?=
ADDONS   = $(addprefix --with ,$(WITH))

.PHONY: cluster cluster-down test-cluster bench-cluster

cluster: setup
	@$(CLUSTER) up --nodes $(NODES) $(ADDONS)

cluster-down: setup
	@$(CLUSTER) down

# `make test-cluster TIER=core` is what CI runs, `make test-cluster PART=data` one part of the full tier (docs/full-tier.md).
# `LANES=2` runs two parts of it at a time, each on a cluster of its own, or CI's choice on two clusters.
# `ON=~/.kube/config` takes the cluster that file names, which must pull our images from somewhere, instead of starting one.
TIER   ?= full
PART   ?=
LANES  ?= 1
PLAYED := tests/cluster tests/scenarios tests/conformance

test-cluster: setup
ifdef ON
	PDC_CLUSTER=1 PDC_KUBECONFIG=$(ON) $(BIN)/python -m pytest $(PLAYED) -m "$(if $(filter core,$(TIER)),core and) not lifecycle"
else
	@PYTHONPATH=tests $(BIN)/python -m cluster.tier $(TIER) $(PART) --lanes $(LANES)
endif

# Kubernetes' own conformance tests on the embedded platform, or on the cluster of ON=KUBECONFIG; built once, in minutes.
# A run of all writes docs/conformance.md; `make test-conformance FOCUS="CronJob"` runs a few of them (with KEEP=1 the page then
# says how they ended), `TIER=core` those of tests/e2e/core.yaml, in two minutes once they are built.
.PHONY: test-conformance
test-conformance: setup
	PYTHONPATH=tests $(BIN)/python -m e2e $(if $(FOCUS),--focus '$(FOCUS)' $(if $(KEEP),--keep),$(if $(filter core,$(TIER)),--core)) $(if $(ON),--on $(ON))

# Argo's own examples and end-to-end workflows on the embedded platform, or on the cluster of ON=KUBECONFIG that has the add-on
# argo, in some twenty minutes. Writes docs/argo-examples.md; `make test-argo NAMES="steps coinflip"` runs a few of them.
.PHONY: test-argo
test-argo: setup
	PYTHONPATH=tests $(BIN)/python -m argo.examples $(NAMES) $(if $(ON),--on $(ON))

# The embedded platform beside kube-apiserver + etcd, kubelet + containerd and Argo; pipelines beside Kubeflow's backend.
bench-cluster: setup
	PDC_CLUSTER=1 $(BIN)/python -m bench cluster_api workflows pipelines
