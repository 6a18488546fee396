package plugin_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/golangci/plugin-module-register/register"
)

// golangci-lint encodes facts for importing packages. The plugin reports a clock that an orchestration calls through
// two packages, and a method of another package that waits.
func TestPlugin_factsOfImportedPackages_areUsed(t *testing.T) {
	t.Parallel()
	build, err := register.GetPlugin("perdure")
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.BuildAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax | packages.NeedModule},
		"../testdata/wrong/effects", "../testdata/wrong/holders")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(all, pkgs, &checker.Options{SanityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Fatal(act.Err)
		}
		for _, d := range act.Diagnostics {
			found.WriteString(d.Message + "\n")
		}
	}
	for _, want := range []string{
		"which calls far.Stamp (far/far.go:11), which calls time.Now", "ranges over a map and calls holding.Saga.Pause",
	} {
		if !strings.Contains(found.String(), want) {
			t.Errorf("not found: %s in\n%s", want, found.String())
		}
	}
}
