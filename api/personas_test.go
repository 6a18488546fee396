package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

const personaPage = "../docs/operate/least-privilege.md"

// The page lists the operations of the table that the grants of each persona permit.
func TestGrants_personasOfThePage_matchTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(personaPage)
	if err != nil {
		t.Fatal(err)
	}
	grants := readGrants(t)
	personas := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		const columns = 3
		if len(cells) != columns || !strings.Contains(cells[1], "`Grant") {
			continue
		}
		persona := strings.TrimPrefix(cells[0], "| ")
		personas[persona] = true
		stated := quoted(cells[1])
		for _, grant := range stated {
			if _, known := grants[grant]; !known {
				t.Errorf("%s: the construct has no %s", persona, grant)
			}
			if !strings.Contains(string(page), "hub."+grant+"(") {
				t.Errorf("%s: the example lacks %s", persona, grant)
			}
		}
		var want []string
		for _, o := range api.Operations() {
			if o.Changes && o.Path != "" && slices.Contains(stated, o.Grant) || o.ID == queryInstance &&
				slices.Contains(stated, o.Grant) {
				want = append(want, o.ID)
			}
		}
		if got := quoted(cells[2]); !slices.Equal(got, want) {
			t.Errorf("%s: the page has\n%s\nwant\n%s", persona, got, "`"+strings.Join(want, "`, `")+"`")
		}
		wantPolicy(t, persona, policyOf(t, string(page), persona), want)
	}
	if len(personas) != 4 {
		t.Errorf("personas %v", fmt.Sprint(personas))
	}
}

// policyOf returns the calls that the policy below the heading of a persona permits.
func policyOf(t *testing.T, page, persona string) (calls []string) {
	t.Helper()
	_, section, _ := strings.Cut(page, "\n### "+strings.ToUpper(persona[:1])+persona[1:]+"\n")
	_, section, _ = strings.Cut(section, "```json\n")
	text, _, _ := strings.Cut(section, "```")
	var policy struct {
		Version   string `json:"Version"`
		Statement []struct {
			Effect   string   `json:"Effect"`
			Action   string   `json:"Action"`
			Resource []string `json:"Resource"`
		} `json:"Statement"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&policy); err != nil || policy.Version != "2012-10-17" {
		t.Fatalf("%s: policy %q: %v", persona, text, err)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" || s.Action != "execute-api:Invoke" {
			t.Errorf("%s: statement %+v", persona, s)
		}
		for _, resource := range s.Resource {
			call, ok := strings.CutPrefix(resource, "arn:aws:execute-api:REGION:ACCOUNT:API/")
			if !ok {
				t.Errorf("%s: resource %s", persona, resource)
			}
			calls = append(calls, call)
		}
	}
	return calls
}

// wantPolicy compares the calls of a policy with the operations that the persona may call besides all reads.
func wantPolicy(t *testing.T, persona string, calls, operations []string) {
	t.Helper()
	used := map[string]bool{}
	for _, o := range api.Operations() {
		permitted := false
		for _, call := range calls {
			if o.Path != "" && permitsCall(call, o.Method+o.Path) {
				permitted, used[call] = true, true
			}
		}
		isListed := slices.Contains(operations, o.ID) || o.Path != "" && o.Method == http.MethodGet
		if permitted != isListed {
			t.Errorf("%s: the policy permits %s: %v, want %v", persona, o.ID, permitted, isListed)
		}
	}
	for _, call := range calls {
		if !used[call] {
			t.Errorf("%s: no operation needs %s", persona, call)
		}
	}
}

// queryInstance changes nothing, but runs code of the hub, so that reads do not include it.
const queryInstance = "queryInstance"

// quoted returns the texts in backquotes.
func quoted(cell string) (all []string) {
	for i, s := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, s)
		}
	}
	return all
}
