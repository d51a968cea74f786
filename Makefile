# make demo    from a fresh clone to a solved puzzle
# make test    everything that CI checks
# make docs    rewrite docs/cli.md from the program
# make site    the documents with an API reference from the docstrings, into build/site
# make results run all studies (IMAGES=folder of pictures) and rewrite docs/results.md; takes an hour or more
# make picture rewrite README.md's pictures and those of docs/method.md from the demo's puzzle
# make format  format the code, apply the linter's fixes
# make lock    write locks/*.txt anew for pyproject.toml; UPGRADE=--upgrade takes newer versions where there are any
# make audit   look the locked packages up in a database of known vulnerabilities: pypi.org, or AUDIT='-s osv' osv.dev
# make sbom    list what is installed, and our weights, as build/sbom-demo.json and build/sbom-test.json (CycloneDX)
# make clean   remove what the other targets made
#
# Packages are installed by the hashes in locks/; LOCKED=0 takes any version that pyproject.toml allows instead.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TOOLS := $(VENV)-tools
JOBS ?= 2
LOCKED ?= 1
# The one package without a hash: builds of the same version for CPU, CUDA and here are different files.
TORCH ?= torch==2.13.0
# What an installed package is made of beyond its Python files, which are used in place.
INSTALL_FROM := pyproject.toml $(wildcard hatch_build.py locks/*.txt) $(shell find src -name '*.c' -o -name '*.h')
CODE := src tests tools benchmarks $(wildcard hatch_build.py)

.PHONY: demo test lint types docs docs-check site results picture format clean browser lock audit sbom
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/jigsync demo --out demo-out

test: lint types docs-check site browser
	$(BIN)/pytest -n $(JOBS)

# For the tests in a real browser; where it cannot be installed they are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { \
	        apt-get install -qq --yes --no-install-recommends chromium >/dev/null 2>&1 || \
	        { apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium >/dev/null; }; }; } || \
	    echo "There is no chromium and it cannot be installed here: the browser tests will be skipped."

lint: $(VENV)/installed-dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(VENV)/installed-dev
	$(BIN)/mypy

docs-check: $(VENV)/installed-dev
	$(BIN)/python tools/cli_reference.py --check

docs: $(VENV)/installed-dev
	$(BIN)/python tools/cli_reference.py --write

# A warning is an error (mkdocs.yml); what the theme has to say about other products is not asked for.
site: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

results: $(VENV)/installed-dev
	$(BIN)/jigsync reproduce all $(if $(IMAGES),--images $(IMAGES)) --workers $(JOBS) --out build/studies
	$(BIN)/python tools/results.py --take build/studies

picture: demo browser $(VENV)/installed-dev
	$(BIN)/jigsync show demo-out/puzzle --solution demo-out/solution.json --truth demo-out/truth.json --gauge best4 \
	    --animate docs/images/demo.webp
	$(BIN)/python tools/method_pictures.py
	$(BIN)/pytest -q tests/browser -k put_together
	$(BIN)/python -c "from PIL import Image; \
	    Image.open('build/screenshots/00-workbench.png').convert('RGB').save('docs/images/workbench.jpg', quality=86)"

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "JigSync needs Python 3.11 or newer, and found no python3."; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "JigSync needs Python 3.11 or newer. Got $$($(PYTHON) --version) instead; set PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

# $(call install,lock,extra): the packages of a lock by their hashes, then this one without looking for others.
ifeq ($(LOCKED),0)
install = $(PIP) install --editable '.$(2)'
else
define install
$(PIP) install --require-hashes --no-deps -r locks/$(1).txt || \
    { echo "The locked packages cannot be installed here; LOCKED=0 takes what pyproject.toml allows instead."; exit 1; }
{ command -v "$${CC:-cc}" || command -v gcc || command -v clang; } >/dev/null || \
    $(PIP) install --require-hashes --no-deps -r locks/compiler.txt
$(if $(2),$(call install-torch))
$(PIP) install --no-deps --no-build-isolation --editable .
endef
endif

# Without its libraries, which a build for the CPU does not have; one for CUDA does not start like that and gets them.
define install-torch
$(PIP) install --no-deps $(TORCH)
@$(BIN)/python -W ignore -c 'import torch' 2>/dev/null || { \
    echo "This $(TORCH) is not a build for the CPU: its own libraries are installed too, without hashes."; \
    $(PIP) install $(TORCH); }
endef

$(VENV)/installed: $(INSTALL_FROM) | $(BIN)/python
	$(call install,demo,)
	@touch $@

$(VENV)/installed-dev: $(INSTALL_FROM) | $(BIN)/python
	$(call install,test,[dev])
	@touch $@ $(VENV)/installed

# ---------------------------------------------------------------------------------------------- supply chain

$(TOOLS)/installed: locks/tools.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps -r locks/tools.txt
	@touch $@

# For Python 3.11 and newer on every platform at once; pins that still fit stay.
COMPILE = $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
    --custom-compile-command 'make lock' --excludes locks/without-cuda.txt --no-emit-package torch

lock: $(TOOLS)/installed
	$(COMPILE) pyproject.toml locks/build.in --output-file locks/demo.txt
	$(COMPILE) pyproject.toml locks/build.in --extra dev --constraint locks/demo.txt --output-file locks/test.txt
	$(COMPILE) locks/compiler.in --output-file locks/compiler.txt
	$(COMPILE) locks/tools.in --output-file locks/tools.txt

# Strict: a package that could not be looked up is a failure, not a clean result.
audit: $(TOOLS)/installed
	$(TOOLS)/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off $(AUDIT) \
	    $(foreach lock,$(wildcard locks/*.txt),$(if $(findstring without-cuda,$(lock)),,-r $(lock)))

sbom: $(VENV)/installed-dev
	$(BIN)/python tools/sbom.py locks/demo.txt --out build/sbom-demo.json
	$(BIN)/python tools/sbom.py locks/test.txt --out build/sbom-test.json

clean:
	rm -rf $(VENV) $(TOOLS) demo-out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete
