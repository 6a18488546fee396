package cdk_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write template.golden.json")

const goldenFile = "template.golden.json"

// Local deployments use the golden file, so it must equal the synthesized template.
func TestReferenceTemplate_matchesGoldenFile(t *testing.T) {
	t.Parallel()
	compareGolden(t, goldenFile, reference)
}

// compareGolden compares a template with its golden file. With -update, it writes the file.
func compareGolden(t *testing.T, file string, template []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, template, 0o644); err != nil {
			t.Fatalf("write the golden template: %v", err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read the golden template: %v", err)
	}
	if !bytes.Equal(golden, template) {
		t.Errorf("the template differs from %s; if intended, run go test . -update\n%s",
			file, firstDifference(string(golden), string(template)))
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			return "golden: " + wants[i] + "\nis now: " + gots[i]
		}
	}
	return "one is the beginning of the other"
}
