package analysis

import (
	"fmt"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/calls"
	"github.com/perdure/perdure/analysis/internal/effects"
	"github.com/perdure/perdure/analysis/internal/futures"
	"github.com/perdure/perdure/analysis/internal/names"
	"github.com/perdure/perdure/analysis/internal/payloads"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
)

// Analyzer reports mistakes in orchestrations. Its flag -disable is a comma-separated list of rules to disable, and
// -warnings=false disables warnings. It is safe for concurrent use after its flags are set.
var Analyzer = New()

// New returns an analyzer with its own flags, for programs that run several configurations.
func New() *analysis.Analyzer {
	a := &analysis.Analyzer{
		Name: "perdure",
		Doc: "find nondeterminism and lost results in orchestrations\n\nThe analyzer checks functions that take a " +
			"*perdure.OrchestrationContext, and all functions that they call. See docs/reference/linter.md for the " +
			"rules.",
		URL:       "https://github.com/perdure/perdure/blob/main/docs/reference/linter.md",
		FactTypes: []analysis.Fact{(*effects.Fact)(nil), (*names.Fact)(nil), (*source.ContextUse)(nil)},
	}
	s := &source.Settings{Warnings: true}
	a.Flags.Var((*ruleList)(&s.Disabled), "disable", "comma-separated list of rules to disable")
	a.Flags.BoolVar(&s.Warnings, "warnings", true, "report warnings")
	a.Run = func(pass *analysis.Pass) (any, error) {
		run(pass, s)
		return nil, nil //nolint:nilnil // the pass has facts and findings, and no result
	}
	return a
}

// ruleList is a flag with IDs of rules.
type ruleList []string

// String implements flag.Value.
func (l *ruleList) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *ruleList) Set(text string) error {
	*l = nil
	for id := range strings.SplitSeq(text, ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if rules.ByID(id) == nil {
			return fmt.Errorf("unknown rule %q; see docs/reference/linter.md", id)
		}
		*l = append(*l, id)
	}
	return nil
}

// run checks one package.
func run(pass *analysis.Pass, s *source.Settings) {
	path, _, _ := strings.Cut(pass.Pkg.Path(), " ") // without the suffix of a test variant
	if isEngine(path) || isStandard(path, pass.Module != nil && pass.Module.Path != "") {
		return
	}
	p := source.Read(pass, s)
	graph := effects.Build(p)
	directory := names.Read(p)
	if !p.Foreign {
		graph.ReportEffects()
		calls.Check(p, graph.Orchestrations())
		payloads.Check(p)
		futures.Check(p)
		directory.Check()
		p.ReportIgnores()
	}
	directory.Export()
}

// isEngine reports whether a package is part of the engine, whose effects are known.
func isEngine(path string) bool {
	return path == api.Root || path == api.Root+"/history" || strings.HasPrefix(path, api.Root+"/internal/")
}

// isStandard reports whether a package is in the standard library.
func isStandard(path string, hasModule bool) bool {
	first, _, _ := strings.Cut(path, "/")
	return !hasModule && !strings.Contains(first, ".") && first != "command-line-arguments" || first == "vendor"
}
