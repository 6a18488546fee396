package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// event has the used fields of an event of `go test -json`.
type event struct {
	Action  string  `json:"Action"`
	Package string  `json:"Package"`
	Test    string  `json:"Test"`
	Elapsed float64 `json:"Elapsed"` // seconds
}

// slowest lists the tests of a stage that took longest, by the events that `go test` wrote. A test that has subtests
// counts as a whole.
func slowest(logs, target string, n int) string {
	files, err := filepath.Glob(filepath.Join(logs, target+"-*.json"))
	if err != nil || len(files) == 0 {
		return "The stage runs no Go tests; see " + filepath.Join(logs, target+".log")
	}
	var tests []event
	for _, file := range files {
		tests = append(tests, readTests(file)...)
	}
	slices.SortStableFunc(tests, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	var list strings.Builder
	list.WriteString("Its slowest tests:\n")
	for _, e := range tests[:min(n, len(tests))] {
		fmt.Fprintf(&list, "  %6.1f s  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	return list.String()
}

// readTests returns the ends of top-level tests in a file of events.
func readTests(file string) (tests []event) {
	f, err := os.Open(file) //nolint:gosec // our own file
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var e event
		if err := d.Decode(&e); err != nil {
			return tests // the end, or the middle of an event if go test was killed
		}
		if (e.Action == "pass" || e.Action == "fail") && e.Test != "" && !strings.Contains(e.Test, "/") {
			tests = append(tests, e)
		}
	}
}
