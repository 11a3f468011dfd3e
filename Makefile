# Evenhand. `make` lists what there is; `make demo` and `make test` need nothing but Go, npm and a JVM with Maven.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := bin/evenhand
GO ?= go
export CGO_ENABLED ?= 0

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | column -t -s $$'\t'

build: ## build bin/evenhand
	@mkdir -p bin
	$(GO) build -trimpath -o $(BIN) ./cmd/evenhand

engine: ## fetch the embedded store's library into the user's cache (once, 180 MB)
	@tools/engine/fetch.sh

up: build engine ## run everything on this machine until Ctrl-C
	@$(BIN) up

demo: build engine ## start the stack in a temporary folder, send the examples, print bias rates (KEEP=1 leaves it running)
	@KEEP=$(KEEP) tools/demo.sh $(BIN)

test: ## every suite, with the seconds of each; exactly what continuous integration runs
	@tools/test.sh

race: ## the packages with goroutines under the race detector
	CGO_ENABLED=1 $(GO) test -race ./audit/... ./detectors/... ./pipeline/... ./ingest/... ./sources/... ./sinks/... ./internal/...

fuzz: ## every fuzz target, FUZZTIME (default 30s) each
	@tools/fuzz.sh $${FUZZTIME:-30s}

bench: build engine ## measure speed and memory; prints the figures of docs/benchmarks.md
	@tools/bench.sh

check: ## vet, lint, rule packs
	$(GO) vet ./...
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "golangci-lint is not installed: only vet ran"; fi
	$(GO) run ./cmd/evenhand rules lint
	$(GO) run ./cmd/evenhand rules test

lint: check ## the same as check

generate: ## rewrite generated files and golden files
	$(GO) generate ./...

clean: ## delete what was built
	rm -rf bin

.PHONY: help build engine up demo test race fuzz bench check lint generate clean
