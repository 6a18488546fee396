package describe

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The CLI and the web UI suggest the same steps.
func TestBlockedSteps_equalWebUI(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../ui/page/80-instance.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range slices.Sorted(maps.Keys(blockedSteps)) {
		if want := fmt.Sprintf("  %s: '%s',\n", reason, blockedSteps[reason]); !strings.Contains(string(page), want) {
			t.Errorf("the web UI lacks %s", want)
		}
	}
	if !strings.Contains(string(page), "'"+otherBlockedStep+"'") {
		t.Errorf("the web UI lacks %s", otherBlockedStep)
	}
}
