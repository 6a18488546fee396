package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule has the fields of a Vale rule that the measure of the dialect needs.
type rule struct {
	Extends    string            `yaml:"extends"`
	Level      string            `yaml:"level"`
	Scope      string            `yaml:"scope"`
	IgnoreCase bool              `yaml:"ignorecase"`
	Nonword    bool              `yaml:"nonword"`
	Tokens     []string          `yaml:"tokens"`
	Raw        []string          `yaml:"raw"`
	Swap       map[string]string `yaml:"swap"`
}

// severe is the level of rules, and the severity of findings, that make the command fail.
const severe = "error"

// spelling is a rule of errors that are not dialect.
const spelling = "American.yml"

// loadPatterns returns the banned patterns of a style: its rules of level error, but for spelling.
func loadPatterns(style string) ([]*regexp.Regexp, error) {
	files, err := filepath.Glob(filepath.Join(style, "*.yml"))
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	var all []*regexp.Regexp
	for _, file := range files {
		if filepath.Base(file) == spelling {
			continue
		}
		b, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, fmt.Errorf("prose: %w", err)
		}
		var r rule
		if err := yaml.Unmarshal(b, &r); err != nil {
			return nil, fmt.Errorf("prose: %s: %w", file, err)
		}
		if r.Level != severe || r.Extends != "existence" && r.Extends != "substitution" {
			continue
		}
		p, err := r.pattern()
		if err != nil {
			return nil, fmt.Errorf("prose: %s: %w", file, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// pattern returns one expression for a rule, which matches within a line.
func (r rule) pattern() (*regexp.Regexp, error) {
	tokens := slices.Clone(r.Tokens)
	for key := range r.Swap {
		tokens = append(tokens, key)
	}
	slices.Sort(tokens)
	expr := strings.Join(r.Raw, "")
	if len(tokens) > 0 {
		joined := "(?:" + strings.Join(tokens, "|") + ")"
		if !r.Nonword {
			joined = `\b` + joined + `\b`
		}
		expr += joined
	}
	if r.Scope == "sentence" { // a line has the beginnings of several sentences
		expr = strings.Replace(expr, "^", `(?:^[\s|*_>#-]*|[.!?] +)`, 1)
	}
	if r.IgnoreCase {
		expr = "(?i)" + expr
	}
	p, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return p, nil
}

// Parts of a line that are not prose.
var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// share is the number of lines of a kind that match a banned pattern.
type share struct {
	kind          kind
	matching, all int
}

// measure counts the lines of each kind of text, and those that match a banned pattern.
func measure(passages []passage, banned []*regexp.Regexp) []share {
	var shares []share
	for _, k := range kinds {
		s := share{kind: k}
		for _, p := range passages {
			if p.kind != k {
				continue
			}
			for _, l := range p.lines {
				if l.text == "" {
					continue
				}
				s.all++
				if isDialect(l.text, banned) {
					s.matching++
				}
			}
		}
		shares = append(shares, s)
	}
	return shares
}

func isDialect(text string, banned []*regexp.Regexp) bool {
	text = linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(text, "X"), "]")
	return slices.ContainsFunc(banned, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}
