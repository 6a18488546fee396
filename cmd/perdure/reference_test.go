package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/docpage"
)

const referencePage = "../../docs/reference/cli.md"

// exitCodes is the list of exit codes in the help of a command.
var exitCodes = regexp.MustCompile(`(?s)Exit codes:\n((?:  [0-9]  [^\n]+\n?(?:     [^\n]+\n?)*)+)`)

// With -update, the test writes the commands into the page.
func TestReference_commands_areCurrent(t *testing.T) {
	t.Parallel()
	want := commandReference(rootOf())
	if *update {
		if err := docpage.Write(referencePage, "commands", want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(referencePage, "commands")
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s differs from the commands; run this test with -update. Want:\n%s", referencePage, want)
	}
}

// commandReference returns all commands in Markdown, by group, and then the common flags.
func commandReference(root *cobra.Command) string {
	common := commonFlags(root)
	var b strings.Builder
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID {
				writeCommand(&b, cmd, common)
			}
		}
	}

	fmt.Fprint(&b, "\n## Common flags\n\n")
	for _, entry := range slices.Sorted(maps.Values(common)) {
		fmt.Fprint(&b, entry)
	}
	fmt.Fprint(&b, "\n")
	return b.String()
}

// sharedBy is the number of commands from which the page describes a flag once.
const sharedBy = 3

// commonFlags returns the entries of the flags that several commands have in the same form, by name.
func commonFlags(root *cobra.Command) map[string]string {
	count := map[string]int{}
	common := map[string]string{}
	for _, cmd := range commandsBelow(root) {
		for _, f := range flagsOf(cmd) {
			entry := flagEntry(f)
			if count[entry]++; count[entry] == sharedBy {
				common[f.Name] = entry
			}
		}
	}
	return common
}

// commandsBelow returns the commands that the page lists. The subcommands of completion are the shells.
func commandsBelow(parent *cobra.Command) (all []*cobra.Command) {
	if parent.Name() == "completion" {
		return nil
	}
	for _, cmd := range parent.Commands() {
		all = append(all, cmd)
		all = append(all, commandsBelow(cmd)...)
	}
	return all
}

// flagsOf returns the flags of a command without --help.
func flagsOf(cmd *cobra.Command) (all []*pflag.Flag) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			all = append(all, f)
		}
	})
	return all
}

// writeCommand writes a command and its subcommands.
func writeCommand(b *strings.Builder, cmd *cobra.Command, common map[string]string) {
	for _, cmd := range append([]*cobra.Command{cmd}, commandsBelow(cmd)...) {
		use := strings.TrimPrefix(strings.TrimSuffix(cmd.UseLine(), " [flags]"), "perdure ")
		fmt.Fprintf(b, "\n### %s\n\n%s.", use, cmd.Short)
		if text := exitCodesOf(cmd); text != "" {
			fmt.Fprintf(b, " Exit codes: %s.", text)
		}
		fmt.Fprint(b, "\n")
		writeFlags(b, flagsOf(cmd), common)
	}
}

// writeFlags writes the flags of a command. The common flags are listed by name only.
func writeFlags(b *strings.Builder, flags []*pflag.Flag, common map[string]string) {
	var own, shared []string
	for _, f := range flags {
		entry := flagEntry(f)
		if common[f.Name] == entry {
			shared = append(shared, "`--"+f.Name+"`")
			continue
		}
		own = append(own, entry)
	}
	if len(flags) > 0 {
		fmt.Fprintf(b, "\n%s", strings.Join(own, ""))
	}
	if len(shared) > 0 {
		fmt.Fprintf(b, "- [common](#common-flags): %s\n", strings.Join(shared, ", "))
	}
}

// jsonSources is the part of a description that the page states once, for all JSON values.
const jsonSources = ": JSON, @FILE, or - for stdin"

// flagEntry returns a flag with its type, description and default.
func flagEntry(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	if kind != "" {
		kind = "=" + kind
	}
	entry := fmt.Sprintf("- `--%s%s` %s", f.Name, kind, strings.Replace(usage, jsonSources, " (JSON)", 1))
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
	default:
		if !strings.Contains(usage, "(default") {
			entry += fmt.Sprintf(" (default `%s`)", f.DefValue)
		}
	}
	return entry + "\n"
}

// exitCodesOf returns the exit codes that the help of a command lists, in one line.
func exitCodesOf(cmd *cobra.Command) string {
	m := exitCodes.FindStringSubmatch(cmd.Long + "\n")
	if m == nil {
		return ""
	}
	var codes []string
	for line := range strings.Lines(m[1]) {
		text := strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, "     ") {
			codes[len(codes)-1] += " " + text
			continue
		}
		code, meaning, _ := strings.Cut(text, " ")
		codes = append(codes, "**"+code+"** "+strings.ReplaceAll(meaning, ";", ","))
	}
	return strings.Join(codes, ", ")
}
