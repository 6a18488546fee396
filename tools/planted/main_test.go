package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each fault is of today's code: `make planted` plants them, which takes minutes.
func TestTheFaultsAreOfTodaysCode(t *testing.T) {
	t.Parallel()
	faults, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if f.what == "" || len(f.changes) == 0 {
			t.Errorf("%s: %+v", f.name, f)
		}
	}
}

// A fault that a test finds is found, one that none finds is told of, and one whose text is gone cannot be planted.
func TestAFaultIsFoundOrToldOf(t *testing.T) {
	t.Parallel()
	const code = "package dispatch\n\nfunc one() int { return 1 }\n"
	const test = "package dispatch\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() != 1 && !testing.Short() {\n\t\tt.Error()\n\t}\n}\n"
	for name, tt := range map[string]struct {
		fault, want, err string
		short            bool
	}{
		"found":     {"One is two.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n====\nreturn 2 }\n", "found by TestOne", "", false},
		"panics":    {"One never returns.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n====\ngo func() { panic(1) }(); select {} }\n", "found by a panic", "", false},
		"missed":    {"One is said otherwise.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n====\nreturn 2 - 1 }\n", "NOT FOUND", "1 faults were not found", false},
		"short":     {"One is two.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n====\nreturn 2 }\n", "0 of 1", "1 faults were not found", true},
		"gone":      {"One is two.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 3 }\n====\nreturn 2 }\n", "", "this is there 0 times", false},
		"no test":   {"One is two.\n-- dispatch/one.go --\nreturn 1 }\n====\nreturn 2 }\n", "", "does not say which tests", false},
		"no code":   {"One is no number.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n====\nreturn nil }\n", "", "no test ran", false},
		"no change": {"One is two.\ntest: ./dispatch\n-- dispatch/one.go --\nreturn 1 }\n", "", "no line ====", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module example.com/one\n\ngo 1.26\n", "dispatch/one.go": code, "dispatch/one_test.go": test, folder + "/fault.txt": tt.fault} {
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
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v, and said %q", err, out.String())
			}
		})
	}
}
