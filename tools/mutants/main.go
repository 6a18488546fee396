// Mutants tests the tests: it builds the engine with one mutant at a time, and fails if the tests that should find the
// mutant pass.
//
//	go run -C tools ./mutants ..                       all mutants in dispatch/testdata/mutants, takes some minutes
//	go run -C tools ./mutants .. r22-one-try-too-many  the named mutants
//	go run -C tools ./mutants -short ..                with short tests as in make test, which must find 90 %
//
// A mutant is a file. It has a description, the arguments of `go test` that find the mutant (a line "test: …"), and
// replacements. A replacement names a file, the text in the file and the new text. Mutants does not change source
// files: it passes the mutated files to the compiler with -overlay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/txtar"
)

// folder is the directory of the mutants.
const folder = "dispatch/testdata/mutants"

// shortShare is the minimum share of the mutants, in percent, that short tests find.
const shortShare = 90

func main() {
	short := flag.Bool("short", false, "run the tests with -short, which may miss a tenth of the mutants")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(os.Stderr, "usage: mutants [-short] MODULE [MUTANT...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *short, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

// run tests the named mutants, or all, concurrently, and prints for each whether a test found it.
func run(ctx context.Context, out io.Writer, short bool, module string, names []string) error {
	mutants, err := read(module)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !slices.Contains(names, m.name) })
	}
	if short {
		for i := range mutants {
			mutants[i].tests = append([]string{"-short"}, mutants[i].tests...)
		}
	}

	t := tally{out: out}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i := range mutants {
		group.Go(func() error {
			by, err := mutants[i].find(ctx, module)
			if err != nil {
				return err
			}
			return t.add(&mutants[i], by)
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // of this package
	}
	return t.check(short)
}

// tally prints each mutant, and counts the found ones.
type tally struct {
	mu           sync.Mutex
	out          io.Writer
	found, tried int
}

func (t *tally) add(m *mutant, by string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried++
	if by == "" {
		by = "NOT FOUND"
	} else {
		t.found++
	}
	if _, err := fmt.Fprintf(t.out, "%s: %s\n\t%s\n", m.name, m.what, by); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// check prints the counts, and returns an error if tests found too few mutants.
func (t *tally) check(short bool) error {
	if _, err := fmt.Fprintf(t.out, "%d of %d mutants were found\n", t.found, t.tried); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if missed := t.tried - t.found; missed > 0 && (!short || t.found*100 < t.tried*shortShare) {
		return fmt.Errorf("%d mutants were not found", missed)
	}
	return nil
}

// mutant is a change of the code that tests must find.
type mutant struct {
	name, what string
	tests      []string
	changes    map[string]string // the mutated files, by their names in the module
}

// read reads all mutants, and creates their mutated files. It returns an error if a mutant does not match the code.
func read(module string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(folder), "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no mutants in %s: %w", folder, err)
	}
	mutants := make([]mutant, len(paths))
	for i, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a mutant: %w", err)
		}
		m := &mutants[i]
		m.name, m.changes = strings.TrimSuffix(filepath.Base(path), ".txt"), map[string]string{}
		what, tests, ok := strings.Cut(string(archive.Comment), "\ntest: ")
		if m.what, m.tests = strings.Join(strings.Fields(what), " "), strings.Fields(tests); !ok || len(m.tests) == 0 {
			return nil, fmt.Errorf("%s names no tests", m.name)
		}
		for _, c := range archive.Files {
			if err := m.change(module, c.Name, string(c.Data)); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", m.name, c.Name, err)
			}
		}
	}
	return mutants, nil
}

// separator separates the old text from the new one.
const separator = "====\n"

func (m *mutant) change(module, file, change string) error {
	text, ok := m.changes[file]
	if !ok {
		b, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(file))) //nolint:gosec // a file of this module
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		text = string(b)
	}
	old, replacement, ok := strings.Cut(change, separator)
	if !ok {
		return errors.New("the old and the new text have no line ==== between them")
	}
	if n := strings.Count(text, old); n != 1 {
		return fmt.Errorf("the old text occurs %d times instead of once:\n%s", n, old)
	}
	m.changes[file] = strings.Replace(text, old, replacement, 1)
	return nil
}

// find runs the tests of a mutant on the mutated code, and returns the first one that fails, or an empty string.
func (m *mutant) find(ctx context.Context, module string) (by string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", fmt.Errorf("create a directory for the mutated files: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // at most a few KB remain
	module, err = filepath.Abs(module)
	if err != nil {
		return "", fmt.Errorf("resolve the module: %w", err)
	}
	replace := map[string]string{}
	for file, text := range m.changes {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write a mutated file: %w", err)
		}
		replace[filepath.Join(module, filepath.FromSlash(file))] = at
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}

	// without vet, because a test must find the mutant
	args := append([]string{"test", "-count=1", "-vet=off", "-overlay=" + list}, m.tests...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // arguments are in this module
	cmd.Dir = module
	printed, failed := cmd.CombinedOutput()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", m.name, err)
	}
	if failed == nil {
		return "", nil
	}
	for line := range strings.Lines(string(printed)) {
		if _, test, ok := strings.Cut(line, "--- FAIL: "); ok {
			by, _, _ = strings.Cut(test, " ")
			if strings.HasPrefix(line, "    ") { // a subtest is more precise
				break
			}
		}
	}
	if by == "" && strings.Contains(string(printed), "panic: ") { // inside a synctest bubble, go test names no test
		by = "a panic"
	}
	if by == "" {
		return "", fmt.Errorf("%s: no test ran: %w\n%s", m.name, failed, printed)
	}
	return "found by " + strings.TrimSpace(by), nil
}
