package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder has a start function whose stages take one second.
type recorder struct {
	mu      sync.Mutex
	started []string
	running int
	most    int
	fails   string
}

func (r *recorder) start(_ context.Context, s stage) result {
	r.mu.Lock()
	r.started = append(r.started, s.Target)
	r.running++
	r.most = max(r.most, r.running)
	r.mu.Unlock()
	time.Sleep(time.Second) // in virtual time
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if s.Target == r.fails {
		return result{stage: s, outcome: "failed", detail: "the log of " + s.Target}
	}
	return result{stage: s, outcome: "ok"}
}

func of(target string, cores float64, after ...string) stage {
	return stage{Target: target, Cores: cores, After: after, Time: time.Minute, CPU: time.Minute}
}

func TestRun_stagesThatFit_runSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		rec := &recorder{}
		r := &runner{out: &strings.Builder{}, cores: 2, start: rec.start}
		began := time.Now()
		if err := r.run(t.Context(), []stage{of("a", 1.5), of("b", 1.5), of("c", 0.5), of("d", 4)}); err != nil {
			t.Error(err)
		}
		// a and c run first, then b, then d. d needs more cores than the machine has, so d runs alone.
		if took := time.Since(began); rec.most != 2 || took != 3*time.Second {
			t.Errorf("%d stages ran at a time, for %v", rec.most, took)
		}
	})
}

func TestRun_stageFails_othersRunAndItsSuccessorsAreSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		rec := &recorder{fails: "a"}
		var out strings.Builder
		r := &runner{out: &out, cores: 1, start: rec.start}
		err := r.run(t.Context(), []stage{of("a", 1), of("b", 1, "a"), of("c", 1)})
		if err == nil || !strings.Contains(err.Error(), "2 of 3 stages failed") {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(rec.started, []string{"a", "c"}) || !strings.Contains(out.String(), "the log of a") {
			t.Errorf("started %q, printed\n%s", rec.started, out.String())
		}
	})
}

func TestRun_interrupted_startsNoFurtherStage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := &recorder{}
	r := &runner{out: &strings.Builder{}, cores: 1, start: rec.start}
	if err := r.run(ctx, []stage{of("a", 1)}); err == nil || len(rec.started) > 0 {
		t.Errorf("started %q, error %v", rec.started, err)
	}
}

const second = time.Second

func TestExcess_overBudgetByHalf_isReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result
		want string
	}{
		"within both": {result{took: 89 * second, cpu: 89 * second, idle: 0.9, slowdown: 1}, ""},
		"too much processor time": {
			result{took: second, cpu: 91 * second, slowdown: 1}, "used 91 s of processor time",
		},
		"too long on an idle machine":     {result{took: 91 * second, idle: 0.5, slowdown: 1}, "took 91 s"},
		"too long on a busy machine":      {result{took: 91 * second, idle: 0.1, slowdown: 1}, ""},
		"the machine is half as fast":     {result{took: 91 * second, cpu: 170 * second, idle: 0.5, slowdown: 2}, ""},
		"the machine is twice as fast":    {result{cpu: 89 * second, slowdown: 0.5}, ""},
		"too much even on a slow machine": {result{cpu: 181 * second, slowdown: 2}, "used 181 s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.stage = of("a", 1)
			if got := c.excess(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSlowest_eventsOfATest_namesTheSlowestFirst(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	events := `{"Action":"pass","Package":"p","Test":"TestQuick","Elapsed":0.1}
{"Action":"pass","Package":"p","Test":"TestSlow/part","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestSlow","Elapsed":9.5}
{"Action":"pass","Package":"p","Elapsed":10}
{"Action":"pa`
	if err := os.WriteFile(filepath.Join(logs, "stage-1.json"), []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(slowest(logs, "stage", 10), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "9.5 s  p TestSlow") || !strings.Contains(lines[2], "TestQuick") {
		t.Errorf("got %q", lines)
	}
	if got := slowest(logs, "other", 10); !strings.Contains(got, "other.log") {
		t.Errorf("a stage without Go tests: %q", got)
	}
}

func TestReadPlan_fileOfTheRepository_namesTargetsOfTheMakefile(t *testing.T) {
	t.Parallel()
	p, err := readPlan("../../" + planFile)
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Stages {
		if !strings.Contains(string(makefile), "\n"+s.Target+":") {
			t.Errorf("the Makefile has no target %s", s.Target)
		}
	}
	for _, name := range p.Suites {
		if stages, err := p.suite(name); err != nil || len(stages) == 0 {
			t.Errorf("suite %s: %d stages, %v", name, len(stages), err)
		}
	}
	if _, err := p.suite("none"); err == nil {
		t.Error("an unknown suite has stages")
	}
}

// Otherwise a test that is renamed or moved runs twice, or never.
func TestMakefile_testsWithoutRaceDetector_areInPackagesThatRunThem(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for file, packages := range map[string]*regexp.Regexp{
		"plain.txt":   regexp.MustCompile(`(?m)^RACED := \$\(addprefix github.com/perdure/perdure/,(.+)\)$`),
		"unraced.txt": regexp.MustCompile(`(?m)^\t.* -run '\$\(UNRACED\)' (.+)$`),
	} {
		listed := packages.FindSubmatch(makefile)
		if listed == nil {
			t.Fatalf("the Makefile does not run %s as %s", file, packages)
		}
		found := map[string]bool{}
		dirs := append(strings.Fields(string(listed[1])), "dispatch") // test-dispatch runs all its tests, and RACED has it
		for _, dir := range dirs {
			tests, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			if err != nil || len(tests) == 0 {
				t.Errorf("%s: package %s has no tests: %v", file, dir, err)
			}
			for _, path := range tests {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range testFunction.FindAllSubmatch(text, -1) {
					found[string(f[1])] = true
				}
			}
		}
		names, err := os.ReadFile("../../tests/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(names)) {
			if name = strings.TrimSpace(name); !strings.HasPrefix(name, "#") && !found[name] {
				t.Errorf("no package that runs the tests of %s has %q", file, name)
			}
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func TestReadPlan_badFile_namesTheField(t *testing.T) {
	t.Parallel()
	const head = "reference: 30ms\nsuites: [test]\nstages:\n"
	const ok = "  - {target: a, suites: [test], time: 1m, cpu: 1m, cores: 1}\n"
	for name, c := range map[string]struct{ file, want string }{
		"unknown field": {head + "  - {target: a, suite: [test]}\n", "field suite not found"},
		"no budget":     {head + "  - {target: a, suites: [test], cores: 1}\n", "time, cpu and cores must be positive"},
		"twice":         {head + ok + ok, `"a": empty or listed twice`},
		"unknown suite": {
			head + "  - {target: a, suites: [tests], time: 1m, cpu: 1m, cores: 1}\n", `unknown suite "tests"`,
		},
		"after nothing": {head + strings.Replace(ok, "time:", "after: [b], time:", 1), `after names "b"`},
		"no reference":  {"suites: [test]\n", "reference must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stages.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readPlan(file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
