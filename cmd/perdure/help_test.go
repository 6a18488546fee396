package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// flagName matches the name of a flag at the beginning of a usage line.
var flagName = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`)

func TestRootHelp_allCommands_fitOneScreen(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		help := h.mustRun(args...)
		if n := strings.Count(help, "\n"); n > 45 {
			t.Errorf("%v: %d lines", args, n)
		}
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(line) > 101 { // including the line feed
				t.Errorf("%v: longer than 100 columns: %s", args, line)
			}
		}
		for _, cmd := range rootOf().Commands() {
			if !strings.Contains(help, "  "+cmd.Name()+" ") {
				t.Errorf("%v: lacks %s", args, cmd.Name())
			}
		}
	}
	if help := h.mustRun("help", "start"); !strings.Contains(help, "--idempotency-key") {
		t.Errorf("help of start: %s", help)
	}
}

func TestCommands_descriptions_arePhrases(t *testing.T) {
	t.Parallel()
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if short := cmd.Short; len(strings.Fields(short)) > 10 || strings.ContainsAny(short, ".:;") {
			t.Errorf("%s: short description %q", cmd.CommandPath(), short)
		}
		if parent := cmd.Parent(); parent != nil && !parent.HasParent() && cmd.GroupID == "" {
			t.Errorf("%s: no group", cmd.CommandPath())
		}
		for _, name := range flagName.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
			usage := cmd.LocalFlags().Lookup(name[1]).Usage
			first, _ := utf8.DecodeRuneInString(usage)
			if strings.HasSuffix(usage, ".") || unicode.IsUpper(first) && !isAcronym(usage) {
				t.Errorf("%s --%s: %q", cmd.CommandPath(), name[1], usage)
			}
		}
		for _, sub := range cmd.Commands() {
			if sub.Name() != "completion" {
				check(sub)
			}
		}
	}
	check(rootOf())
}

func rootOf() *cobra.Command {
	return newRoot(&cli.Env{Getenv: func(string) string { return "" }, Stdout: io.Discard, Stderr: io.Discard})
}

// isAcronym reports whether a text begins with an acronym, such as ID or URL.
func isAcronym(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	return len(first) > 1 && first == strings.ToUpper(first)
}
