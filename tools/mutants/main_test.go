package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test only compares the mutants with the code. `make mutants` runs the tests of the mutants, and takes minutes.
func TestRead_mutantsOfRepository_matchCode(t *testing.T) {
	t.Parallel()
	mutants, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if m.what == "" || len(m.changes) == 0 {
			t.Errorf("%s: %+v", m.name, m)
		}
		for file, text := range m.changes {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: the mutated file does not parse: %v", m.name, err)
			}
		}
	}
}

// run reports mutants that a test finds, mutants that no test finds, and mutants whose text does not exist.
func TestRun_mutant_isFoundOrReported(t *testing.T) {
	t.Parallel()
	const code = "package dispatch\n\nfunc one() int { return 1 }\n"
	const test = `package dispatch

import "testing"

func TestOne(t *testing.T) {
	if one() != 1 && !testing.Short() {
		t.Error()
	}
}
`
	const (
		named = "It returns something else.\ntest: ./dispatch\n-- dispatch/one.go --\n"
		was   = "return 1 }\n====\n"
		two   = was + "return 2 }\n"
	)
	for name, tt := range map[string]struct {
		mutant, want, err string
		short             bool
	}{
		"found":     {mutant: named + two, want: "found by TestOne"},
		"panics":    {mutant: named + was + "go func() { panic(1) }(); select {} }\n", want: "found by a panic"},
		"missed":    {mutant: named + was + "return 2 - 1 }\n", want: "NOT FOUND", err: "1 mutants were not found"},
		"short":     {mutant: named + two, short: true, want: "0 of 1", err: "1 mutants were not found"},
		"no match":  {mutant: named + "return 3 }\n====\nreturn 2 }\n", err: "the old text occurs 0 times"},
		"no test":   {mutant: "It returns two.\n-- dispatch/one.go --\n" + two, err: "names no tests"},
		"no code":   {mutant: named + was + "return nil }\n", err: "no test ran"},
		"no change": {mutant: named + "return 1 }\n", err: "no line ===="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := t.TempDir()
			for file, text := range map[string]string{
				"go.mod": "module example.com/one\n\ngo 1.26\n", "dispatch/one.go": code, "dispatch/one_test.go": test,
				folder + "/mutant.txt": tt.mutant,
			} {
				at := filepath.Join(module, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := run(t.Context(), &out, tt.short, module, nil)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
				!strings.Contains(out.String(), tt.want) {
				t.Errorf("got error %v, output %q", err, out.String())
			}
		})
	}
}
