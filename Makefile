# make demo    from a fresh clone to a solved puzzle
# make test    everything that CI checks
# make docs    rewrite docs/cli.md from the program
# make site    the documents with an API reference from the docstrings, into build/site
# make results run all studies (IMAGES=folder of pictures) and rewrite docs/results.md; takes an hour or more
# make picture rewrite README.md's pictures and those of docs/method.md from the demo's puzzle
# make format  format the code, apply the linter's fixes
# make clean   remove what the other targets made

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# What an installed package is made of beyond its Python files, which are used in place.
INSTALL_FROM := pyproject.toml $(wildcard hatch_build.py) $(shell find src -name '*.c' -o -name '*.h')
CODE := src tests tools benchmarks $(wildcard hatch_build.py)

.PHONY: demo test lint types docs docs-check site results picture format clean browser
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

$(VENV)/installed: $(INSTALL_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-dev: $(INSTALL_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) demo-out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete
