# perdure: build, run and test. `make help` lists the targets.

GO      ?= go
PYTHON  ?= python3
MVN     ?= mvn
APP     ?= .
LOCAL   := $(PYTHON) localstack/local.py up --app $(APP)
DEMO    := $(GO) run ./examples/demo
UNIT    := $(shell $(GO) list ./... | grep -v /tests)
TOOL    := $(GO) tool -modfile=tools/go.mod
DDB     := tests/dynamodblocal

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## */\1\t/' | awk -F'\t' '{printf "  make %-20s %s\n", $$1, $$2}'

## --- see it run ---

.PHONY: run
run: needs-go needs-python ## start a local AWS, deploy, fulfil the example orders, serve until Ctrl-C (APP=dir of your own functions/, PORT=8080, CLOUD=localstack)
	$(LOCAL) $(if $(filter .,$(APP)),--keep --exec $(DEMO))

.PHONY: demo
demo: needs-go needs-python ## the same for scripts: ends with "demo: N instances, N completed, ..." and exits 0
	$(LOCAL) --port 0 --exec $(DEMO)

## --- tests, a target a tier ---

.PHONY: test
test: test-unit test-ministack test-e2e ## every tier that needs Go and Python alone

.PHONY: test-unit
test-unit: needs-go ## packages, and the engine and the provider on AWS in memory, with the race detector
	$(GO) test -race $(filter-out %/dispatch,$(UNIT))
	$(GO) test -race -timeout 30m ./dispatch -schedules=500 -troubled=2 # its seeds, all of them, come below
	$(GO) test -timeout 30m ./dispatch -run 'Simulation|Backlog|NoUndoStarts' # what the race detector is too slow for
	$(GO) test -timeout 30m ./tests/engine # thousands of crashes: the race detector has seen the same code above

.PHONY: test-ministack
test-ministack: needs-go needs-python ## AWS in memory held against ministack, call by call, and the provider on ministack
	$(GO) test -count=1 ./tests/localcloud/... ./tests/differential/... ./tests/ministack/...

.PHONY: test-dynamodb-local
test-dynamodb-local: needs-go needs-java $(DDB)/target/Launcher.class ## the provider on DynamoDB Local, and tables in memory held against it, call by call
	$(GO) test -count=1 -parallel 16 ./$(DDB)/... # most of its time is waiting
	$(GO) test -count=1 -run '^TestTable' ./tests/differential -against=dynamodb-local

# Its own licence lets it be fetched, not passed on.
$(DDB)/target/Launcher.class: $(DDB)/pom.xml $(DDB)/Launcher.java | needs-java
	rm -rf $(@D)
	cd $(DDB) && $(MVN) -q -B -Dstyle.color=never dependency:copy-dependencies -DincludeTypes=jar -DoutputDirectory=target/jars
	cd $(DDB) && javac -cp 'target/jars/*' -d target Launcher.java

.PHONY: test-e2e
test-e2e: needs-go needs-python ## real function binaries on a local AWS, and what happens when they are killed
	$(GO) test -count=1 ./tests/e2e/...

.PHONY: test-cdk
test-cdk: needs-go needs-node ## the stack's template: golden file, and what only AWS would refuse
	cd infra/cdk && $(GO) test -count=1 ./...

.PHONY: bench
bench: needs-go needs-python ## the figures of docs/benchmarks.md, on this machine; the last one on real function binaries
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 3s ./internal/simhub ./internal/replay ./history .
	$(GO) test -run '^$$' -bench BenchmarkCancel -benchtime 1x ./tests/e2e

.PHONY: fuzz
fuzz: needs-go ## a minute of fuzzing the history decoder
	$(GO) test -run '^$$' -fuzz FuzzDecode -fuzztime 60s ./history

## --- keep it tidy ---

.PHONY: lint
lint: needs-go ## gofumpt, vet, golangci-lint with everything on
	$(TOOL) golangci-lint run ./...
	cd infra/cdk && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...

.PHONY: fmt
fmt: needs-go ## format everything
	$(TOOL) golangci-lint fmt ./...

.PHONY: needs-go needs-python needs-node needs-java
needs-go:
	@command -v $(GO) >/dev/null || { echo "perdure needs Go 1.26 or later: https://go.dev/dl" >&2; exit 1; }
needs-python:
	@command -v $(PYTHON) >/dev/null || { echo "this target needs Python 3.10 or later with venv for the local AWS: https://www.python.org/downloads, or your system's packages python3 and python3-venv" >&2; exit 1; }
needs-node:
	@command -v node >/dev/null || { echo "this target needs Node.js 20 or later for the CDK: https://nodejs.org" >&2; exit 1; }
needs-java:
	@javac --release 17 -version >/dev/null 2>&1 && command -v $(MVN) >/dev/null || { echo "this target needs a JDK of Java 17 or later and Maven 3.8 or later for DynamoDB Local: https://adoptium.net and https://maven.apache.org, or your system's packages openjdk-17-jdk-headless and maven" >&2; exit 1; }
