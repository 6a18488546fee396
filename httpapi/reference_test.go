package httpapi_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/httpapi"
)

const referencePage = "../docs/reference/http.md"

var (
	routeRow    = regexp.MustCompile("(?m)^\\| `([A-Z]+ /v1[^`]*)` \\| [^|]+ \\| ([^|]+) \\| ([^|]+) \\|$")
	statusRow   = regexp.MustCompile(`(?m)^\| ([45]\d\d) \| (.*) \|$`)
	codeInCell  = regexp.MustCompile("`([a-z_]+)`")
	threeDigits = regexp.MustCompile(`\d{3}`)
)

// everyRouteReturns are the statuses that the page names once, for all routes.
var everyRouteReturns = []string{"400", "413", "415", "503", "default"}

// notOfTheDocument are the codes of the host and origin checks, which run before the API.
var notOfTheDocument = []string{"forbidden_host", "forbidden_origin"}

func readReference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestReference_routes_areRegistered compares the page's routes and statuses with the mux and the OpenAPI document.
func TestReference_routes_areRegistered(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for _, m := range routeRow.FindAllStringSubmatch(readReference(t), -1) {
		if got[m[1]] != nil {
			t.Errorf("%s: two rows", m[1])
		}
		got[m[1]] = slices.Sorted(slices.Values(threeDigits.FindAllString(m[2]+m[3], -1)))
	}
	for _, r := range httpapi.Routes() {
		name := r.Method + " " + r.Path
		var want []string
		for _, status := range slices.Sorted(maps.Keys(openAPI().Paths[r.Path][strings.ToLower(r.Method)].Responses)) {
			if !slices.Contains(everyRouteReturns, status) {
				want = append(want, status)
			}
		}
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %s has statuses %v, want %v", name, referencePage, got[name], want)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s: no such route", name)
	}
}

// TestReference_codes_areOfTheDocument compares the page's problem codes with those of the OpenAPI document.
func TestReference_codes_areOfTheDocument(t *testing.T) {
	t.Parallel()
	var got []string
	for _, row := range statusRow.FindAllStringSubmatch(readReference(t), -1) {
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
