package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo"
)

// A developer works in a new module: perdure init writes it, and perdure dev runs it and prints its logs. A change is
// deployed to the running hub, and a waiting instance continues with the new code.
func TestDev_codeChanges_waitingInstanceContinues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "guests")
	if out, exit := perdure(t, "init", dir, "--replace", "../.."); exit != 0 {
		t.Fatalf("init: got exit code %d: %s", exit, out)
	}
	edit(t, dir, `	if err := ctx.Err(); err != nil {`, `	if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
		return "", fmt.Errorf("the mail server is down")
	}
	if err := ctx.Err(); err != nil {`)
	d := develop(t, dir)
	p, err := dynamo.Open(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(p)

	instance, err := c.Start(t.Context(), "welcome", map[string]string{"name": "Ada"}, client.WithInstanceID("ada"))
	if err != nil {
		t.Fatal(err)
	}
	if line := d.await(t, "the mail server is down"); !strings.Contains(line, " ada ") ||
		!strings.Contains(line, "worker-default") {
		t.Errorf("want the instance and the function in the log line: %q", line)
	}

	edit(t, dir, "has answered", "has answered at last")
	took := d.await(t, "running again")
	t.Log(took)
	if err := c.RaiseEvent(t.Context(), instance, "answered", nil); err != nil {
		t.Fatal(err)
	}
	s, err := c.Wait(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](s); err != nil || got != "Ada has answered at last" {
		t.Errorf("got %q, error %v", got, err)
	}

	edit(t, dir, "has answered", "has answered at last +")
	edit(t, dir, `at last +`, `at last" +`) // does not compile
	d.await(t, "the previous build is still running")
}

// edit replaces text in the application.
func edit(t *testing.T, dir, from, to string) {
	t.Helper()
	name := filepath.Join(dir, "guests.go")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s does not contain %q", name, from)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(b), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// development is a running perdure dev.
type development struct {
	lines chan string // lines of standard error
}

// develop starts perdure dev, sets its exported environment variables, and stops perdure dev when the test ends.
func develop(t *testing.T, dir string) *development {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, hub.perdure, "dev", dir, "--port", "0", "--hub", "default")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	exported, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	gotText, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &development{lines: make(chan string, 10_000)}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		stop()
		reading.Wait()
		// The error of the context replaces an exit code of 0.
		if err := cmd.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("perdure dev: got error %v, output:\n%s", err, d.rest())
		}
	})
	environment := make(chan string, 100)
	reading.Go(func() { lines(exported, environment) })
	reading.Go(func() { lines(gotText, d.lines) })
	d.await(t, "watching for changes")    // perdure dev has printed its environment before this line
	t.Setenv(client.EndpointVariable, "") // of another hub
	for range 5 {
		name, value, _ := strings.Cut(strings.TrimPrefix(<-environment, "export "), "=")
		t.Setenv(name, value)
	}
	return d
}

func lines(from io.Reader, to chan<- string) {
	defer close(to)
	for s := bufio.NewScanner(from); s.Scan(); {
		to <- s.Text()
	}
}

// rest returns the output of an ended perdure dev after the last awaited line.
func (d *development) rest() string {
	var rest strings.Builder
	for line := range d.lines {
		rest.WriteString(line + "\n")
	}
	return rest.String()
}

// await returns the next line that contains a text.
func (d *development) await(t *testing.T, text string) string {
	t.Helper()
	var seen []string
	limit := time.After(3 * time.Minute)
	for {
		select {
		case line, ok := <-d.lines:
			if !ok {
				t.Fatalf("perdure dev ended before it printed %q:\n%s", text, strings.Join(seen, "\n"))
			}
			if seen = append(seen, line); strings.Contains(line, text) {
				return line
			}
		case <-limit:
			t.Fatalf("perdure dev did not print %q:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}
