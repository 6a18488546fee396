package deployment

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/infra/template"
)

// FuzzTemplateCheck checks that a parameter is rejected with an error that names it, or has a value that CloudFormation
// accepts: one of the values, and within the bounds.
func FuzzTemplateCheck(f *testing.F) {
	parsed, err := ParseTemplate(template.JSON)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range [][2]string{
		{"WorkerMemory", "1024"},
		{"WorkerMemory", "NaN"},
		{"WorkerMemory", "0x400"},
		{"APIKind", "function-url"},
		{"Retention", "30d\n"},
		{"HubName", "x"},
		{"", ""},
		{"LogRetention", "3e1"},
		{"InboxTimeout", "Inf"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if err := parsed.check(name, value); err != nil {
			if !strings.HasPrefix(err.Error(), "--parameter") || !strings.Contains(err.Error(), strings.Trim(strconv.Quote(name), `"`)) {
				t.Errorf("%s=%q: %v", name, value, err)
			}
			return
		}
		p := parsed.parameters[name]
		if p.Type != "Number" {
			return
		}
		n, err := strconv.ParseFloat(value, 64)
		if _, isJSON := json.Marshal(n); err != nil || isJSON != nil || strings.Trim(value, "+-.eE0123456789") != "" ||
			p.MinValue != nil && !(n >= *p.MinValue) || p.MaxValue != nil && !(n <= *p.MaxValue) {
			t.Errorf("%s=%q is accepted, error %v", name, value, err)
		}
	})
}

// FuzzParseTemplate checks that a template is rejected, or has the required parameters and a compact body.
func FuzzParseTemplate(f *testing.F) {
	for _, s := range []string{
		`{"Parameters":{"HubName":{},"CodeBucket":{},"CodePrefix":{},"Architecture":{},"OrchestratorBuild":{},` +
			`"WorkerBuild":{},"RenewerBuild":{},"APIBuild":{},"N":{"Type":"Number","MinValue":1,"Default":5}}}`,
		`{}`, `Resources:`, `{"Parameters":{"HubName":5}}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		parsed, err := ParseTemplate(raw)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "template ") {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if again, err := ParseTemplate(parsed.Body); err != nil || string(again.Body) != string(parsed.Body) ||
			len(again.parameters) != len(parsed.parameters) {
			t.Errorf("%q: body %q, then %+v, error %v", raw, parsed.Body, again, err)
		}
		for name := range parsed.parameters {
			_ = parsed.check(name, "1") // must not panic
		}
		_, _ = parsed.resolve(map[string]string{parameterInboxTimeout: "5"}, nil)
	})
}
