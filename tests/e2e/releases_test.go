package e2e_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/e2e/app"
	"github.com/perdure/perdure/tests/scenarios"
)

var (
	// fromRelease selects the earlier release of TestReleases.
	fromRelease = flag.String("from", "", "of TestReleases: run the functions of this revision beside the current ones")
	// somePhases selects phases of TestReleases.
	somePhases = flag.String("phases", "", "of TestReleases: run these phases alone, such as earlier,current")
)

const (
	releasesHub = "releases"
	// cancelledActivity is the ID of the activity of "one-of-two".
	cancelledActivity = 3
	// endLimit is the time limit of an instance after the last phase.
	endLimit = 3 * time.Minute
)

// longTimeouts replaces the timeouts of deployStack, which are short for tests of crashes. On a busy machine, turns
// would exceed them.
var longTimeouts = []string{
	"--param", "InboxTimeout=20", "--param", "InboxVisibility=20", "--param", "WorkTimeout=30",
	"--param", "LockTimeout=20", "--param", "LockRenewalBuffer=10",
}

// releasePhases are the functions of the current release in a hub whose other functions are of the earlier release. The
// stack has the current template from the first complete deployment on.
var releasePhases = []struct {
	name    string
	current []string
}{
	{"earlier", nil},
	{"current-orchestrator-and-api", []string{"orchestrator", "api"}},
	{"current-worker-and-renewer", []string{"worker", "renewer"}},
	{"current", functionNames},
	{"rollback", nil},
	{"current-again", functionNames},
}

