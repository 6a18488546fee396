package plugin_test

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	_ "github.com/perdure/perdure/analysis/plugin"
)

// golangci-lint finds the plugin by its name, and its settings reach the analyzer.
func TestPlugin_settings_reachAnalyzer(t *testing.T) {
	t.Parallel()
	build, err := register.GetPlugin("perdure")
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(map[string]any{"disable": []string{"log", "clock"}, "warnings": false})
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.BuildAnalyzers()
	if err != nil || len(all) != 1 || all[0].Name != "perdure" || p.GetLoadMode() != register.LoadModeTypesInfo {
		t.Fatalf("%v, %v, load mode %q", all, err, p.GetLoadMode())
	}
	if got := all[0].Flags.Lookup("disable").Value.String(); got != "log,clock" {
		t.Errorf("disabled %q", got)
	}
	if got := all[0].Flags.Lookup("warnings").Value.String(); got != "false" {
		t.Errorf("warnings %q", got)
	}
	for mentions, settings := range map[string]any{
		`unknown rule "nope"`: map[string]any{"disable": []string{"nope"}},
		`unknown field`:       map[string]any{"enable": []string{"log"}},
	} {
		if _, err := build(settings); err == nil || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%v: %v, want %s", settings, err, mentions)
		}
	}
}
