package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// finding is a place where a text breaks a rule.
type finding struct {
	kind     kind
	path     string
	line     int
	rule     string
	message  string
	severity string // error, warning or suggestion
}

// alert is a finding as Vale prints it.
type alert struct {
	Check    string `json:"Check"`
	Message  string `json:"Message"`
	Severity string `json:"Severity"`
	Line     int    `json:"Line"`
}

// source maps the lines of a temporary file to lines of the repository.
type source struct {
	kind  kind
	lines []place
}

type place struct {
	path string
	line int
}

// vale runs Vale on the pages, and on a temporary file for the texts of each kind and Go package.
func vale(ctx context.Context, root string, passages []passage) ([]finding, error) {
	dir, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sources, err := write(dir, root, passages)
	if err != nil {
		return nil, err
	}
	alerts, err := runVale(ctx, root, sources)
	if err != nil {
		return nil, err
	}
	return locate(sources, alerts)
}

// write writes the temporary files, and returns all files for Vale.
func write(dir, root string, passages []passage) (map[string]*source, error) {
	sources := map[string]*source{}
	texts := map[string]*strings.Builder{}
	for _, p := range passages {
		if p.kind == docs {
			sources[filepath.Join(root, p.path)] = &source{kind: docs, lines: []place{{path: p.path}}}
			continue
		}
		file := filepath.Join(dir,
			string(p.kind)+"."+strings.ReplaceAll(filepath.Dir(p.path), "/", ".")+extension(p.kind))
		if sources[file] == nil {
			sources[file], texts[file] = &source{kind: p.kind}, &strings.Builder{}
		}
		for _, l := range append(slices.Clone(p.lines), line{}) { // an empty line ends a paragraph
			_, _ = texts[file].WriteString(l.text + "\n")
			sources[file].lines = append(sources[file].lines, place{p.path, l.number})
		}
	}
	for file, text := range texts {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return nil, fmt.Errorf("prose: %w", err)
		}
	}
	return sources, nil
}

// extension returns the extension of a temporary file. .vale.ini assigns formats to extensions.
func extension(k kind) string {
	if k == comments {
		return ".godoc"
	}
	return ".message"
}

func runVale(ctx context.Context, root string, sources map[string]*source) (map[string][]alert, error) {
	files := make([]string, 0, len(sources))
	for file := range sources {
		files = append(files, file)
	}
	slices.Sort(files)
	args := []string{
		"tool", "-modfile=" + filepath.Join(root, "tools", "go.mod"), "vale", "--no-global", "--no-exit",
		"--output=JSON",
	}
	args = append(args, "--config="+filepath.Join(root, ".vale.ini"))
	cmd := exec.CommandContext(ctx, "go", append(args, files...)...) //nolint:gosec // arguments are ours
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("prose: vale: %w: %s%s", err, stdout.String(), stderr.String())
	}
	var alerts map[string][]alert
	if err := json.Unmarshal(stdout.Bytes(), &alerts); err != nil {
		return nil, fmt.Errorf("prose: vale: %w: %s", err, stdout.String())
	}
	return alerts, nil
}

// locate returns the findings with their positions in the repository.
func locate(sources map[string]*source, alerts map[string][]alert) ([]finding, error) {
	var found []finding
	for file, list := range alerts {
		s := sources[filepath.Clean(file)]
		if s == nil {
			return nil, errors.New("prose: vale reports on another file: " + file)
		}
		for _, a := range list {
			at := s.lines[0]
			if s.kind == docs {
				at.line = a.Line
			} else if a.Line >= 1 && a.Line <= len(s.lines) {
				at = s.lines[a.Line-1]
			}
			found = append(found, finding{s.kind, at.path, at.line, a.Check, a.Message, a.Severity})
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.path, b.path), a.line-b.line, strings.Compare(a.rule, b.rule),
			strings.Compare(a.message, b.message))
	})
	return slices.Compact(found), nil
}
