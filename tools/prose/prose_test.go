package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const style = "styles/Perdure"

// tree writes files into a folder, by their paths.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// collected returns all lines of a kind as path:line: text.
func collected(t *testing.T, root string, k kind) []string {
	t.Helper()
	passages, err := collect(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range passages {
		for _, l := range p.lines {
			if p.kind == k {
				all = append(all, p.path+":"+itoa(l.number)+": "+l.text)
			}
		}
	}
	return all
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

const command = "// Package p sends mail.\npackage p\n\n" + // lines 1 to 3
	"// Send sends a mail.\n//\n//\tcode is left out\n//\n//nolint:all\nfunc Send() error {\n" +
	"\tif err := try(); err != nil {\n\t\treturn fmt.Errorf(\"send mail: %w\", err)\n\t}\n" +
	"\tlog.WarnContext(ctx, \"mail not sent\", \"error\", errors.New(\"no such \"+\n\t\t\"mailbox\"))\n" +
	"\tcmd := &cobra.Command{Use: \"send FILE\", Short: \"Send a mail\", Long: `First line.\n\nThird line.`}\n" +
	"\tcmd.Flags().BoolVar(&all, \"all\", false, \"send all mail\")\n\tfmt.Fprintln(out, \"mail sent\")\n}\n\n" +
	"// quiet is not exported.\nfunc quiet() {}\n\n// Mail is a mail.\ntype Mail struct {\n\tTo string // address " +
	"of the recipient\n\tby string // not exported\n}\n\n" +
	"func (m *Mail) Error() string { return \"mail to \" + m.To + \" was rejected\" }\n"

func TestCollect_goFile_textsWithTheirLines(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"cmd/p/p.go": command, "cmd/p/p_test.go": "package p\n\nvar err = errors.New(\"of a test\")\n",
	})
	for k, want := range map[kind][]string{
		comments: {
			"cmd/p/p.go:1: Package p sends mail.", "cmd/p/p.go:4: Send sends a mail.", "cmd/p/p.go:5: ",
			"cmd/p/p.go:7: ",
			"cmd/p/p.go:27: address of the recipient", "cmd/p/p.go:25: Mail is a mail.",
		},
		failures: {
			"cmd/p/p.go:11: send mail: %w", "cmd/p/p.go:13: no such mailbox", "cmd/p/p.go:31: mail to",
			"cmd/p/p.go:31: was rejected",
		},
		logs: {"cmd/p/p.go:13: mail not sent"},
		cli: {
			"cmd/p/p.go:15: send FILE", "cmd/p/p.go:15: Send a mail", "cmd/p/p.go:15: First line.", "cmd/p/p.go:16: ",
			"cmd/p/p.go:17: Third line.",
			"cmd/p/p.go:18: send all mail", "cmd/p/p.go:19: mail sent",
		},
	} {
		if got := collected(t, root, k); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant:\n%s", k, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestCollect_page_leavesOutCodeAndMarks(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"docs/a.md":            "# Title\n\n<!-- a mark -->\nText.\n```go\ncode\n```\nMore.\n",
		"testdata/b.md":        "of a test\n",
		".venv/c.md":           "of a tool\n",
		"node_modules/d/d.md":  "of a package\n",
		"examples/x/README.md": "Example.\n",
	})
	want := []string{
		"docs/a.md:1: # Title", "docs/a.md:4: Text.", "docs/a.md:8: More.", "examples/x/README.md:1: Example.",
	}
	if got := collected(t, root, docs); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func banned(t *testing.T) []*regexp.Regexp {
	t.Helper()
	all, err := loadPatterns(style)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestIsDialect_bannedPhrases_areFound(t *testing.T) {
	t.Parallel()
	patterns := banned(t)
	for _, text := range []string{
		"What is lost of the table is lost for good.", "The run is over.", "It ends. Whoever waits is notified.",
		"- Of several the first waits.",
		"It is to be deferred itself.", "Nobody waits.", "The record is given back.", "a tenant by whom it was started",
		"The watch has failed.",
		"Such as has a codec is skipped.", "It bears that nothing was done.",
		"the queue of which no worker has reported",
		"A read costs one call, a write two.", "A start costs two writes, and the first turn one.",
		"Reads cost one unit, writes two.", "It keeps of two calls, one.", "Of two builds the newer one runs.",
		"The update is answered in the next turn.", "The mailbox answers the sender.", "It runs the turn and answers.",
	} {
		if !isDialect(text, patterns) {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{
		"The worker deletes the record.", "This page explains what happens.", "`told` and [a link](who-is-over.md)",
		"The instance has ended.",
		"A read costs one call. A write costs two calls.", "The history has three parts, and a small one follows.",
		"One of the two failures causes the next attempt.", "The answers are stored for 30 days.",
		"It delays one call by two seconds, and fails none.",
		"The behaviour is spelling, not dialect.",
	} {
		if isDialect(text, patterns) {
			t.Errorf("%q is found", text)
		}
	}
}

func TestMeasure_countsLinesOfAKind(t *testing.T) {
	t.Parallel()
	passages := []passage{
		{kind: logs, lines: []line{{1, "the run is over"}, {2, ""}, {3, "receive failed"}}},
		{kind: docs, lines: []line{{1, "Nobody waits."}}},
	}
	for _, s := range measure(passages, banned(t)) {
		if s.kind == logs && (s.matching != 1 || s.all != 2) {
			t.Errorf("%+v", s)
		}
	}
}

func TestParseScope_patterns_matchKindAndPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scope string
		kind  kind
		path  string
		want  bool
	}{
		{"docs/operate/**", docs, "docs/operate/a.md", true},
		{"docs/operate/**", docs, "docs/operate.md", false},
		{"docs/*.md", docs, "docs/guides/a.md", false},
		{"**/*.go", comments, "a.go", true},
		{"logs:**", logs, "client/a.go", true},
		{"logs:**", failures, "client/a.go", false},
		{"errors:client/*", failures, "client/a.go", true},
		{"errors:client/*", failures, "client/b/a.go", false},
	} {
		s, err := parseScope(c.scope)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.matches(c.kind, c.path); got != c.want {
			t.Errorf("%s matches %s:%s: %v", c.scope, c.kind, c.path, got)
		}
	}
	if _, err := parseScope("!prose:**"); err == nil {
		t.Error("a kind that does not exist is accepted")
	}
}

func TestScopes_contain_lastMatchDecides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(tree(t,
		map[string]string{"clean.txt": "# a comment\n\ndocs:docs/**\n!docs:docs/guides/**\ndocs:docs/guides/a.md\n"}),
		"clean.txt")
	s, err := loadScopes(file)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"docs/b.md": true, "docs/guides/b.md": false, "docs/guides/a.md": true, "README.md": false,
	} {
		if got := s.contain(docs, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// The test checks a small tree with the rules of the repository. Findings have their position in the sources, and only
// findings in a clean scope are an error.
func TestRun_onlyCleanScopesFail(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	root := tree(t, map[string]string{
		"a.go":                  "package a\n\nvar errA = errors.New(\"the run is over\")\n",
		"docs/a.md":             "# Runs\n\nA run starts. Whoever waits is notified.\n",
		"tools/prose/clean.txt": "# none\n",
	})
	config, err := os.ReadFile(filepath.Join(here, "..", ".vale.ini"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".vale.ini"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"tools/go.mod": "go.mod", "tools/go.sum": "go.sum", "tools/prose/styles": "prose/styles",
	} {
		if err := os.Symlink(filepath.Join(here, target), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for clean, wantErr := range map[string]bool{
		"# none\n": false, "docs:**\n": true, "docs:**\n!docs:docs/a.md\n": false, "errors:*.go\n": true,
		"logs:**\n": false,
	} {
		if err := os.WriteFile(filepath.Join(root, "tools/prose/clean.txt"), []byte(clean), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run(t.Context(), &out, options{root: root, verbose: true})
		if (err != nil) != wantErr {
			t.Errorf("%q: %v", clean, err)
		}
		for _, want := range []string{
			"a.go:3: errors: Use 'has ended", "docs/a.md:3: docs: Start the sentence", "dialect in docs     50.00 %",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in:\n%s", clean, want, out.String())
			}
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, options{root: root, exclude: true}); err != nil ||
		out.String() != "!docs:docs/a.md\n!errors:*.go\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}
