package intake_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/docpage"
)

var update = flag.Bool("update", false, "write the metrics into docs/reference/metrics.md")

const page = "../../../docs/reference/metrics.md"

// docs/reference/metrics.md lists the metrics that the code defines.
func TestMetricsPage_listsAllDefinitions(t *testing.T) {
	t.Parallel()
	want := tableOf(intake.Definitions())
	if *update {
		if err := docpage.Write(page, "metrics", want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(page, "metrics")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/metrics.md does not match the code (go test ./dispatch/internal/intake -update) "+
			"(-code +page):\n%s", diff)
	}
}

func tableOf(all []intake.Definition) string {
	var b strings.Builder
	b.WriteString("| metric | unit | dimensions | logged by | meaning |\n|---|---|---|---|---|\n")
	for _, d := range all {
		dimensions, what := "`hub`", d.What
		switch {
		case d.Always && d.By != "":
			dimensions += ", `" + d.By + "`"
		case d.By != "":
			dimensions += " (`" + d.By + "`)"
		}
		if d.Always {
			what = "always: " + what
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Unit, dimensions, d.From, what)
	}
	return b.String()
}

// Each constant of a metric name has one definition.
func TestDefinitions_containEveryMetricOnce(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "metrics.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Metric") &&
			v.Names[0].Name != "MetricNamespace" && v.Names[0].Name != "MetricAttribute" {
			name, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			named = append(named, name)
		}
		return true
	})
	var defined []string
	for _, d := range intake.Definitions() {
		defined = append(defined, d.Name)
	}
	slices.Sort(named)
	slices.Sort(defined)
	if diff := cmp.Diff(named, defined); diff != "" || len(named) < 20 {
		t.Errorf("(-in metrics.go +defined):\n%s", diff)
	}
}
