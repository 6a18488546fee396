package main

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/docpage"
)

// called matches the commands of this tool in a page: inline code and code blocks.
var called = []*regexp.Regexp{
	regexp.MustCompile("`perdure ([a-z][^`\n]*)`"),
	regexp.MustCompile(`(?m)^ {4}(?:go tool |go run \./cmd/)?perdure ([a-z].*)$`),
	regexp.MustCompile(`(?m)^(?:\$ |go tool |go run \./cmd/)perdure ([a-z].*)$`),
}

var flagOf = regexp.MustCompile(`(?:^|[ [])--([a-z][a-z-]*)`)

func TestDocumentation_commandsAndFlags_exist(t *testing.T) {
	t.Parallel()
	for path, page := range pages(t) {
		for _, in := range called {
			for _, m := range in.FindAllStringSubmatch(page, -1) {
				if wrong := missingName(m[1]); wrong != "" {
					t.Errorf("%s: perdure %s: there is no %s", path, m[1], wrong)
				}
			}
		}
	}
}

// missingName returns the first command or flag of a call that does not exist, or an empty string.
func missingName(call string) string {
	root := newRoot(&cli.Env{Getenv: func(string) string { return "" }, Stdout: io.Discard, Stderr: io.Discard})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	call, _, _ = strings.Cut(call, " #")
	verb, rest, err := root.Find(strings.Fields(call))
	if err != nil || verb == root || verb.HasSubCommands() && len(rest) > 0 {
		return "verb in it"
	}
	verb.InitDefaultHelpFlag()
	for _, m := range flagOf.FindAllStringSubmatch(call, -1) {
		if verb.Flags().Lookup(m[1]) == nil && verb.InheritedFlags().Lookup(m[1]) == nil {
			return "flag --" + m[1]
		}
	}
	return ""
}

// pages returns the Markdown pages of this repository, except the change log, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := docpage.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	delete(found, filepath.Join("../..", "CHANGELOG.md"))
	return found
}
