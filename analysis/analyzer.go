package analysis

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
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
		FactTypes: []analysis.Fact{(*effects)(nil), (*names)(nil), (*asking)(nil)},
	}
	s := &settings{warnings: true}
	a.Flags.Var((*ruleList)(&s.disabled), "disable", "comma-separated list of rules to disable")
	a.Flags.BoolVar(&s.warnings, "warnings", true, "report warnings")
	a.Run = func(pass *analysis.Pass) (any, error) {
		run(pass, s)
		return nil, nil //nolint:nilnil // the pass has facts and findings, and no result
	}
	return a
}

// settings are the analyzer's flags.
type settings struct {
	disabled []string
	warnings bool
}

// reports whether findings of a rule are wanted.
func (s *settings) reports(r *rule) bool {
	return !slices.Contains(s.disabled, r.id) && (s.warnings || !r.warning)
}

// ruleList is a flag: names of rules.
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
		if ruleOf(id) == nil {
			return fmt.Errorf("unknown rule %q; see docs/reference/linter.md", id)
		}
		*l = append(*l, id)
	}
	return nil
}

// run looks at one package.
func run(pass *analysis.Pass, s *settings) {
	path, _, _ := strings.Cut(pass.Pkg.Path(), " ") // of a test's variant the rest says which
	if isEngine(path) || isStandard(path, pass.Module != nil && pass.Module.Path != "") {
		return
	}
	p := newProgram(pass, s)
	p.collect()
	p.propagate()
	p.export()
	names := newDirectory(p)
	if !p.foreign {
		judge(p, names)
	}
	names.export()
}

func judge(p *program, names *directory) {
	p.report()
	p.mistakes()
	names.judge()
	p.ignores.report(p)
}
