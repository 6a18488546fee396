package runbooks_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// section is a section of the page. A test runs its blocks of commands in order.
type section struct {
	t      *testing.T
	on     *deployment
	blocks []string
	next   int
	// values are the values of the placeholders in capitals on the page.
	values map[string]string
}

// read returns a section of the page. The test fails unless it runs all blocks.
func read(t *testing.T, on *deployment, heading string, values map[string]string) *section {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")

	s := &section{t: t, on: on, values: values}
	var block *strings.Builder
	for line := range strings.Lines(text) {
		switch fence := strings.TrimSpace(line); {
		case fence == "```sh":
			block = &strings.Builder{}
		case fence == "```" && block != nil:
			s.blocks = append(s.blocks, block.String())
			block = nil
		case block != nil:
			block.WriteString(strings.TrimLeft(line, " "))
		}
	}
	if len(s.blocks) == 0 {
		t.Fatalf("the section %q has no commands", heading)
	}
	t.Cleanup(func() {
		if s.next != len(s.blocks) && !t.Failed() {
			t.Errorf("section %q: got %d command blocks, the test runs %d", heading, len(s.blocks), s.next)
		}
	})
	return s
}

// run executes the next block, which must succeed and print these texts.
func (s *section) run(mentions ...string) {
	s.t.Helper()
	if s.next == len(s.blocks) {
		s.t.Fatal("the section has no more blocks of commands")
	}
	block := s.blocks[s.next]
	s.next++
	cmd := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", block)
	cmd.Dir = s.t.TempDir() // for output files of the commands
	values := maps.Clone(s.on.cloud.Env)
	values["PATH"], values["TABLE"], values["AWS_DEFAULT_REGION"], values["AWS_PAGER"] = path, s.on.place.Table,
		s.on.cloud.Env["AWS_REGION"], ""
	maps.Copy(values, s.values)
	cmd.Env = os.Environ()
	for name, value := range values {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	s.t.Logf("%s\n%s", block, out)
	if err != nil {
		s.t.Fatalf("block %d: %v", s.next, err)
	}
	for _, text := range mentions {
		if !strings.Contains(string(out), text) {
			s.t.Errorf("block %d: want %q in the output", s.next, text)
		}
	}
}
