# Everything runs in the environment .venv, which make builds itself; PYTHON and CXX choose other tools.

VENV := .venv
BIN := $(VENV)/bin
PYTEST_OPTIONS ?=
REPRODUCE_OPTIONS ?=
BENCH_OPTIONS ?=
FUZZ_SECONDS ?= 600
FUZZ_OPTIONS ?=
BENCH_VENV := .venv-bench
# The oldest Python with the lowest versions that pyproject.toml allows, and the tests of what uses them.
LOWEST_VENV := .venv-lowest
LOWEST_PYTHON ?= python3.11
LOWEST_TESTS := tests/attacks tests/test_import.py tests/test_plots.py $(patsubst %,tests/estimators/test_%.py,plsa \
	plsa_results lda lda_stream nmf lsa) tests/io/test_models.py tests/data/test_dask.py \
	tests/data/test_shard_writer.py tests/text/test_vectorizer.py \
	$(patsubst %,tests/text/readers/test_%.py,tables text office) tests/retrieval/test_index.py \
	$(patsubst %,tests/cli/test_%.py,app fit search)

# What lint reads: not the runs, pages and scripts that users leave in the same folder.
CODE := src tests tools benchmarks reproductions examples docs/conf.py
PAGES := $(wildcard docs .ci .github .pre-commit-config.yaml ARCHITECTURE.md CHANGELOG.md CITATION.cff CMakeLists.txt CODE_OF_CONDUCT.md \
	CONTRIBUTING.md Makefile README.md SECURITY.md pyproject.toml)

