package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMeasure_typeExceedsLimits_isReported(t *testing.T) {
	t.Parallel()
	methods := func(n int) string {
		var b strings.Builder
		b.WriteString("package room\n\ntype large struct{ state int }\n")
		for i := range n {
			fmt.Fprintf(&b, "func (l *large) m%d() {}\n", i)
		}
		return b.String()
	}
	writer := func(name string) string { return "package room\n\nfunc " + name + "(l *large) { l.state++ }\n" }

	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"within the limits": {
			map[string]string{"a.go": methods(mostMethods), "b.go": writer("b"), "c.go": writer("c")}, nil,
		},
		"one method more": {
			map[string]string{"a.go": methods(mostMethods + 1)}, []string{
				"room.large has 26 methods; more than 25 are several types",
			},
		},
		"one writer more": {
			map[string]string{"a.go": methods(1), "b.go": writer("b"), "c.go": writer("c"), "d.go": writer("d")},
			[]string{"room.large.state is written from b.go, c.go, d.go; give it functions of its own in one of them"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.files["../go.mod"] = "module github.com/perdure/perdure\n\ngo 1.26\n"
			for file, text := range c.files {
				at := filepath.Join(dir, "room", file)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			faults, err := measure(io.Discard, dir)
			if err != nil || !slices.Equal(faults, c.want) {
				t.Errorf("faults are %q, %v; want %q", faults, err, c.want)
			}
		})
	}
}
