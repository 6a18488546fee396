package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// FuzzEncodeItem checks that any JSON document of a hub becomes an item of limited size without control and format
// characters, for which a reader could take them as its own.
func FuzzEncodeItem(f *testing.F) {
	for _, s := range []string{
		`{"a":"b","c":[1]}`, `"\u202e\ud83d\ude00\ud800"`, `{"` + strings.Repeat("k", 9000) + `":"` + strings.Repeat("v", 9000) + `"}`,
		`[` + strings.Repeat(`"\u0007",`, 3000) + `1]`, `"` + strings.Repeat("\U000e0041", 3000) + `"`, `null`, `{}`, `"\\u0041\\"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if !json.Valid(doc) {
			return
		}
		item, err := encodeItem(json.RawMessage(doc))
		var v any
		if err != nil || len(item) > maxItemBytes || json.Unmarshal(item, &v) != nil {
			t.Fatalf("%q is the item %q of %d bytes, error %v", doc, item, len(item), err)
		}
		var small any
		if small = v; len(doc) < maxFieldBytes/8 && json.Unmarshal(doc, &small) != nil {
			t.Fatal("a valid document")
		}
		eachText(v, func(s string) {
			for _, r := range s {
				if term.EscapeRune(r) != string(r) {
					t.Errorf("%q has the text %q with the character %U", item, s, r)
				}
			}
		})
	})
}

// eachText calls f with the texts of a decoded document.
func eachText(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, item := range v {
			eachText(item, f)
		}
	case map[string]any:
		for key, item := range v {
			f(key)
			eachText(item, f)
		}
	}
}

// FuzzCallTool checks that each reading tool responds to any arguments with a result of limited size, or rejects them.
func FuzzCallTool(f *testing.F) {
	for _, args := range []string{
		`{"id":"order-7"}`, `{"id":"order-7","limit":200,"after":-1,"execution":"x"}`, `{"limit":1e9}`, `{"cursor":"e30"}`,
		`{"query":"dead letters"}`, `{"tag":["a=b","a"],"status":"Running"}`, `{"id":5}`, `{"ID":"order-7"}`, `[]`, `null`,
	} {
		f.Add([]byte(args))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		var given map[string]any
		if json.Unmarshal(args, &given) != nil {
			return
		}
		server := newFixture(t)
		cancelledOrder(server)
		server.connect()
		tools, err := server.session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) == 0 {
			t.Fatal(tools, err)
		}
		for _, tool := range tools.Tools {
			result, err := server.session.CallTool(
				t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: json.RawMessage(args)},
			)
			if err != nil { // the SDK has rejected the arguments
				continue
			}
			doc, err := json.Marshal(result.StructuredContent)
			if err != nil || len(doc) > maxResultBytes || len(result.Content) == 0 {
				t.Errorf("%s of %s: %d bytes, %d parts, error %v", tool.Name, args, len(doc), len(result.Content), err)
			}
		}
	})
}