PYTEST := $(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile
# Pages, tools, benchmarks and reproductions of papers.
DOCS_TESTS := tests/project tests/reproductions
# Browser, clusters, killed processes and limits of processes.
APP_TESTS := tests/browser tests/conformance/test_corpora.py tests/data/test_dask.py tests/cli/test_fit_shards_killed.py \
	tests/runs/test_write_killed.py $(patsubst %,tests/attacks/test_%.py,cluster threads interrupt)

# Directories are listed too: their times change when a file is removed.
PACKAGE_SOURCES := $(shell find src -name __pycache__ -prune -o -print) pyproject.toml $(wildcard CMakeLists.txt)

NATIVE := src/polyseme/_native
NATIVE_TESTS := build/native-address/test_kernels build/native-thread/test_kernels
NATIVE_TEST_SOURCES ?= $(wildcard tests/native/*.cpp) $(NATIVE)/dispatch.cpp
NATIVE_TEST_FLAGS := -std=c++17 -O1 -g -Wall -Wextra -pthread
# The instruction sets and their flags, as in CMakeLists.txt.
INSTRUCTION_SETS := baseline
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
INSTRUCTION_SETS += avx2 avx512
NATIVE_TEST_FLAGS += -DPOLYSEME_X86
endif
FLAGS_avx2 := -mavx2 -mfma
FLAGS_avx512 := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512
SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_thread := -fsanitize=thread
ifeq ($(origin CXX),default)
CXX := $(firstword $(foreach compiler,c++ g++ clang++,$(shell command -v $(compiler))))
else
export CXX
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-docs test-app test-all test-lowest coverage lint lint-js docs reproduce bench package browser \
	native-sanitize sanitize fuzz clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.package ## build, then fit topics on a corpus that every install has
	$(BIN)/polyseme demo

test: lint ## lint and the tests of the package
	$(PYTEST) $(patsubst %,--ignore=%,$(DOCS_TESTS) $(APP_TESTS)) $(PYTEST_OPTIONS)

test-docs: $(VENV)/.package $(VENV)/.tools ## the tests of pages, examples, tools, benchmarks and reproductions
	$(PYTEST) $(DOCS_TESTS) $(PYTEST_OPTIONS)

test-app: $(VENV)/.package $(VENV)/.tools ## the tests with a browser, a cluster, and processes that are killed or limited
	$(PYTEST) $(APP_TESTS) $(PYTEST_OPTIONS)

test-all: lint native-sanitize sanitize ## all tests under each instruction set, then the long ones, the sanitizers and the fuzzers
	$(BIN)/python tools/each_instruction_set.py $(PYTEST) $(PYTEST_OPTIONS)
	$(BIN)/python -m pytest -m slow $(PYTEST_OPTIONS)
	$(MAKE) fuzz

test-lowest: $(LOWEST_VENV)/.package ## a part of the tests with the lowest versions of all dependencies
	$(LOWEST_VENV)/bin/python -m pytest -m "not slow" -o filterwarnings=default --numprocesses 2 --dist loadfile \
		$(LOWEST_TESTS) $(PYTEST_OPTIONS)

coverage: $(VENV)/.package $(VENV)/.tools ## all tests but the long ones, with the lines that they miss; fails below 95 %
	$(PYTEST) --cov --cov-report=term $(PYTEST_OPTIONS)

lint: $(VENV)/.package $(VENV)/.tools ## style, spelling, types and docstrings
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/codespell $(CODE) $(PAGES)
	$(BIN)/mypy
	$(BIN)/python tools/check_docstrings.py

lint-js: node_modules/.installed ## format (Prettier) and types (TypeScript) of the page's scripts; needs npm
	node_modules/.bin/prettier --check package.json tsconfig.json "src/polyseme/explore/assets/**/*.js" "tests/explore/scripts/*.js"
	node_modules/.bin/tsc

docs: $(VENV)/.package $(VENV)/.docs ## the documentation as a site, in build/site
	rm -rf build/site
	$(BIN)/python tools/build_site.py build/site
	@echo "Open build/site/index.html"

reproduce: $(VENV)/.package $(VENV)/.tools ## what the papers claim, tried: all of reproductions/ (REPRODUCE_OPTIONS=--quick)
	$(BIN)/python reproductions/run_all.py $(REPRODUCE_OPTIONS)

bench: $(BENCH_VENV)/.package ## the benchmarks beside other packages, small; BENCH_OPTIONS=--full; writes benchmarks/RESULTS.md
	$(BENCH_VENV)/bin/python benchmarks/run_all.py $(BENCH_OPTIONS)

package: $(VENV)/.environment ## sdist and wheels in dist/, tried alone in fresh environments
	$(BIN)/python -m pip install --quiet --group package
	$(BIN)/python tools/check_package.py

browser: ## install Chromium for the browser tests, where that is possible
	@sh tools/install_browser.sh

native-sanitize: $(NATIVE_TESTS) ## the kernels' own test under the address, undefined-behavior and thread sanitizers
	build/native-address/test_kernels
	build/native-thread/test_kernels

sanitize: $(VENV)/.package $(VENV)/.tools ## tests of the compiled modules, and stored cases of the fuzzers, under the same sanitizers
	$(BIN)/python tools/sanitize.py

fuzz: $(VENV)/.package $(VENV)/.tools ## random cases for runs, readers, estimators and texts, for FUZZ_SECONDS
	@$(BIN)/python -m pip install --quiet --group fuzz || echo "Atheris does not install here: no case is guided by coverage."
	$(BIN)/python tests/fuzz all --seconds $(FUZZ_SECONDS) $(FUZZ_OPTIONS)

clean: ## remove all that make has made
	rm -rf $(VENV) $(BENCH_VENV) $(LOWEST_VENV) node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

$(VENV)/.environment:
	@python=$$(sh tools/check_machine.sh) && echo "Python: $$python" && "$$python" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

# Without an isolated environment, the paths of headers stay, and only C++ files that have changed are compiled again.
$(VENV)/.build: pyproject.toml | $(VENV)/.environment
	$(BIN)/python -m pip install --quiet --group build
	@touch $@

$(VENV)/.package: $(VENV)/.environment $(VENV)/.build $(PACKAGE_SOURCES)
	@PYTHON=$(BIN)/python sh tools/check_machine.sh >/dev/null
	$(BIN)/python -m pip install --quiet --no-build-isolation '.[cli]'
	@touch $@

$(VENV)/.tools: pyproject.toml | $(VENV)/.package
	$(BIN)/python -m pip install --quiet --group test --group lint --group docs
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.environment
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

node_modules/.installed: package.json
	npm install --silent --no-package-lock --no-audit --no-fund
	@touch $@

$(LOWEST_VENV)/.package: tools/lowest_versions.py $(PACKAGE_SOURCES)
	@python=$$(PYTHON=$(LOWEST_PYTHON) sh tools/check_machine.sh) && echo "Python: $$python" \
		&& "$$python" -m venv --clear $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(LOWEST_VENV)/bin/python tools/lowest_versions.py > $(LOWEST_VENV)/constraints.txt
	$(LOWEST_VENV)/bin/python -m pip install --quiet --constraint $(LOWEST_VENV)/constraints.txt '.[all]' \
		--group test
	@touch $@

$(BENCH_VENV)/.peers: benchmarks/requirements.txt
	@python=$$(sh tools/check_machine.sh) && echo "Python: $$python" && "$$python" -m venv --clear $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@sed -e 's/ *#.*//' -e '/^$$/d' benchmarks/requirements.txt | while read -r peer; do \
		echo "installing $$peer"; $(BENCH_VENV)/bin/python -m pip install --quiet "$$peer" </dev/null \
			|| echo "$$peer does not install here: it is left out."; \
	done
	@touch $@

$(BENCH_VENV)/.package: $(BENCH_VENV)/.peers $(PACKAGE_SOURCES)
	$(BENCH_VENV)/bin/python -m pip install --quiet '.[all]'
	@touch $@

# One program for each sanitizer, and in it the row functions for each instruction set.
define native_test
build/native-$(1)/test_kernels: $$(NATIVE_TEST_SOURCES) $(INSTRUCTION_SETS:%=build/native-$(1)/rows_%.o) $$(wildcard $(NATIVE)/*.hpp tests/native/*.hpp)
	$$(CXX) $$(NATIVE_TEST_FLAGS) $(SANITIZE_$(1)) -I$(NATIVE) $$(filter %.cpp %.o,$$^) -o $$@

build/native-$(1)/rows_%.o: $(NATIVE)/rows_isa.cpp $$(wildcard $(NATIVE)/*.hpp)
	@mkdir -p $$(@D)
	$$(CXX) $$(NATIVE_TEST_FLAGS) $(SANITIZE_$(1)) $$(FLAGS_$$*) -DPOLYSEME_ISA=$$* -c $$< -o $$@
endef
$(foreach sanitizer,address thread,$(eval $(call native_test,$(sanitizer))))
