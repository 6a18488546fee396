package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestStart_printsID(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if _, err := ulid.ParseStrict(strings.TrimSpace(h.mustRun("start", "hello"))); err != nil {
		t.Errorf("printed %q: %v", h.out.String(), err)
	}
	if got := h.mustRun("start", "hello", "--id", "one"); got != "one\n" {
		t.Errorf("printed %q", got)
	}
	h.wantError(cli.CodeError, "already in use", "start", "hello", "--id", "one")
	h.wantError(cli.CodeError, `by orchestration "hello", Pending, started at 20`, "start", "hello", "--id", "one")
	want := `{"instanceId":"a/b","links":{"status":"/v1/instances/~YS9i","result":"/v1/instances/~YS9i/result","history":"/v1/instances/~YS9i/history","executions":"/v1/instances/~YS9i/executions"}}` + "\n"
	if got := h.mustRun("start", "hello", "--id", "a/b", "--json"); got != want {
		t.Errorf("printed %s", got)
	}
}

func TestStart_inputOfFlagFileOrStdin_isRecorded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(file, []byte(`{"from":"file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		`{"n":1}`: `{"n":1}`, "@" + file: `{"from":"file"}`, "-": `{"from":"stdin"}`, "null": "null",
	} {
		h := setup(t)
		h.in = `{"from":"stdin"}`
		h.mustRun("start", "hello", "--id", "one", "--input", flag, "--version", "1.0.0", "--tag", "a=b=c", "--tag",
			"d=")
		for e, err := range client.New(h.Provider).History(t.Context(), "one") {
			if err != nil || string(e.Input) != want || e.Version != "1.0.0" || e.Tags["a"] != "b=c" ||
				len(e.Tags) != 2 {
				t.Errorf("%s: %s %s %v, %v", flag, e.Input, e.Version, e.Tags, err)
			}
		}
	}
}

func TestStart_delay_isShownByStatus(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--delay", "1h30m")
	h.SetParent("one", history.Parent{InstanceID: "its parent", ExecutionID: "x9", EventID: 4})
	got := h.mustRun("status", "one")
	for _, want := range []string{
		"Start at       2026-07-01T04:30:00Z\n", "Parent         its parent, event #4 of execution x9\n",
		"Execution      x1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if got := h.mustRun("status", "one", "--json"); !strings.Contains(got,
		`"startAt":"2026-07-01T04:30:00Z","parent":{"instanceId":"its parent",`) {
		t.Errorf("printed %s", got)
	}
}

func TestStart_sameIdempotencyKey_printsSameID(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first := h.mustRun("start", "hello", "--idempotency-key", "k")
	if again, other := h.mustRun("start", "hello", "--idempotency-key", "k"),
		h.mustRun("start", "hello", "--idempotency-key", "l"); again != first || other == first {
		t.Errorf("started %s, %s and %s", first, again, other)
	}
	h.mustRun("start", "hello", "--id", "one", "--idempotency-key", "k")
	h.wantError(cli.CodeError, "already in use", "start", "hello", "--id", "one", "--idempotency-key", "l")
}

func TestStart_ifExists_ignoresOrReplaces(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--tag", "n=1")
	if got := h.mustRun("start", "hello", "--id", "one", "--if-exists", "ignore"); got != "one\n" {
		t.Errorf("printed %q", got)
	}
	h.wantError(cli.CodeError, "must be ignore or replace", "start", "hello", "--id", "one", "--if-exists", "keep")
	h.wantError(cli.CodeError, "requires an instance ID", "start", "hello", "--if-exists", "replace")
	if got := h.mustRun("status", "one"); !strings.Contains(got, "n=1") {
		t.Errorf("replaced: %s", got)
	}
	h.Append("one", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.mustRun("start", "hello", "--id", "one", "--if-exists", "replace", "--idempotency-key", "k")
	if got := h.mustRun("status", "one"); strings.Contains(got, "n=1") || !strings.Contains(got, "Pending") {
		t.Errorf("not replaced: %s", got)
	}
	h.mustRun("purge", "one", "--force")
	h.wantError(cli.CodeError, "was purged", "start", "hello", "--id", "one", "--if-exists", "replace",
		"--idempotency-key", "k")
}

func TestStart_withEvent_startsOrRaises(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.in = `{"from":"stdin"}`
	args := []string{"start", "hello", "--id", "one", "--event", "paid", "--data", "-", "--idempotency-key", "k"}
	if got := h.mustRun(args...); got != "one\n" || h.err.Len() > 0 {
		t.Errorf("printed %q, %q", got, h.err.String())
	}
	if got := h.mustRun("start", "hello", "--id", "one", "--event", "nudge"); got != "one\n" ||
		!strings.Contains(h.err.String(), "instance already exists") {
		t.Errorf("printed %q, %q", got, h.err.String())
	}
	if got := h.mustRun("start", "hello", "--id", "one", "--event", "nudge", "--json"); !strings.HasSuffix(got,
		`,"started":false}`+"\n") {
		t.Errorf("printed %q", got)
	}
	sent := h.Sent()
	if len(sent) != 3 || sent[0].Name != "paid" || sent[0].EventID != "k" || string(sent[0].Data) != h.in ||
		string(sent[1].Data) != "null" || sent[1].EventID == "" {
		t.Errorf("sent %+v", sent)
	}
	h.wantError(cli.CodeError, "instanceId is required", "start", "hello", "--event", "paid")
	h.wantError(cli.CodeError, "requires --event or --update", "start", "hello", "--id", "two", "--data", "1")
	h.wantError(cli.CodeError, "cannot be read from stdin", "start", "hello", "--id", "two", "--event", "paid",
		"--data", "-", "--input", "-")
	h.Append("one", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(cli.CodeError, "has ended", "start", "hello", "--id", "one", "--event", "paid")
}

func TestStart_withUpdate_startsOrUpdates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			switch m.Name {
			case "slow":
				return nil
			case "lost":
				return &provider.UpdateResult{
					Outcome: provider.UpdateRejected, Reason: history.RejectedNoHandler,
					Error: &history.Failure{Message: `it has ["address"]`},
				}
			default:
				return &provider.UpdateResult{
					Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
				}
			}
		})
		h.in = `{"from":"stdin"}`
		args := []string{
			"start", "hello", "--id", "one", "--update", "address", "--data", "-", "--idempotency-key", "k",
		}
		if got := h.mustRun(args...); got != `{"with":{"from":"stdin"}}`+"\n" || h.err.Len() > 0 {
			t.Errorf("printed %q, %q", got, h.err.String())
		}
		if got := h.mustRun("start", "hello", "--id", "one", "--update", "address"); got != `{"with":null}`+"\n" ||
			!strings.Contains(h.err.String(), "instance already exists; sent the update") {
			t.Errorf("printed %q, %q", got, h.err.String())
		}
		h.err.Reset()
		const links = `"links":{"status":"/v1/instances/one","result":"/v1/instances/one/result","history":"/v1/instances/one/history","executions":"/v1/instances/one/executions"}}` + "\n"
		if got := h.mustRun(append(args,
			"--json")...); got != `{"instanceId":"one","update":"address","updateId":"k","result":{"with":{"from":"stdin"}},"started":true,`+links || h.err.Len() > 0 {
			t.Errorf("printed %q, %q", got, h.err.String())
		}
		h.wantError(cli.CodeTimeout, "to wait for it, run perdure update one slow --update-id u-2", "start", "hello",
			"--id", "one", "--update", "slow", "--idempotency-key", "u-2", "--timeout", "3s")
		h.wantError(cli.CodeError, `it has ["address"]`, "start", "hello", "--id", "one", "--update", "lost")
		sent := len(h.Sent())
		h.wantError(cli.CodeError, "instanceId is required", "start", "hello", "--update", "address")
		h.wantError(cli.CodeError, "--update and --event are mutually exclusive", "start", "hello", "--id", "two",
			"--event", "paid", "--update", "address")
		h.wantError(cli.CodeError, "--wait and --update are mutually exclusive", "start", "hello", "--id", "two",
			"--update", "address", "--wait")
		h.wantError(cli.CodeError, "--timeout requires --update", "start", "hello", "--id", "two", "--timeout", "1s")
		h.wantError(cli.CodeError, "cannot be read from stdin", "start", "hello", "--id", "two", "--update", "address",
			"--data", "-", "--input", "-")
		h.Append("one", at(0, history.Event{Kind: history.OrchestrationCompleted}))
		h.wantError(cli.CodeError, "has ended", "start", "hello", "--id", "one", "--update", "address")
		if len(h.Sent()) > sent {
			t.Errorf("sent %+v", h.Sent()[sent:])
		}
	})
}

func TestRaiseAndTerminate_sendMessages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.in = `{"from":"stdin"}`
	if got := h.mustRun("raise", "one", "approved", "--data", "-", "--event-id", "e-1"); got != "" {
		t.Errorf("printed %q", got)
	}
	if got := h.mustRun("raise", "one", "nudge", "--json"); got != `{"instanceId":"one"}`+"\n" {
		t.Errorf("printed %q", got)
	}
	h.mustRun("terminate", "one", "--message", "enough")
	sent := h.Sent()
	if len(sent) != 3 || sent[0].Name != "approved" || sent[0].EventID != "e-1" || string(sent[0].Data) != h.in ||
		string(sent[1].Data) != "null" || sent[1].EventID == "" || sent[2].Text != "enough" {
		t.Errorf("sent %+v", sent)
	}
}

func TestCancel_instanceOrActivity_sendsRequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.Append("one", at(0, history.Event{Kind: history.ActivityScheduled, Name: "charge"}))
	if got := h.mustRun("cancel", "one", "--message", "withdrawn"); got != "" {
		t.Errorf("printed %q", got)
	}
	if got := h.mustRun("cancel", "one", "--activity", "2", "--message", "carrier is down",
		"--json"); got != `{"instanceId":"one"}`+"\n" {
		t.Errorf("printed %q", got)
	}
	in, err := h.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Message{
		{
			Kind: provider.MessageCancel, InstanceID: "one", StartID: in.StartID, Reason: "requested",
			RequestedBy: "client", Text: "withdrawn",
		},
		{
			Kind: provider.MessageCancelActivity, InstanceID: "one", ExecutionID: "x1", ActivityID: 2,
			Text: "carrier is down",
		},
	}
	if diff := cmp.Diff(want, h.Sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// pause and resume accept an instance ID. resume reports an instance that is not paused and does not change it.
func TestPauseAndResume_instance_sendRequests(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	if got := h.mustRun("pause", "one", "--message", "to look at it"); got != "" {
		t.Errorf("printed %q", got)
	}
	h.mustRun("resume", "one")
	if got := h.err.String(); !strings.Contains(got, "one is not recorded as paused") {
		t.Errorf("not paused: %q", got)
	}
	if got := h.mustRun("resume", "one", "--json"); got != `{"instanceId":"one","notPaused":true}`+"\n" {
		t.Errorf("printed %q", got)
	}
	h.Append("one", at(time.Second, history.Event{
		Kind: history.ExecutionSuspended, Message: "to look at it", RequestedBy: "ann",
	}))
	if got := h.mustRun("resume", "one", "--json"); got != `{"instanceId":"one"}`+"\n" {
		t.Errorf("printed %q", got)
	}
	for _, verb := range []string{"status", "why"} {
		if got := h.mustRun(verb, "one"); !strings.Contains(got, `by ann: "to look at it"`) ||
			!strings.Contains(got, "Paused") {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if got := h.mustRun("history", "one"); !strings.Contains(got, `ExecutionSuspended`) ||
		!strings.Contains(got, `"to look at it" by ann`) {
		t.Errorf("history: %s", got)
	}
	if got := h.mustRun("list", "--status", "Paused"); !strings.Contains(got, "\none ") {
		t.Errorf("list: %s", got)
	}

	var kinds []provider.MessageKind
	ids := map[string]bool{}
	for _, m := range h.Sent() {
		kinds = append(kinds, m.Kind)
		ids[m.EventID] = strings.HasPrefix(m.EventID, history.PauseIDPrefix) && m.StartID != "" && m.RequestedBy != ""
	}
	want := []provider.MessageKind{
		provider.MessageExecutionSuspended, provider.MessageExecutionResumed, provider.MessageExecutionResumed,
		provider.MessageExecutionResumed,
	}
	if !slices.Equal(kinds, want) || len(ids) != 4 || slices.Contains(slices.Collect(maps.Values(ids)), false) {
		t.Errorf("sent %+v", h.Sent())
	}
	h.wantError(cli.CodeError, "instance not found", "pause", "missing")
	h.Append("one", at(2*time.Second, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(cli.CodeError, "has ended", "resume", "one")
}

// All commands show the cancel reason, and wait returns its exit code.
func TestCommands_cancelledInstance_showReason(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	requested := at(time.Second, history.Event{
		Kind: history.CancelRequested, Reason: "requested", Message: "withdrawn",
		RequestedBy: history.RequestedByClient,
	})
	h.Append("one", requested)
	if got := h.mustRun("list", "--status", "Cancelling"); !strings.Contains(got, "\none ") {
		t.Errorf("cancelling: %s", got)
	}
	h.Append("one", at(3*time.Second, history.Event{
		Kind: history.OrchestrationCancelled, Reason: "requested", Message: "withdrawn",
	}))
	for verb, want := range map[string]string{
		"wait":        "Failure        cancelled (requested): withdrawn\n",
		"wait --json": `"status":"Cancelled","failure":{"type":"cancelled","message":"withdrawn","reason":"requested"}}`,
		"watch":       "requested \"withdrawn\"\n",
	} {
		words := strings.Fields(verb)
		if code := h.run(t.Context(), append(words, "one")...); code != cli.CodeCancelled ||
			!strings.Contains(h.out.String(), want) {
			t.Errorf("%s: exit %d: %s", verb, code, h.out.String())
		}
	}
	if got := h.mustRun("status", "one"); !strings.Contains(got, "Status         Cancelled after 3.00s\n") {
		t.Errorf("status: %s", got)
	}
	if got := h.mustRun("history", "one"); strings.Count(got, `requested "withdrawn"`) != 2 {
		t.Errorf("history: %s", got)
	}
}

func TestStatus_terminatedWithoutMessage_printsFailure(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.Append("one", at(time.Second, history.Event{Kind: history.OrchestrationTerminated}))
	if got := h.mustRun("status", "one"); !strings.Contains(got, "Failure        terminated\n") {
		t.Errorf("status: %s", got)
	}
}

func TestRaiseTerminateCancel_invalidArguments_sendNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.mustRun("start", "hello", "--id", "over")
	h.Append("over", history.Event{Kind: history.ActivityScheduled, Name: "charge"}, completed("1"))
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		mentions string
		args     []string
	}{
		{"expected 2 arguments; usage: perdure raise ID EVENT", []string{"raise", "one"}},
		{"expected 2 arguments", []string{"raise", "one", "e", "x"}},
		{"event must be 1 to 256 bytes, is 0", []string{"raise", "one", ""}},
		{"event must be 1 to 256 bytes, is 257", []string{"raise", "one", long(257)}},
		{"event has a control character", []string{"raise", "one", "a\nb"}},
		{"instanceId must be 1 to 1024 bytes", []string{"raise", "", "e"}},
		{"data is not valid JSON", []string{"raise", "one", "e", "--data", "{"}},
		{"data is not valid JSON", []string{"raise", "one", "e", "--data", ""}},
		{"payload too large", []string{"raise", "one", "e", "--data", `"` + long(200<<10) + `"`}},
		{"no-such-file", []string{"raise", "one", "e", "--data", "@no-such-file"}},
		{"eventId must be 1 to 256 bytes, is 0", []string{"raise", "one", "e", "--event-id", ""}},
		{"eventId must be 1 to 256 bytes, is 257", []string{"raise", "one", "e", "--event-id", long(257)}},
		{"eventId is not valid UTF-8", []string{"raise", "one", "e", "--event-id", "\xff"}},
		{"run perdure list", []string{"raise", "missing", "e"}},
		{"instance has ended; see perdure status", []string{"raise", "over", "e"}},
		{"missing argument ID", []string{"terminate"}},
		{`unexpected argument "x"`, []string{"terminate", "one", "x"}},
		{"message must be 0 to 1024 bytes, is 1025", []string{"terminate", "one", "--message", long(1025)}},
		{"run perdure list", []string{"terminate", "missing"}},
		{"instance has ended", []string{"terminate", "over"}},
		{"missing argument ID; usage: perdure cancel [ID]", []string{"cancel"}},
		{`unexpected argument "x"`, []string{"cancel", "one", "x"}},
		{"message must be 0 to 1024 bytes, is 1025", []string{"cancel", "one", "--message", long(1025)}},
		{"run perdure list", []string{"cancel", "missing"}},
		{"instance has ended; see perdure status", []string{"cancel", "over"}},
		{"run perdure list", []string{"cancel", "missing", "--activity", "2"}},
		{
			"activity not found in the current execution; perdure history lists",
			[]string{"cancel", "one", "--activity", "2"},
		},
		{"activity is not pending or running; see perdure history", []string{"cancel", "over", "--activity", "2"}},
		{"activityId must be at least 1, is 0", []string{"cancel", "one", "--activity", "0"}},
		{`invalid argument "charge" for "--activity"`, []string{"cancel", "one", "--activity", "charge"}},
	} {
		h.wantError(cli.CodeError, tt.mentions, tt.args...)
	}
	if sent := h.Sent(); len(sent) > 0 {
		t.Errorf("sent %+v", sent)
	}
}

func TestStart_inputIsTooLarge_isAnError(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.in = `"` + strings.Repeat("x", 1<<20) + `"`
	h.wantError(cli.CodeError, "payload too large: 1048578 bytes, limit 204800", "start", "hello", "--input", "-")
}

// The tool reads inputs up to the limit of a hub with a bucket. An input that is cut at a smaller limit is not JSON.
func TestRaise_hubHasPayloadStore_acceptsLargeData(t *testing.T) {
	t.Parallel()
	h, b := setup(t), &bucket{objects: map[string][]byte{}}
	h.client = client.New(&storing{h.Provider, b})
	h.mustRun("start", "hello", "--id", "one")
	h.in = `"` + strings.Repeat("x", 300<<10) + `"`
	h.mustRun("raise", "one", "scanned", "--data", "-")
	sent := h.Sent()
	if s, sealed := sent[len(sent)-1].Data.Encoded(); !sealed || string(b.objects[s.Key]) != h.in {
		t.Errorf("%+v is sent, and %d objects are stored", s, len(b.objects))
	}
}

func TestWait_instanceEnds_returnsExitCodeOfStatus(t *testing.T) {
	t.Parallel()
	for want, end := range map[int]history.Event{
		cli.CodeOK: completed(`{"ok":true}`),
		cli.CodeFailed: at(time.Second, history.Event{
			Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "OrderError", Message: "no stock"},
		}),
	} {
		h := setup(t)
		h.mustRun("start", "hello", "--id", "one")
		h.Append("one", end)
		if code := h.run(t.Context(), "wait", "one"); code != want || h.err.Len() > 0 {
			t.Errorf("%s: exit %d, want %d: %s", end.Kind, code, want, h.err.String())
		}
	}
}

func TestWait_instanceDoesNotEnd_timesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.mustRun("start", "hello", "--id", "one")
		h.wantError(cli.CodeTimeout, "instance has not ended after 3s and continues; see perdure history one", "wait",
			"one", "--timeout", "3s")
		if code := h.run(t.Context(), "wait", "one", "--timeout", "3s", "--json"); code != cli.CodeTimeout ||
			h.out.String() != `{"instanceId":"one","executionId":"x1","status":"Pending"}`+"\n" {
			t.Errorf("exit %d: %s", code, h.out.String())
		}
	})
}

// wait --started ends with the first turn, or when the instance ends before its first turn.
func TestWait_started_endsWithFirstTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.mustRun("start", "hello", "--id", "one")
		h.wantError(cli.CodeTimeout, "instance has not started after 3s", "wait", "one", "--started", "--timeout", "3s")
		if code := h.run(t.Context(), "wait", "one", "--started", "--timeout", "3s",
			"--json"); code != cli.CodeTimeout ||
			h.out.String() != `{"instanceId":"one","executionId":"x1","status":"Pending"}`+"\n" {
			t.Errorf("exit %d: %s", code, h.out.String())
		}
		time.AfterFunc(time.Minute, func() {
			h.Append("one", at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b"}))
		})
		if got := h.mustRun("wait", "one", "--started",
			"--json"); got != `{"instanceId":"one","executionId":"x1","status":"Running"}`+"\n" {
			t.Errorf("prints %s", got)
		}
		h.Append("one", at(time.Second, history.Event{
			Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "OrderError", Message: "no stock"},
		}))
		if got := h.mustRun("wait", "one", "--started"); !strings.Contains(got, "OrderError") {
			t.Errorf("prints %s", got)
		}
	})
}

func TestWait_interrupted_namesCommandToRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.mustRun("start", "hello", "--id", "one")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if code := h.run(ctx, "wait", "one"); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "the instance continues, repeat perdure wait one") {
			t.Errorf("exit %d: %s", code, h.err.String())
		}
	})
}

func TestStart_wait_returnsExitCodeOfStatus(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--wait":        "one\nInstance       one\n",
		"--wait --json": `{"instanceId":"one","executionId":"x1","status":"Failed","failure":{"type":"OrderError","message":"no stock"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := setup(t)
			failed := at(time.Second, history.Event{
				Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "OrderError", Message: "no stock"},
			})
			time.AfterFunc(time.Minute, func() { h.Append("one", failed) })
			code := h.run(t.Context(), append([]string{"start", "hello", "--id", "one"}, strings.Fields(flags)...)...)
			if code != cli.CodeFailed || !strings.HasPrefix(h.out.String(), want) {
				t.Errorf("%s: exit %d: %s", flags, code, h.out.String())
			}
		})
	}
}

