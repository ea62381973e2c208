# `make` alone lists the targets. On a fresh machine all of them need only Go and
# make; `race` needs a C compiler, too. `test` drives the console in Chromium where there is
# one, and says so where there is none. On Debian: apt-get install chromium.

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 20s
ARGS ?=
MINUTES ?= 5
SHARDS ?=
NODES ?=
TLS ?=
SEED ?=
PKG ?= ./...
# These run the built binary, which -race would not see into.
RACE_PACKAGES ?= $(shell go list ./... | grep -v $(BUSY_PACKAGES))
# These run a browser and clusters, which keep all processors busy, so no other tests run beside them.
BUSY_PACKAGES := -e /systemtest -e /consoletest
# Random choices of tests are the same in each run of test and race, so that chance fails none; SEED=n makes
# others. full makes new ones.
SAME_CHOICES = RAPID_SEED=$(or $(SEED),5) SWITCHYARD_TEST_SEED=$(or $(SEED),5)
LINT := go tool -modfile=tools/go.mod golangci-lint
HAS_CC := $(shell command -v $$(go env CC) >/dev/null 2>&1 && echo yes)
# The programs that cmd/internal/consoletest looks for.
HAS_BROWSER := $(shell for name in "$${SWITCHYARD_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do command -v "$$name" >/dev/null 2>&1 && echo yes && break; done)

# What ships has no C in it. The race detector can't do without.
export CGO_ENABLED ?= 0

# The compiler optimizes the binary by a profile, cmd/switchyard/default.pgo. Everything else is compiled
# without it: each package would be compiled twice, for the binary and for its tests.
export GOFLAGS := $(strip $(GOFLAGS) -pgo=off)

.PHONY: help run cluster test full race lint bench bench-cluster bench-console profile chaos fuzz corpora check build sbom console api deploy-check deploy-golden alerts-check clean fmt fmt-check vet

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and serve with defaults; ARGS="--http :8081" adds flags
	./bin/switchyard serve $(ARGS)

cluster: build ## three nodes on this machine, state in data/cluster; Ctrl-C stops them; ARGS="--nodes 5" runs more
	./bin/switchyard local-cluster $(ARGS)

build: ## build bin/switchyard
	go build -pgo=auto -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/switchyard ./cmd/switchyard

test: ## every test; needs only Go; PKG=./storage narrows it, SEED=n makes other random choices
	@packages=$$(go list $(PKG)); failed=0; \
	for group in '-v $(BUSY_PACKAGES)' /consoletest /systemtest; do \
		chosen=$$(echo "$$packages" | grep $$group || true); \
		[ -z "$$chosen" ] || $(SAME_CHOICES) go test -short -timeout 1500s $$chosen || failed=1; \
	done; \
	exit $$failed
	@[ "$(HAS_BROWSER)" = yes ] || echo "test: left out the console in a browser, no Chromium found; on Debian: apt-get install chromium"

full: ## make test, with its longest tests in their full form and with new random choices; takes more than an hour
	go test -timeout 150m $(PKG)

race: ## the tests under the race detector; needs a C compiler
	@if [ "$(HAS_CC)" != yes ]; then \
		echo "make race: the race detector needs cgo, and the C compiler \"$$(go env CC)\" was not found; install gcc or clang, or set CC" >&2; exit 1; fi
	CGO_ENABLED=1 $(SAME_CHOICES) go test -race -short -timeout 2400s $(RACE_PACKAGES)

lint: ## golangci-lint as pinned in tools/go.mod
	$(LINT) run

fmt: ## gofmt everything
	gofmt -w .

fmt-check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...

bench: build ## load a node of its own and print the figures beside their limits; ARGS="--connections 16"
	./bin/switchyard bench $(ARGS)

profile: build ## record the profile that the compiler optimizes by anew, on a quiet machine; takes two minutes
	@dir=$$(mktemp -d); load=; \
	./bin/switchyard serve --data "$$dir/data" --http 127.0.0.1:18080 --metrics 127.0.0.1:19090 --pprof >"$$dir/node.log" 2>&1 & node=$$!; \
	trap 'kill $$node $$load 2>/dev/null || true; wait; rm -rf "$$dir"' EXIT; \
	sleep 3; \
	./bin/switchyard bench --url http://127.0.0.1:18080 --metrics-url http://127.0.0.1:19090/metrics --connections 16 \
		--scenario create,cycle,get,list,search-two,poll,bulk --issues 5000 --duration 11s --open-share 0 & load=$$!; \
	sleep 2; \
	go tool pprof -proto -seconds 105 -output cmd/switchyard/default.pgo http://127.0.0.1:19090/debug/pprof/profile

chaos: ## faults under load for MINUTES (5); FAULTS="pause,deaf" names some; SHARDS=n (4); NODES=n (3 or 4); TLS=1 between nodes, 0: none; SEED=n repeats a run; logs of a failure are kept
	SWITCHYARD_CHAOS_MINUTES=$(MINUTES) SWITCHYARD_CHAOS_FAULTS="$(FAULTS)" SWITCHYARD_CHAOS_SHARDS=$(SHARDS) SWITCHYARD_CHAOS_NODES=$(NODES) SWITCHYARD_CHAOS_TLS=$(TLS) SWITCHYARD_TEST_SEED=$(SEED) go test -count=1 -v -timeout 0 -run 'TestCluster_Storm' ./cmd/internal/systemtest

bench-cluster: ## the figures of a cluster: forwarding, killed owners, joins and drains, idle cost
	go test -count=1 -run '^$$' -bench 'Cluster' -benchtime 1x -timeout 60m -v ./cmd/internal/systemtest

bench-console: ## sizes, paint times and scrolling of the console; needs Chromium
	go test -count=1 -run '^$$' -bench 'Console' -benchtime 5x -timeout 20m ./cmd/internal/consoletest

fuzz: ## every fuzz target for FUZZTIME (20s) each
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s $$package; \
		done; \
	done

corpora: ## keep what fuzz has found on this machine in testdata/corpora, where every test run tries it
	go run ./internal/testkit/corpora

check: fmt-check vet lint build test ## what CI runs: format, vet, lint, build, tests, and race when there is a C compiler
	@if [ "$(HAS_CC)" = yes ]; then $(MAKE) --no-print-directory race; \
	else echo "race: left out, no C compiler found"; fi
	@echo "check: all good"

sbom: ## the binary's bill of materials (CycloneDX) and the texts of its licenses, in bin/; fails where a license is not taken
	@mkdir -p bin
	go tool -modfile=tools/sbom/go.mod cyclonedx-gomod app -json -licenses -std -noserial -notimestamp -main cmd/switchyard -output bin/switchyard.cdx.json .
	cd tools/sbom && go vet ./... && go test ./... && go run .

console: ## bundle the console's pages in console/web into console/dist, after a change of them
	go run ./console/build

api: ## write docs/api.md anew, after a change of the API
	go generate ./httpapi

deploy-check: ## render the Helm chart and check every object of deploy/ strictly
	cd deploy/check && go vet ./... && go test ./...

alerts-check: ## check the alerts and run their tests; needs promtool, on Debian: apt-get install prometheus
	cd deploy/prometheus && promtool check rules alerts.yaml && promtool test rules *_test.yaml

deploy-golden: ## write the rendered objects in deploy/check anew, after a change of the chart
	cp deploy/prometheus/alerts.yaml deploy/grafana/switchyard.json deploy/helm/switchyard/files/
	cd deploy/check && go test -update ./...

clean: ## remove what was built; data/ stays
	rm -rf bin
