package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
)

// poller returns an instance that continues as new after a minute, and ends a minute later.
func poller(t *testing.T, end history.Event) *tool {
	t.Helper()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "poller", "--input", `{"round":1}`)
	h.Append("poller", at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1.0.0", BuildID: "b-1"}),
		at(time.Second, history.Event{
			Kind: history.ActivityScheduled, Name: "poll", Queue: "default", Input: history.Payload("1"),
		}))
	time.AfterFunc(time.Minute, func() {
		h.Append("poller", at(time.Minute, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Result: history.Payload(`"<none>"`),
		}),
			at(time.Minute, history.Event{
				Kind: history.OrchestrationContinuedAsNew, Input: history.Payload(`{"round":2}`),
			}))
	})
	time.AfterFunc(2*time.Minute, func() {
		h.Append("poller",
			at(time.Minute+time.Second, history.Event{Kind: history.TurnStarted, Version: "1.1.0", BuildID: "b-2"}),
			at(2*time.Minute, end))
	})
	return h
}

func TestWatch_continuedInstance_printsBothExecutions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := poller(t, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(`"\u001b[2Jdone"`)})
		from := time.Now()
		h.mustRun("watch", "poller")
		h.wantGolden("watch.golden")
		if late := time.Since(from) - 2*time.Minute; late < 0 || late > time.Second {
			t.Errorf("noticed %s after the end", late)
		}
	})
}

func TestWatch_newEvents_arePrintedWhenCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := poller(t, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
		out := &stamped{from: time.Now()}
		open := func(context.Context, string) (cli.Hub, error) { return cli.NewHub(h.Provider), nil }
		env := &cli.Env{OpenHub: open, Getenv: func(string) string { return "" }, Stdout: out, Stderr: &h.err}
		if code := run(t.Context(), env, []string{"watch", "poller", "--json"}); code != cli.CodeOK {
			t.Fatalf("exit %d: %s", code, h.err.String())
		}
		want := []time.Duration{0, 0, 0, time.Minute, time.Minute, time.Minute, 2 * time.Minute, 2 * time.Minute}
		if len(out.at) != len(want) {
			t.Fatalf("printed at %v", out.at)
		}
		for i, at := range out.at {
			if late := at - want[i]; late < 0 || late > time.Second {
				t.Errorf("line %d at %s, want %s", i+1, at, want[i])
			}
		}
	})
}

// stamped records the time of each write.
type stamped struct {
	from time.Time
	at   []time.Duration
}

func (s *stamped) Write(b []byte) (int, error) {
	s.at = append(s.at, time.Since(s.from))
	return len(b), nil
}

func TestWatch_json_printsOneEventPerLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := poller(t, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
		var kinds []string
		for line := range strings.Lines(h.mustRun("watch", "poller", "--json")) {
			var e history.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Validate() != nil {
				t.Errorf("%s: %v", line, err)
			}
			kinds = append(kinds, string(e.Kind))
		}
		want := "OrchestrationStarted TurnStarted ActivityScheduled ActivityCompleted OrchestrationContinuedAsNew " +
			"OrchestrationStarted TurnStarted OrchestrationCompleted"
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("printed %s", got)
		}
	})
}

func TestWatch_instanceEnds_returnsExitCodeOfStatus(t *testing.T) {
	t.Parallel()
	for kind, want := range map[history.Kind]int{
		history.OrchestrationCompleted:  cli.CodeOK,
		history.OrchestrationFailed:     cli.CodeFailed,
		history.OrchestrationCancelled:  cli.CodeCancelled,
		history.OrchestrationTerminated: cli.CodeCancelled,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := poller(t, history.Event{
				Kind: kind, Output: history.Payload("1"), Error: &history.Failure{Type: "error", Message: "x"},
			})
			if code := h.run(t.Context(), "watch", "poller"); code != want || h.err.Len() > 0 ||
				!strings.Contains(h.out.String(), string(kind)) {
				t.Errorf("%s: exit %d, %s", kind, code, h.err.String())
			}
		})
	}
}

func TestWatch_timeoutOrInterrupt_isAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := poller(t, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
		from := time.Now()
		if code := h.run(t.Context(), "watch", "poller", "--timeout", "95s", "--interval",
			"10s"); code != cli.CodeTimeout || !strings.Contains(h.err.String(), "not ended after 1m35s") {
			t.Errorf("exit %d: %s", code, h.err.String())
		}
		if took := time.Since(from); took != 95*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if code := h.run(ctx, "watch", "poller"); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "the instance continues, repeat perdure watch poller") {
			t.Errorf("exit %d: %s", code, h.err.String())
		}
		time.Sleep(time.Minute) // for the remaining events
	})
}

func TestWatch_invalidArguments_areErrors(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "run perdure list", "watch", "missing")
	h.wantError(cli.CodeError, "instanceId must be 1 to", "watch", "")
	h.wantError(cli.CodeError, "--interval must be more than 0s, is -1s", "watch", "one", "--interval", "-1s")
	h.wantError(cli.CodeError, "--interval must be more than 0s", "watch", "one", "--interval", "0s")
	h.wantError(cli.CodeError, "missing argument ID; usage: perdure watch ID", "watch")
}
