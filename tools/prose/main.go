// Prose checks the project's English with Vale: its Markdown, and the comments and messages of its Go code.
//
//	go run -C tools ./prose ..
//
// Findings in the scopes of clean.txt fail. For the other scopes, Prose prints the number of findings and the share of
// lines that match a banned pattern. With -v it prints every finding; -only restricts the output to scopes that match.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

var errFindings = errors.New("prose: findings in clean scopes")

// options are the command's flags.
type options struct {
	root    string
	verbose bool
	hints   bool
	exclude bool
	only    string
}

func main() {
	var o options
	flag.BoolVar(&o.verbose, "v", false, "print the findings of all scopes, not only of clean ones")
	flag.BoolVar(&o.hints, "hints", false, "print warnings and suggestions too")
	flag.BoolVar(&o.exclude, "exclusions", false, "print the exclusions that clean.txt needs if it includes everything")
	flag.StringVar(&o.only, "only", "",
		"print findings of scopes that match this pattern only, such as docs:docs/guides/*.md")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: prose [-v] [-hints] [-exclusions] [-only SCOPE] ROOT")
		os.Exit(2)
	}
	o.root = flag.Arg(0)
	err := run(context.Background(), os.Stdout, o)
	switch {
	case errors.Is(err, errFindings):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// run checks the repository at o.root. It returns errFindings if a clean scope has an error.
func run(ctx context.Context, out io.Writer, o options) error {
	rules := filepath.Join(o.root, "tools", "prose")
	clean, err := loadScopes(filepath.Join(rules, "clean.txt"))
	if err != nil {
		return err
	}
	banned, err := loadPatterns(filepath.Join(rules, "styles", "Perdure"))
	if err != nil {
		return err
	}
	passages, err := collect(o.root)
	if err != nil {
		return err
	}
	findings, err := vale(ctx, o.root, passages)
	if err != nil {
		return err
	}
	r := report{out: out, clean: clean, options: o}
	if o.exclude {
		r.exclusions(findings)
		return nil
	}
	if o.only != "" {
		only, err := parseScope(o.only)
		if err != nil {
			return err
		}
		r.only = &only
	}
	failed := r.findings(findings)
	r.dialect(measure(passages, banned))
	if failed {
		return errFindings
	}
	return nil
}
