// Planted tests the tests: it builds the engine with one fault at a time, and fails if the tests that should find the
// fault pass.
//
//	go run -C tools ./planted ..                        all faults in dispatch/testdata/planted, takes some minutes
//	go run -C tools ./planted .. step-after-its-cancel  the named faults
//	go run -C tools ./planted -short ..                 with short tests as in make test, which must find 90 %
//
// A fault is a file. It has a description, the arguments of `go test` that find the fault (a line "test: …"), and
// replacements. A replacement names a file, the text in the file and the new text. Planted does not change source
// files: it passes the faulty files to the compiler with -overlay.
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

// folder is the directory of the faults.
const folder = "dispatch/testdata/planted"

// shortShare is the minimum share of the faults, in percent, that short tests find.
const shortShare = 90

func main() {
	short := flag.Bool("short", false, "run the tests with -short, which may miss a tenth of the faults")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(os.Stderr, "usage: planted [-short] MODULE [FAULT...]")
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
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

// run tests the named faults, or all, concurrently, and prints for each whether a test found it.
func run(ctx context.Context, out io.Writer, short bool, module string, names []string) error {
	faults, err := read(module)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	if short {
		for i := range faults {
			faults[i].tests = append([]string{"-short"}, faults[i].tests...)
		}
	}

	t := tally{out: out}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i := range faults {
		group.Go(func() error {
			by, err := faults[i].find(ctx, module)
			if err != nil {
				return err
			}
			return t.add(&faults[i], by)
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // of this package
	}
	return t.check(short)
}

// tally prints each fault, and counts the found ones.
type tally struct {
	mu           sync.Mutex
	out          io.Writer
	found, tried int
}

func (t *tally) add(f *fault, by string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried++
	if by == "" {
		by = "NOT FOUND"
	} else {
		t.found++
	}
	if _, err := fmt.Fprintf(t.out, "%s: %s\n\t%s\n", f.name, f.what, by); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// check prints the counts, and returns an error if tests found too few faults.
func (t *tally) check(short bool) error {
	if _, err := fmt.Fprintf(t.out, "%d of %d faults were found\n", t.found, t.tried); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if missed := t.tried - t.found; missed > 0 && (!short || t.found*100 < t.tried*shortShare) {
		return fmt.Errorf("%d faults were not found", missed)
	}
	return nil
}

// fault is a change of the code that tests must find.
type fault struct {
	name, what string
	tests      []string
	changes    map[string]string // the faulty files, by their names in the module
}

// read reads all faults, and creates their faulty files. It returns an error if a fault does not match the code.
func read(module string) ([]fault, error) {
	paths, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(folder), "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no fault is in %s: %w", folder, err)
	}
	faults := make([]fault, len(paths))
	for i, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a fault: %w", err)
		}
		f := &faults[i]
		f.name, f.changes = strings.TrimSuffix(filepath.Base(path), ".txt"), map[string]string{}
		what, tests, ok := strings.Cut(string(archive.Comment), "\ntest: ")
		if f.what, f.tests = strings.Join(strings.Fields(what), " "), strings.Fields(tests); !ok || len(f.tests) == 0 {
			return nil, fmt.Errorf("%s does not say which tests find it", f.name)
		}
		for _, c := range archive.Files {
			if err := f.change(module, c.Name, string(c.Data)); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.name, c.Name, err)
			}
		}
	}
	return faults, nil
}

// between separates the old text from the new one.
const between = "====\n"

func (f *fault) change(module, file, change string) error {
	text, ok := f.changes[file]
	if !ok {
		b, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(file))) //nolint:gosec // a file of this module
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		text = string(b)
	}
	was, is, ok := strings.Cut(change, between)
	if !ok {
		return errors.New("what is there, and what takes its place, have no line ==== between them")
	}
	if n := strings.Count(text, was); n != 1 {
		return fmt.Errorf("this is there %d times, and must be once:\n%s", n, was)
	}
	f.changes[file] = strings.Replace(text, was, is, 1)
	return nil
}

// find runs the tests of a fault on the faulty code, and returns the first one that fails, or an empty string.
func (f *fault) find(ctx context.Context, module string) (by string, err error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", fmt.Errorf("a folder for the faulty files: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // at most a few KB remain
	module, err = filepath.Abs(module)
	if err != nil {
		return "", fmt.Errorf("the module: %w", err)
	}
	replace := map[string]string{}
	for file, text := range f.changes {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("a faulty file: %w", err)
		}
		replace[filepath.Join(module, filepath.FromSlash(file))] = at
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("the overlay: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return "", fmt.Errorf("the overlay: %w", err)
	}

	// without vet, because a test must find the fault
	args := append([]string{"test", "-count=1", "-vet=off", "-overlay=" + list}, f.tests...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // arguments are in this module
	cmd.Dir = module
	printed, failed := cmd.CombinedOutput()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", f.name, err)
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
		return "", fmt.Errorf("%s: no test ran: %w\n%s", f.name, failed, printed)
	}
	return "found by " + strings.TrimSpace(by), nil
}
