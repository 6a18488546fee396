package guides_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/docpage"
)

var (
	fenced     = regexp.MustCompile("(?ms)^```.*?^```$")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linkedText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Each link of a page to a file of this repository leads to one, and to a heading where it says so.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := everyPage(t)
	for path, page := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
			if to, err := url.Parse(m[1]); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if problem := leads(all, path, to); problem != "" {
				t.Errorf("%s: the link to %s: %s", path, m[1], problem)
			}
		}
	}
}

// leads returns what is wrong with a link of a page; empty where nothing is, and of links to elsewhere.
func leads(all map[string]string, path string, to *url.URL) string {
	if to.Scheme != "" {
		return ""
	}
	target := path
	if to.Path != "" {
		target = filepath.Join(filepath.Dir(path), to.Path)
	}
	if _, err := os.Stat(target); err != nil {
		return err.Error()
	}
	if page, is := all[target]; is && to.Fragment != "" && !anchors(page)[to.Fragment] {
		return fmt.Sprintf("no heading is #%s", to.Fragment)
	}
	return ""
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	there := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text := linkedText.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "$1")
		anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(text, ""), " ", "-")
		for name, n := anchor, 1; ; n++ {
			if !there[name] {
				there[name] = true
				break
			}
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
	}
	return there
}

// everyPage is each page of the repository, by its path from here.
func everyPage(t *testing.T) map[string]string {
	t.Helper()
	found, err := docpage.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	return found
}
