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

// Each link to a file of this repository has a target, and the heading if it names one.
func TestPages_links_haveTargets(t *testing.T) {
	t.Parallel()
	pages := everyPage(t)
	for path, page := range pages {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
			if to, err := url.Parse(m[1]); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if problem := checkLink(pages, path, to); problem != "" {
				t.Errorf("%s: link %s: %s", path, m[1], problem)
			}
		}
	}
}

// checkLink returns the problem of a link, or an empty string. It ignores links to other sites.
func checkLink(pages map[string]string, path string, to *url.URL) string {
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
	if page, ok := pages[target]; ok && to.Fragment != "" && !anchors(page)[to.Fragment] {
		return fmt.Sprintf("no heading #%s", to.Fragment)
	}
	return ""
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text := linkedText.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "$1")
		anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(text, ""), " ", "-")
		for name, n := anchor, 1; ; n++ {
			if !found[name] {
				found[name] = true
				break
			}
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
	}
	return found
}

// everyPage returns all pages of the repository, by path relative to this directory.
func everyPage(t *testing.T) map[string]string {
	t.Helper()
	pages, err := docpage.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	return pages
}
