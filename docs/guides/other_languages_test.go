package guides_test

import (
	"regexp"
	"strings"
	"testing"
)

var clientBlock = regexp.MustCompile("(?s)```(ts|python)\n(.*?)```")

// Each TypeScript or Python block of the guide is part of the tests of make test-clients. They also run the commands of
// the guide.
func TestOtherLanguages_blocks_areInClientTests(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"ts":     readPage(t, "../../tests/clients/typescript/client.test.ts"),
		"python": readPage(t, "../../tests/clients/python/client_test.py"),
	}
	blocks := clientBlock.FindAllStringSubmatch(readPage(t, "other-languages.md"), -1)
	if len(blocks) != len(tests) {
		t.Errorf("the guide has %d blocks, want one for each language", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(tests[block[1]], block[2]) {
			t.Errorf("the %s test does not contain\n%s", block[1], block[2])
		}
	}
}
