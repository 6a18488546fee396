package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kind is the purpose of a text.
type kind string

const (
	docs     kind = "docs"     // Markdown
	comments kind = "comments" // documentation of packages and exported names
	cli      kind = "cli"      // help texts, flags and output of commands
	failures kind = "errors"   // texts of errors
	logs     kind = "logs"     // messages of log lines
)

var kinds = []kind{docs, comments, cli, failures, logs}

// scope selects texts by kind and path.
type scope struct {
	text    string
	exclude bool
	kind    kind // empty for every kind
	path    *regexp.Regexp
}

// parseScope reads "GLOB" or "KIND:GLOB", with ! in front for texts that are excluded. In a glob, * matches within a
// folder, and ** across folders.
func parseScope(line string) (scope, error) {
	s := scope{text: line}
	glob, exclude := strings.CutPrefix(line, "!")
	s.exclude = exclude
	if k, rest, found := strings.Cut(glob, ":"); found {
		s.kind, glob = kind(k), rest
		if !slices.Contains(kinds, s.kind) {
			return s, fmt.Errorf("prose: %s: unknown kind %q", line, k)
		}
	}
	expr := regexp.QuoteMeta(glob)
	expr = strings.ReplaceAll(expr, `\*\*/`, `(?:.*/)?`)
	expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
	expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
	var err error
	if s.path, err = regexp.Compile("^" + expr + "$"); err != nil {
		return s, fmt.Errorf("prose: %s: %w", line, err)
	}
	return s, nil
}

func (s scope) matches(k kind, path string) bool {
	return (s.kind == "" || s.kind == k) && s.path.MatchString(filepath.ToSlash(path))
}

// scopes is a list of scopes, of which later ones override earlier ones.
type scopes []scope

// loadScopes reads one scope a line. Empty lines and lines that start with # are ignored.
func loadScopes(file string) (scopes, error) {
	b, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	var all scopes
	var errs []error
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseScope(line)
		errs = append(errs, err)
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

// contain reports whether the last scope that matches does not exclude.
func (s scopes) contain(k kind, path string) bool {
	for _, one := range slices.Backward(s) {
		if one.matches(k, path) {
			return !one.exclude
		}
	}
	return false
}
