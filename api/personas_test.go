package api_test

import (
	"fmt"
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
	}
	if len(personas) != 4 {
		t.Errorf("personas %v", fmt.Sprint(personas))
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
