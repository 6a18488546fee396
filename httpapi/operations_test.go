package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/apicheck"
)

// commonStatuses are the statuses that the document states for each operation that can return them, without an entry in
// the table.
var commonStatuses = append([]string{"400", "413", "415", "503", "default"}, statusesBeforeAPI...)

// statusesBeforeAPI are the statuses of every operation that a gateway, or a check of hosts and origins, returns. The
// handler does not return them.
var statusesBeforeAPI = []string{"401", "403", "421", "429"}

// codesBeforeAPI are the codes of the checks of hosts and origins, which run before the handler.
var codesBeforeAPI = []string{"forbidden_origin", "forbidden_host"}

// TestOpenAPI_operations_matchTable compares the document with the table of operations.
func TestOpenAPI_operations_matchTable(t *testing.T) {
	t.Parallel()
	described := 0
	for _, byMethod := range openAPI().Paths {
		described += len(byMethod)
	}
	for _, o := range api.Operations() {
		if o.Path == "" {
			continue
		}
		described--
		got, ok := openAPI().Paths[o.Path][strings.ToLower(o.Method)]
		if !ok || got.OperationID != o.ID {
			t.Errorf("%s: the document has %q for %s %s", o.ID, got.OperationID, o.Method, o.Path)
			continue
		}
		wantParameters(t, &o, &got)
		if request := requestSchema(&got); request != o.Request {
			t.Errorf("%s: the request is %q, want %q", o.ID, request, o.Request)
		}
		wantResponses(t, &o, &got)
	}
	if described != 0 {
		t.Errorf("the document has %d more operations than the table", described)
	}
}

func wantParameters(t *testing.T, o *api.Operation, got *apicheck.Operation) {
	t.Helper()
	in := map[string][]string{}
	for _, p := range got.Parameters {
		p = openAPI().Parameter(p)
		in[p.In] = append(in[p.In], p.Name)
	}
	if !slices.Equal(in["query"], o.Query) {
		t.Errorf("%s: the query parameters are %v, want %v", o.ID, in["query"], o.Query)
	}
	for _, name := range in["path"] {
		if !strings.Contains(o.Path, "{"+name+"}") {
			t.Errorf("%s: the path has no parameter %s", o.ID, name)
		}
	}
	if len(in["path"]) != strings.Count(o.Path, "{") {
		t.Errorf("%s: the path parameters are %v, want those of %s", o.ID, in["path"], o.Path)
	}
	if key := slices.Contains(in["header"], "Idempotency-Key"); key != (o.Repeat == api.RepeatByKey) {
		t.Errorf("%s: the document has an Idempotency-Key: %v; a repeated call has %s", o.ID, key, o.Repeat)
	}
}

func requestSchema(got *apicheck.Operation) string {
	if got.RequestBody == nil {
		return ""
	}
	if ref := schemaName(got.RequestBody.Content); ref != "" {
		return ref
	}
	return api.AnyJSON
}

// schemaName returns the name of a body's schema. The name is empty for an inline schema.
func schemaName(content map[string]apicheck.Media) string {
	if s := content["application/json"].Schema; s != nil && s.Ref != "" {
		return path.Base(s.Ref)
	}
	return ""
}

func wantResponses(t *testing.T, o *api.Operation, got *apicheck.Operation) {
	t.Helper()
	want := map[string]bool{}
	for status, schema := range o.Success {
		key := fmt.Sprint(status)
		want[key] = true
		if name := schemaName(got.Responses[key].Content); name != schema {
			t.Errorf("%s: %d has the schema %q, want %q", o.ID, status, name, schema)
		}
	}
	for status := range o.Errors {
		want[fmt.Sprint(status)] = true
	}
	for status := range want {
		if _, ok := got.Responses[status]; !ok {
			t.Errorf("%s: the document lacks the status %s", o.ID, status)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(got.Responses)) {
		if !want[status] && !slices.Contains(commonStatuses, status) {
			t.Errorf("%s: the table lacks the status %s", o.ID, status)
		}
	}
	for _, status := range statusesBeforeAPI {
		if _, ok := got.Responses[status]; !ok {
			t.Errorf("%s: the document lacks the status %s, which a gateway or a check returns", o.ID, status)
		}
	}
	for _, status := range []string{"413", "415"} {
		if _, ok := got.Responses[status]; ok != (o.Request != "") {
			t.Errorf("%s: the document has the status %s: %v", o.ID, status, ok)
		}
	}
}

// TestProblems_codes_matchTable compares the codes of the table with those of the document.
func TestProblems_codes_matchTable(t *testing.T) {
	t.Parallel()
	stated := map[string]bool{}
	for _, code := range codesBeforeAPI {
		stated[code] = true
	}
	add := func(errors map[int][]string) {
		for _, codes := range errors {
			for _, code := range codes {
				stated[code] = true
			}
		}
	}
	add(api.CommonErrors())
	for _, o := range api.Operations() {
		add(o.Errors)
	}
	for _, code := range openAPI().Components.Schemas["Problem"].Properties["code"].Enum {
		if !stated[code.(string)] {
			t.Errorf("no operation has the code %s", code)
		}
		delete(stated, code.(string))
	}
	for code := range stated {
		t.Errorf("the document lacks the code %s", code)
	}
}

// wantAsInTable checks a response against its operation in the table: the code of a problem, and the audit line.
func wantAsInTable(t *testing.T, a *callResponse, code string, logged string) {
	t.Helper()
	table := api.Operations()
	i := slices.IndexFunc(table, func(o api.Operation) bool {
		return o.Path != "" && o.Method == a.method && o.Path == a.path
	})
	if i < 0 {
		return
	}
	o := &table[i]
	if code != "" && !slices.Contains(o.Errors[a.Code], code) && !slices.Contains(api.CommonErrors()[a.Code], code) {
		t.Errorf("%s: the table lacks the code %s of status %d", o.ID, code, a.Code)
	}
	lines := strings.Count(logged, "event=operation.requested")
	switch {
	case o.Audit.Action == "" && lines > 0:
		t.Errorf("%s: logged an operation that the table does not audit: %s", o.ID, logged)
	case o.Audit.Action == "" || a.Code == http.StatusOK && o.Success[http.StatusOK] == "Preview":
	case a.Code < 300 && (lines != 1 || !strings.Contains(logged, " "+o.Audit.Subject+"=")):
		t.Errorf("%s: logged %s, want one operation with the attribute %s", o.ID, logged, o.Audit.Subject)
	}
}
