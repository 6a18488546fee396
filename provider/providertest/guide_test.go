package providertest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/provider"
)

// guideFolder holds the guide for authors of providers.
var guideFolder = filepath.Join("..", "..", "docs", "internals")

func guide(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(guideFolder, "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGuide_methodsGroupsAndCapabilities_areNamed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, contract := range []reflect.Type{reflect.TypeFor[provider.Provider](), reflect.TypeFor[provider.Poller]()} {
		for m := range contract.Methods() {
			names = append(names, m.Name)
		}
	}
	for _, g := range groups() {
		names = append(names, g.Name)
		for _, c := range g.Cases {
			for _, need := range c.Needs {
				// like the name of its constant, except for capital letters
				names = append(names, strings.ReplaceAll(string(need), " ", ""))
			}
		}
	}
	text := strings.ToLower(guide(t))
	for _, name := range names {
		if !strings.Contains(text, "`"+strings.ToLower(name)+"`") {
			t.Errorf("docs/internals/providers.md does not name %s", name)
		}
	}
}

// The guide quotes Go code from the file of the last link before the quote.
func TestGuide_quotedCode_isInTheLinkedFile(t *testing.T) {
	t.Parallel()
	link, fence := regexp.MustCompile(`\]\(([^)]+\.go)\)`), regexp.MustCompile("(?s)```go\n(.*?)```")
	text := guide(t)
	quotes := fence.FindAllStringSubmatchIndex(text, -1)
	if len(quotes) == 0 {
		t.Fatal("docs/internals/providers.md has no quoted code")
	}
	for _, q := range quotes {
		links := link.FindAllStringSubmatch(text[:q[0]], -1)
		if len(links) == 0 {
			t.Fatal("docs/internals/providers.md quotes code before the first link to a file")
		}
		file := filepath.Join(guideFolder, filepath.FromSlash(links[len(links)-1][1]))
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if quote := text[q[2]:q[3]]; !strings.Contains(string(code), quote) {
			t.Errorf("docs/internals/providers.md quotes code that is not in %s:\n%s", file, quote)
		}
	}
}
