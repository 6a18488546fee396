// Package docpage reads pages of the documentation in tests, and compares their generated sections with the code.
package docpage

import (
	"fmt"
	"os"
	"strings"
)

// Write replaces the text of a section of a page. HTML comments mark the beginning and the end of a section.
func Write(page, section, text string) error {
	doc, from, to, err := find(page, section)
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(doc[:from]+text+doc[to:]), 0o644); err != nil { //nolint:gosec // a page of docs
		return fmt.Errorf("docpage: %w", err)
	}
	return nil
}

// Read returns the text of a section of a page.
func Read(page, section string) (string, error) {
	doc, from, to, err := find(page, section)
	if err != nil {
		return "", err
	}
	return doc[from:to], nil
}

// find returns a page, and the offsets at which a section's text begins and ends.
func find(page, section string) (doc string, from, to int, err error) {
	b, err := os.ReadFile(page) //nolint:gosec // the path is from a test
	if err != nil {
		return "", 0, 0, fmt.Errorf("docpage: %w", err)
	}
	doc = string(b)
	begin, end := "<!-- "+section+": written by its test, with -update -->\n", "<!-- end of "+section+" -->"
	from = strings.Index(doc, begin)
	to = strings.Index(doc, end)
	if from < 0 || to < from {
		return "", 0, 0, fmt.Errorf("docpage: %s has no section %q", page, section)
	}
	return doc, from + len(begin), to, nil
}
