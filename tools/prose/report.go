package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// report prints findings.
type report struct {
	out   io.Writer
	clean scopes
	only  *scope
	options
}

// findings prints the findings of clean scopes, and the number of errors of the others. It reports whether a clean
// scope has an error.
func (r *report) findings(all []finding) (failed bool) {
	open := map[string]int{}
	excluded := map[string]bool{}
	for _, f := range all {
		isError := f.severity == severe
		isClean := r.clean.contain(f.kind, f.path)
		failed = failed || isError && isClean
		if isError && !isClean {
			open[string(f.kind)+":"+path.Dir(f.path)]++
			r.markExclusions(excluded, f)
		}
		if r.shows(f, isError, isClean) {
			fmt.Fprintf(r.out, "%s:%d: %s: %s (%s)\n", f.path, f.line, f.kind, f.message, f.rule)
		}
	}
	if r.only == nil {
		r.remaining(open)
		for _, s := range r.clean {
			if s.exclude && !excluded[s.text] {
				fmt.Fprintf(r.out, "prose: %s has no findings: remove it from clean.txt\n", s.text)
			}
		}
	}
	return failed
}

// exclusions prints a line of clean.txt for each page, and for each folder of Go code and kind of text, that has
// errors.
func (r *report) exclusions(all []finding) {
	for _, k := range kinds {
		var lines []string
		for _, f := range all {
			if f.kind != k || f.severity != severe {
				continue
			}
			glob := f.path
			if k != docs {
				glob = path.Join(path.Dir(f.path), "*.go")
			}
			lines = append(lines, "!"+string(k)+":"+glob)
		}
		slices.Sort(lines)
		for _, l := range slices.Compact(lines) {
			fmt.Fprintln(r.out, l)
		}
	}
}

// markExclusions records the exclusions that a finding needs.
func (r *report) markExclusions(needed map[string]bool, f finding) {
	for _, s := range r.clean {
		if s.exclude && s.matches(f.kind, f.path) {
			needed[s.text] = true
		}
	}
}

// remaining prints the number of errors outside the clean scopes, by kind and folder.
func (r *report) remaining(open map[string]int) {
	names := make([]string, 0, len(open))
	total := 0
	for name, n := range open {
		names = append(names, fmt.Sprintf("%s %d", name, n))
		total += n
	}
	if total > 0 {
		slices.Sort(names)
		fmt.Fprintf(r.out, "prose: %d findings outside the clean scopes: %s\n", total, strings.Join(names, ", "))
	}
}

func (r *report) shows(f finding, isError, isClean bool) bool {
	switch {
	case r.only != nil && !r.only.matches(f.kind, f.path), !isError && !r.hints:
		return false
	default:
		return isClean || r.verbose || r.only != nil
	}
}

// dialect prints the share of lines that match a banned pattern.
func (r *report) dialect(shares []share) {
	total := share{kind: "all"}
	for _, s := range shares {
		total.matching += s.matching
		total.all += s.all
	}
	for _, s := range append(shares, total) {
		fmt.Fprintf(r.out, "prose: dialect in %-8s %5.2f %% (%d of %d lines)\n", s.kind,
			100*float64(s.matching)/float64(max(s.all, 1)), s.matching, s.all)
	}
}
