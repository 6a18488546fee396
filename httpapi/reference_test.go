package httpapi_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
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
)

var update = flag.Bool("update", false, "write the generated sections of the documentation")

// notOfTheDocument are the codes of the host and origin checks, which run before the API.
var notOfTheDocument = []string{"forbidden_host", "forbidden_origin"}

// TestReference_routes_matchTable compares the page with the table of operations. With -update, it writes the
// routes into the page.
func TestReference_routes_matchTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("\n| route | purpose | success | errors |\n|---|---|---|---|\n")
	for _, o := range api.Operations() {
		if o.Path == "" {
			continue
		}
		errors := slices.DeleteFunc(slices.Sorted(maps.Keys(o.Errors)), func(status int) bool {
			return status == http.StatusBadRequest
		})
		fmt.Fprintf(&want, "| `%s %s` | %s | %s | %s |\n", o.Method, o.Path,
			strings.ToLower(o.Summary[:1])+o.Summary[1:], statuses(slices.Sorted(maps.Keys(o.Success))),
			statuses(errors))
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
	if len(all) == 0 {
		return "–"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
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
	want := slices.Clone(notOfTheDocument)
	for _, code := range openAPI().Components.Schemas["Problem"].Properties["code"].Enum {
		want = append(want, fmt.Sprint(code))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has the codes\n%v, want\n%v", referencePage, got, want)
	}
}
