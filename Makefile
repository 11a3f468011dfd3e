# Evenhand. `make` lists what there is; `make demo` needs Go and npm; `make test` a JDK with Maven, curl, gcc and Python, too.
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

demo: build engine ## start the stack in a temporary folder, send the examples and a simulated month, print bias rates and the breach (KEEP=1 leaves it running)
	@$(GO) build -trimpath -o bin/history ./tools/history
	@KEEP=$(KEEP) tools/demo.sh $(BIN) bin/history

test: ## every suite, with the seconds of each; exactly what continuous integration runs
	@tools/test.sh

race: ## the packages with goroutines under the race detector
	CGO_ENABLED=1 $(GO) test -race ./audit/... ./detectors/... ./pipeline/... ./ingest/... ./sources/... ./sinks/... ./retry/... ./alarm/... ./remediation/... ./internal/...

fuzz: ## every fuzz target, FUZZTIME (default 30s) each
	@tools/fuzz.sh $${FUZZTIME:-30s}

bench: build engine ## measure speed and memory; prints the figures of docs/benchmarks.md
	@tools/bench.sh

bench-scan: ## the scanner on 1,000 rules, beside other engines when PEERS names the folder that bench/scan/peers/setup.sh built
	@nice $(GO) run ./bench/scan -peers "$(PEERS)"

sim: ## alarms on made-up traffic of 1,920 cells: false alarms a day, hours until a rise is found, beside naive rules (SEEDS=3)
	@$(GO) run ./bench sim -seeds $${SEEDS:-3}

eval: build ## judge rules and classifier on the labelled texts of this repository (DATA="files or folders", HTML=page.html)
	@$(BIN) eval $${DATA:-detectors/classifier/data} $(if $(HTML),--html $(HTML))

teacher: ## fine-tune the encoder and let it label texts for `evenhand train` (three quarters of an hour with AMX; goes on where it stopped)
	@tools/train/run.sh

classifier: ## the classifier, from labels and the teacher's (after `make vectors teacher`; ten minutes)
	@tools/train/run.sh classifier

encoder: ## distil the teacher into the encoder that ships, and calibrate it (after `make teacher classifier`; three quarters of an hour with AMX)
	@tools/train/run.sh encoder

others: ## the encoder of other languages than English, and calibrate it and that of English, which asks it for advice (after `make classifier`; an hour and three quarters without AMX)
	@tools/train/run.sh others

vectors: ## vectors of single words from the encoder, for `evenhand train --vectors` (minutes)
	@tools/train/run.sh vectors

models: ## all that is learnt, anew: vectors, teacher, classifier, encoders, one after the other (three hours with AMX)
	@for step in vectors "" classifier others encoder; do tools/train/run.sh $$step || exit; done

crash: engine ## kill, pause, cut and hide everything under load and prove that nothing is lost or doubled (2 minutes; LONG=1: 60)
	@LONG=$(LONG) tools/crash.sh

soak: build engine ## two hours at 70 % of the peak with one restart of the engine: memory, goroutines, lag, parts (HOURS=2)
	@tools/soak.sh

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

.PHONY: help build engine up demo test race fuzz bench bench-scan sim eval teacher classifier encoder others vectors models crash soak check lint generate clean
