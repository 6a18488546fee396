package analysis

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/analysis/internal/rules"
)

var update = flag.Bool("update", false, "rewrite the rules of docs/reference/linter.md")

const (
	page  = "../docs/reference/linter.md"
	begin = "<!-- Rules: written by go test ./analysis -run TestDocs -update -->\n"
	end   = "<!-- End of the rules -->\n"
)

// With -update, the test writes the rules into docs/reference/linter.md.
func TestDocs_rules_areCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section for the rules", page)
	}
	want := describe()
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s does not describe the rules: go test ./analysis -run TestDocs -update", page)
	}
}

func describe() string {
	var b strings.Builder
	for _, r := range rules.All() {
		fmt.Fprintf(&b, "\n### `%s`\n\n", r.ID)
		if r.Warning {
			b.WriteString("*Warning.* ")
		}
		fmt.Fprintf(&b, "%s\n\n%s.\n\n**Misses:** %s\n", r.Finds, strings.ToUpper(r.Instead[:1])+r.Instead[1:],
			r.Misses)
	}
	b.WriteString("\n")
	return b.String()
}

// Each rule has programs in the corpus, and documents its limits.
func TestRules_corpusAndDocumentation_areComplete(t *testing.T) {
	t.Parallel()
	var corpus strings.Builder
	if err := readAll(&corpus, "testdata/wrong"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rules.All() {
		if seen[r.ID] || r.Finds == "" || r.Why == "" || r.Instead == "" || r.Misses == "" {
			t.Errorf("rule %q is repeated, or a text is missing", r.ID)
		}
		seen[r.ID] = true
		if !strings.Contains(corpus.String(), `\[`+r.ID+`\]`) {
			t.Errorf("no program has a finding of rule %q", r.ID)
		}
	}
}

func readAll(b *strings.Builder, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			if err := readAll(b, path); err != nil {
				return err
			}
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}
