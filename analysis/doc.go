// Package analysis finds mistakes in orchestrations: nondeterministic code, waits outside the engine, and calls whose
// results are lost. It is an analyzer of golang.org/x/tools/go/analysis, which `perdure vet` runs:
//
//	perdure vet ./...
//	go vet -vettool=$(which perdure) ./...
//
// To run it in your own multichecker:
//
//	func main() { multichecker.Main(analysis.Analyzer) }
//
// The analyzer checks functions and literals that take a *perdure.OrchestrationContext, and all functions that they
// call, in all packages. It does not check the standard library, but has a list of the effects of its functions.
//
// Package analysis/plugin is a module plugin for golangci-lint. docs/reference/linter.md describes every rule and what
// it does not detect.
package analysis
