package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

var (
	// uiRequest is a request of the web UI: a method for call and send, and the path as a JavaScript expression. A
	// source of changes has a path.
	uiRequest = regexp.MustCompile("(?:^|[^.\\w])(?:(?:call|send)\\('([A-Z]+)', |get\\(|path: )" +
		"((?:instancePath|lettersPath)\\(.*|`.*|'.*)")
	uiValue = regexp.MustCompile(`\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}`)
	uiBase  = map[string]string{"instancePath": "instances/*", "lettersPath": "dead-letters/*"}
)

// TestOperations_webUI_sendsTheRequestsOfTheTable compares the table with the requests and labels of the web UI.
func TestOperations_webUI_sendsTheRequestsOfTheTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../ui/page/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, error %v", files, err)
	}
	var script strings.Builder
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		script.Write(b)
	}
	requested := map[string]bool{}
	for line := range strings.Lines(script.String()) {
		for _, m := range uiRequest.FindAllStringSubmatch(line, -1) {
			method, path := m[1], uiPath(m[2])
			if method == "" {
				method = "GET"
			}
			found := operations(method, path)
			if len(found) == 0 {
				t.Errorf("the web UI sends %s %s, but no operation has this route", method, path)
			}
			for _, o := range found {
				requested[o.ID] = true
			}
		}
	}
	for _, o := range api.Operations() {
		if (len(o.WebUI.Names) > 0) != requested[o.ID] {
			t.Errorf("%s: got labels %q in the table, request in the web UI: %v", o.ID, o.WebUI.Names,
				requested[o.ID])
		}
		for _, label := range o.WebUI.Names {
			if !strings.Contains(script.String(), label) {
				t.Errorf("%s: the web UI has no label %q", o.ID, label)
			}
		}
	}
}

// uiPath returns the path of a JavaScript expression such as instancePath(id, '/cancel'), with * for each value.
func uiPath(expression string) string {
	base := ""
	for name, path := range uiBase {
		if rest, ok := strings.CutPrefix(expression, name+"("); ok {
			base = path
			_, expression, _ = strings.Cut(rest, ", ")
		}
	}
	if expression == "" || !strings.ContainsAny(expression[:1], "'`") {
		return "/v1/" + base
	}
	quote := expression[:1]
	literal := uiValue.ReplaceAllString(expression[1:], "*")
	literal, _, _ = strings.Cut(literal, quote)
	literal, _, _ = strings.Cut(literal, "?")
	return "/v1/" + base + literal
}