// checkout writes the files of a revision of this repository to a directory.
func checkout(t *testing.T, revision string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	archive := filepath.Join(t.TempDir(), "source.tar")
	for _, args := range [][]string{
		{"git", "-C", filepath.Join("..", ".."), "archive", "--format=tar", "--output=" + archive, revision},
		{"tar", "-xf", archive, "-C", dir},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// isIn reports whether a file in a directory contains a text.
func isIn(ctx context.Context, dir, text string) bool {
	return exec.CommandContext(ctx, "grep", "-rqF", text, dir).Run() == nil
}

// mixBinaries returns a directory with the named functions of one release and the other functions of another.
func mixBinaries(t *testing.T, current string, names []string, earlier string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range functionNames {
		from := earlier
		if slices.Contains(names, name) {
			from = current
		}
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectedEnd is an instance and the status in which it ends.
type expectedEnd struct {
	instance string
	status   client.RuntimeStatus
	output   string // JSON; empty if any
}

// startStates starts an instance for each state that an instance can be in, and returns their ends. The event "word"
// ends those that wait.
func startStates(t *testing.T, c *client.Client, phase string) (all []expectedEnd, waiting []string) {
	t.Helper()
	start := func(state, orchestration string, input any, status client.RuntimeStatus, output string,
		options ...client.StartOption,
	) string {
		t.Helper()
		instance := phase + "-" + state
		_, err := c.Start(t.Context(), orchestration, input, append(options, client.WithInstanceID(instance))...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, expectedEnd{instance, status, output})
		return instance
	}
	const word = `"go at last"`
	start("ended", "hello", "world", client.StatusCompleted, `"hello, world"`)
	start("failed", "fails", struct{}{}, client.StatusFailed, "")
	start("in-timer", "timer", 8*time.Second, client.StatusCompleted, "")
	start("in-activities", "naps", app.Naps{Count: 10, Each: time.Second}, client.StatusCompleted, "10")
	start("delayed", "hello", "later", client.StatusCompleted, `"hello, later"`, client.WithDelay(20*time.Second))
	waiting = append(waiting, start("waiting", "echo", nil, client.StatusCompleted, word))
	paused := start("paused", "echo", nil, client.StatusCompleted, word)
	cancelled := start("cancelled", "one-of-two", 0, client.StatusCompleted, `"requested: enough"`)
	terminated := start("terminated", "echo", nil, client.StatusTerminated, "")
	for _, instance := range []string{paused, cancelled, terminated} {
		if _, err := c.WaitForStart(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
	}
	for _, control := range []func() error{
		func() error { return c.Pause(t.Context(), paused, "upgrade") },
		func() error { return c.CancelActivity(t.Context(), cancelled, cancelledActivity, "enough") },
		func() error { return c.Terminate(t.Context(), terminated, "enough") },
	} {
		if err := control(); err != nil {
			t.Fatal(err)
		}
	}
	for range time.Tick(100 * time.Millisecond) { // a resume before the pause takes effect is an error
		s, err := c.Status(t.Context(), paused)
		if err != nil {
			t.Fatal(err)
		}
		if s.Status == client.StatusPaused {
			break
		}
	}
	return all, append(waiting, paused)
}

// continueWaiting resumes instances and sends the event for which they wait.
func continueWaiting(t *testing.T, c *client.Client, waiting []string) {
	t.Helper()
	for _, instance := range waiting {
		if strings.HasSuffix(instance, "-paused") {
			if err := c.Resume(t.Context(), instance, "upgraded"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.RaiseEvent(t.Context(), instance, "word", "go"); err != nil {
			t.Fatal(err)
		}
	}
}

// The functions of two releases work on one hub, during an upgrade, after it and after a rollback. Instances in any
// state end as expected, and both releases can read them.
func TestReleases_earlierFunctionsBesideCurrentOnes_completeInstances(t *testing.T) {
	if *fromRelease == "" {
		t.Skip("make test-upgrade FROM=REVISION runs this test")
	}
	source := checkout(t, *fromRelease)
	tests := filepath.Join(source, "tests", "e2e")
	earlier, current := buildBinariesOf(t, tests, "earlier"), buildBinaries(t, "current")
	earlierCLI := filepath.Join(t.TempDir(), "perdure")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", earlierCLI, "../../cmd/perdure")
	build.Dir = tests
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the earlier command: %v\n%s", err, out)
	}

	template := filepath.Join(source, "localstack", "template.golden.json")
	options := slices.Concat(longTimeouts, []string{"--template", template})
	var c *client.Client
	var all []expectedEnd
	var waiting []string
	for _, phase := range releasePhases {
		if *somePhases != "" && !slices.Contains(strings.Split(*somePhases, ","), phase.name) {
			continue
		}
		if len(phase.current) == len(functionNames) {
			options = longTimeouts
		}
		c = client.New(deployStack(t, releasesHub, mixBinaries(t, current, phase.current, earlier), options...))
		continueWaiting(t, c, waiting)
		var more []expectedEnd
		more, waiting = startStates(t, c, phase.name)
		all = append(all, more...)
		runScenarios(t, c, phase.name+"-", func(s *scenarios.Scenario) bool {
			return slices.Contains(encrypted, s.Name) &&
				isIn(t.Context(), filepath.Join(source, "tests", "scenarios"), `"`+s.Name+`"`)
		})
	}
	if c == nil {
		t.Fatalf("unknown phase %q", *somePhases)
	}
	continueWaiting(t, c, waiting)
	for _, want := range all {
		ctx, cancel := context.WithTimeout(t.Context(), endLimit)
		got, err := c.Wait(ctx, want.instance)
		cancel()
		if err != nil {
			t.Fatalf("%s: got error %v", want.instance, err)
		}
		if got.Status != want.status || want.output != "" && string(got.Output) != want.output {
			t.Errorf("%s: got %s %s, want %s %s", want.instance, got.Status, got.Output, want.status, want.output)
		}
		valid(t, c, want.instance)
		read := exec.CommandContext(t.Context(), earlierCLI, "history", want.instance, "--hub", releasesHub)
		read.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, client.EndpointVariable+"=")
		})
		if out, err := read.CombinedOutput(); err != nil {
			t.Errorf("%s: the earlier release cannot read the history: %v\n%s", want.instance, err, out)
		}
	}
}
