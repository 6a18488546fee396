// Package plugin makes package analysis a module plugin of golangci-lint. Import it for its effect in a build of golangci-lint: docs/reference/linter.md
// says how.
package plugin

import (
	"fmt"
	"strings"

	"github.com/golangci/plugin-module-register/register"
	goanalysis "golang.org/x/tools/go/analysis"

	"github.com/perdure/perdure/analysis"
)

func init() { register.Plugin("perdure", New) } //nolint:gochecknoinits // how golangci-lint finds its plugins

// Settings are those in .golangci.yml, under linters.settings.custom.perdure.settings.
type Settings struct {
	// Disable are rules that are not reported.
	Disable []string `json:"disable"`
	// Warnings are reported unless this is false.
	Warnings *bool `json:"warnings"`
}

// New is called by golangci-lint with the settings. Its error says which of them does not fit.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](conf)
	if err != nil {
		return nil, fmt.Errorf("settings of perdure: %w", err)
	}
	a := analysis.New()
	if err := a.Flags.Set("disable", strings.Join(s.Disable, ",")); err != nil {
		return nil, fmt.Errorf("settings of perdure: disable: %w", err)
	}
	if s.Warnings != nil && !*s.Warnings {
		if err := a.Flags.Set("warnings", "false"); err != nil {
			return nil, fmt.Errorf("settings of perdure: warnings: %w", err)
		}
	}
	return linter{a}, nil
}

type linter struct{ analyzer *goanalysis.Analyzer }

// BuildAnalyzers returns the one analyzer.
func (l linter) BuildAnalyzers() ([]*goanalysis.Analyzer, error) {
	return []*goanalysis.Analyzer{l.analyzer}, nil
}

// GetLoadMode asks for types.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
