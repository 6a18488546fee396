package httpapi_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/docpage"
)

const referencePage = "../docs/reference/http.md"

var (
	statusRow  = regexp.MustCompile(`(?m)^\| ([45]\d\d) \| (.*) \|$`)
	codeInCell = regexp.MustCompile("`([a-z_]+)`")
	// parametersRow matches a row of the table of query parameters: its second cell begins with a parameter.
	parametersRow   = regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]+)` \\| (`.*) \\|$")
	parameterInCell = regexp.MustCompile("`([a-zA-Z]+)`")
)

var update = flag.Bool("update", false, "write the generated sections of the documentation")

// TestReference_routes_matchTable compares the page with the table of operations. With -update, it writes the
// routes into the page.
func TestReference_routes_matchTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("\n| route | purpose | grant | success |\n|---|---|---|---|\n")
	for _, o := range api.Operations() {
		if o.Path == "" {
			continue
		}
		fmt.Fprintf(&want, "| `%s %s` | %s | `%s` | %s |\n", o.Method, o.Path,
			strings.ToLower(o.Summary[:1])+o.Summary[1:], o.Grant, statuses(slices.Sorted(maps.Keys(o.Success))))
	}
	want.WriteString("\n")
	if *update {
		if err := docpage.Write(referencePage, "routes", want.String()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(referencePage, "routes")
	if err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("%s differs from the table; run this test with -update. Want:\n%s", referencePage, want.String())
	}
}

func statuses(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// summarized are the query parameters of routes that share a row of the page.
var summarized = [][]string{nil, {"limit", "cursor"}, {api.RequireKey}}

// TestReference_parameters_matchTable compares the page's query parameters with the table of operations.
func TestReference_parameters_matchTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, row := range parametersRow.FindAllStringSubmatch(string(page), -1) {
		for _, m := range parameterInCell.FindAllStringSubmatch(row[2], -1) {
			listed[row[1]] = append(listed[row[1]], m[1])
		}
	}
	for _, o := range api.Operations() {
		route := o.Method + " " + o.Path
		got, ok := listed[route]
		delete(listed, route)
		isShared := slices.ContainsFunc(summarized, func(q []string) bool { return slices.Equal(q, o.Query) })
		if !ok && isShared {
			continue
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(o.Query))) {
			t.Errorf("%s: %s has the parameters %q, want %q", route, referencePage, got, o.Query)
		}
	}
	for route := range listed {
		t.Errorf("%s has parameters of %s, which has none", referencePage, route)
	}
}

// TestReference_codes_matchOpenAPI compares the page's problem codes with those of the OpenAPI document.
func TestReference_codes_matchOpenAPI(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range statusRow.FindAllStringSubmatch(string(page), -1) {
		for _, m := range codeInCell.FindAllStringSubmatch(row[2], -1) {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	got = slices.Compact(got) // a code may have two statuses
	var want []string
	for _, code := range openAPI().Components.Schemas["Problem"].Properties["code"].Enum {
		want = append(want, fmt.Sprint(code))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has the codes\n%v, want\n%v", referencePage, got, want)
	}
}
