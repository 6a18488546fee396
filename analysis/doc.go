// Package analysis finds mistakes in orchestrations before they run: code that decides otherwise when it is replayed, that waits for what the engine does
// not see, and that loses what it asked for. It is a pass of golang.org/x/tools/go/analysis:
//
//	perdure vet ./...
//	go vet -vettool=$(which perdure) ./...
//
// Package analysis/plugin has it as a module plugin of golangci-lint. docs/reference/linter.md describes every rule.
//
// What runs as orchestration code is each function and literal that takes a *perdure.OrchestrationContext, and what it calls, in whatever
// package. The effects of a function travel between packages as facts, with the chain of calls that leads to them. The standard library is
// opaque: its entries are listed in known.go, and what is not listed has no effect.
package analysis
