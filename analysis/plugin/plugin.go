// Package plugin registers package analysis as a module plugin of golangci-lint. List it in .custom-gcl.yml:
//
//	plugins:
//	  - module: github.com/perdure/perdure
//	    import: github.com/perdure/perdure/analysis/plugin
//
// See docs/reference/linter.md.
package plugin

import (
	"fmt"
	"strings"

	"github.com/golangci/plugin-module-register/register"
	goanalysis "golang.org/x/tools/go/analysis"

	"github.com/perdure/perdure/analysis"
)

func init() { register.Plugin("perdure", New) } //nolint:gochecknoinits // golangci-lint finds plugins by registration

// Settings are the settings in .golangci.yml under linters.settings.custom.perdure.settings.
type Settings struct {
	// Disable lists rules to disable.
	Disable []string `json:"disable"`
	// Warnings enables warnings. The default is true.
	Warnings *bool `json:"warnings"`
}

// New returns the plugin for the settings. It returns an error for unknown settings and rules.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](conf)
	if err != nil {
		return nil, fmt.Errorf("perdure settings: %w", err)
	}
	a := analysis.New()
	if err := a.Flags.Set("disable", strings.Join(s.Disable, ",")); err != nil {
		return nil, fmt.Errorf("perdure settings: disable: %w", err)
	}
	if s.Warnings != nil && !*s.Warnings {
		if err := a.Flags.Set("warnings", "false"); err != nil {
			return nil, fmt.Errorf("perdure settings: warnings: %w", err)
		}
	}
	return linter{a}, nil
}

type linter struct{ analyzer *goanalysis.Analyzer }

// BuildAnalyzers returns the analyzer.
func (l linter) BuildAnalyzers() ([]*goanalysis.Analyzer, error) {
	return []*goanalysis.Analyzer{l.analyzer}, nil
}

// GetLoadMode requests type information.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