func TestStatus_failedInstance_printsCauses(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--tag", "team=a", "--tag", "env=test")
	h.Append("order-7", at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1.2.0"}),
		at(61*time.Second, history.Event{
			Kind: history.OrchestrationFailed,
			Error: &history.Failure{
				Type: "OrderError", Message: "order 7: card \x1b[31mdeclined",
				Cause: &history.Failure{Type: history.TypePanic, Message: "nil map\n\ngoroutine 1:\n\tmain.go:7"},
			},
		}))
	h.mustRun("status", "order-7")
	h.wantGolden("status.golden")
	h.mustRun("status", "order-7", "--json")
	var s client.Status
	if err := json.Unmarshal(h.out.Bytes(), &s); err != nil || s.Orchestration != "fulfil" || s.Failure.Cause == nil {
		t.Errorf("%s: %v", h.out.String(), err)
	}
}

func TestList_filtersAndCursor_selectInstances(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--version", "1.0.0")
	h.mustRun("start", "hello", "--id", "grüße/1")
	h.mustRun("start", "hello", "--id", "z")
	h.Append("order-7", completed(`1`))
	h.Append("z", at(26*time.Hour, history.Event{
		Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "error", Message: "x"},
	}))
	h.mustRun("list")
	h.wantGolden("list.golden")
	if got := h.mustRun("list", "--status", "Failed", "--name", "hello"); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, "\nz ") {
		t.Errorf("failed: %s", got)
	}
	h.SetParent("z", history.Parent{InstanceID: "order-7", ExecutionID: "x", EventID: 2})
	for flags, want := range map[string]string{
		"--parent order-7": "z", "--version 1.0.0": "order-7", "--tag a=b": "",
		"--started-before 2020-01-01T00:00:00Z": "", "--started-after 2120-01-01T00:00:00Z": "",
	} {
		got := ""
		if lines := strings.Split(h.mustRun(append([]string{"list"}, strings.Fields(flags)...)...),
			"\n"); len(lines) > 2 {
			got, _, _ = strings.Cut(lines[1], " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
	h.wantError(cli.CodeError, "KEY=VALUE", "list", "--tag", "a")
	h.wantError(cli.CodeError, "--started-after must be an RFC 3339 time", "list", "--started-after", "yesterday")
	h.mustRun("list", "--limit", "2")
	_, cursor, more := strings.Cut(strings.TrimSpace(h.err.String()), "--cursor ")
	if !more {
		t.Fatalf("stderr %q", h.err.String())
	}
	if got := h.mustRun("list", "--limit", "2", "--cursor", cursor); !strings.Contains(got, "\nz ") || h.err.Len() > 0 {
		t.Errorf("the next page: %s%s", got, h.err.String())
	}
	if got := h.mustRun("list", "--json", "--limit", "1"); !strings.HasPrefix(got,
		`{"items":[{"instanceId":"grüße/1"`) || !strings.Contains(got, `"nextCursor":`) {
		t.Errorf("JSON: %s", got)
	}
}

func TestList_statusInAnyCase_selects(t *testing.T) {
	t.Parallel()
	h := setup(t)
	startOrder(h)
	h.Append("order-7", at(0, history.Event{Kind: history.ExecutionSuspended}))
	for _, status := range []string{"paused", "PAUSED", "Paused"} {
		if got := h.mustRun("list", "--status", status, "--count"); got != "1\n" {
			t.Errorf("%s: %q", status, got)
		}
	}
	if got := h.mustRun("list", "--status", "running", "--count"); got != "0\n" {
		t.Errorf("running: %q", got)
	}
	h.wantError(cli.CodeError, "status must be one of", "list", "--status", "stopped")
}

func TestList_parents_areShownIfTableFits(t *testing.T) {
	t.Parallel()
	h := setup(t)
	startOrder(h)
	h.mustRun("start", "hello", "--id", "parcel-books")
	h.SetParent("parcel-books", history.Parent{InstanceID: "order-7", ExecutionID: "x1", EventID: 3})
	h.mustRun("list")
	h.wantGolden("list-parents.golden")
	h.SetParent("parcel-books", history.Parent{InstanceID: strings.Repeat("x", 80), ExecutionID: "x1", EventID: 3})
	if got := h.mustRun("list"); strings.Contains(got, "PARENT") || strings.Contains(got, "xxx") {
		t.Errorf("with a long ID: %s", got)
	}
}

func TestList_count_printsNumber(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if got := h.mustRun("list", "--count"); got != "0\n" {
		t.Errorf("of none: %q", got)
	}
	for _, id := range []string{"one", "two", "three"} {
		h.mustRun("start", "hello", "--id", id)
	}
	if got := h.mustRun("list", "--count", "--limit", "1"); got != "3\n" {
		t.Errorf("of three: %q", got)
	}
	if got := h.mustRun("list", "--count", "--status", "Blocked", "--json"); got != "{\"count\":0}\n" {
		t.Errorf("of another status, as JSON: %q", got)
	}
}
