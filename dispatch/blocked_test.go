package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// orchestrator is another environment, of another build.
func (h *hub) orchestrator(r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{BuildID: build, TurnTimeout: time.Second}))
	h.t.Cleanup(o.Close)
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// give gives what is visible in the inbox to o, once, and says what failed.
func (h *hub) give(o *dispatch.Orchestrator) (failed []string) {
	h.t.Helper()
	records := h.receive(h.Provider.Config().InboxURL)
	failed = o.HandleRecords(h.t.Context(), records)
	for _, r := range records {
		if !slices.Contains(failed, r.ID) {
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
		}
	}
	return failed
}

// versions is a registry of the orchestration "which" in these versions: each waits for an event, continues as new, and then
// says which it is.
func versions(all ...string) *perdure.Registry {
	r := perdure.NewRegistry()
	for _, v := range all {
		perdure.AddOrchestration(r, "which", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
			if n == 0 {
				return v, nil
			}
			if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
				return "", err
			}
			return perdure.ContinueAsNew[string](ctx, n-1)
		}, perdure.WithVersion(v))
	}
	return r
}

// sleeper is a registry whose orchestration waits for events: how many, and of what name, is what builds differ in.
func sleeper(events int, name string, opts ...perdure.OrchestrationOption) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		sum := 0
		for range events {
			n, err := perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}, opts...)
	return r
}

// Interleaving: a build whose code parts from history takes an instance over. Its messages come three times, for another build
// to take; then they are kept in history, and the instance is listed with what is wrong. It stalls nobody. The build that mends it
// reports, the watch wakes it, and it goes on with all that came meanwhile.
func TestR18NondeterministicCodeBlocksUntilItIsMended(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(3, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(sleeper(3, "plus"), "broken")
		for i := range 2 {
			h.raise(in, "", i+1)
			time.Sleep(10 * time.Minute)
			if failed := h.give(broken); len(failed) != i+1 || h.read(in).Status != provider.StatusRunning {
				t.Fatalf("delivery %d: %d messages failed, the instance is %s", i+1, len(failed), h.read(in).Status)
			}
		}
		time.Sleep(10 * time.Minute)
		if failed := h.give(broken); len(failed) > 0 {
			t.Fatalf("third delivery: %d messages failed", len(failed))
		}
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypeNondeterminism ||
			now.Diagnosis.Expected != `ExternalEventSubscribed "add"` || now.Diagnosis.Got != `ExternalEventSubscribed "plus"` {
			t.Fatalf("the instance is %s: %+v", now.Status, now.Diagnosis)
		}
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
			t.Errorf("no other build has reported, and the watch woke %d, %v", woken, err)
		}
		time.Sleep(time.Second)
		mended := h.orchestrator(sleeper(3, "add"), "mended")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the watch woke %d, %v", woken, err)
		}
		h.give(mended)
		if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
			t.Errorf("mended, it is %s: %+v", now.Status, now.Diagnosis)
		}
		h.raise(in, "", 4)
		h.give(mended)
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || string(end.Output) != "7" {
			t.Errorf("ended with %s %s, %v, want the sum of all three", end.Kind, end.Output, err)
		}
		h.events(in)
	})
}

// What was kept while the instance was blocked is about the instance, and not about the execution that continues as new on the
// first of it: the next ones get the rest.
func TestR18InputsAreKeptAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest provider.Message
		want provider.RuntimeStatus
	}{
		"an event": {provider.Message{Kind: provider.MessageEventRaised, Name: "add", EventID: "second", Data: history.NewInlinePayload([]byte("1"))}, provider.StatusCompleted},
		"a cancel": {provider.Message{Kind: provider.MessageCancel, Reason: "requested", RequestedBy: "client"}, provider.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: versions("1")}, func(_ context.Context, h *hub) {
				in := h.start("which", 2)
				h.turn(0)
				broken := h.orchestrator(perdure.NewRegistry(), "broken")
				h.raise(in, "first", 1)
				for range 3 {
					time.Sleep(10 * time.Minute)
					h.give(broken)
				}
				c.rest.InstanceID = in.InstanceID
				h.raise(in, "first", 1) // a duplicate
				h.send(c.rest)
				for range 3 {
					h.give(broken)
					time.Sleep(10 * time.Minute)
				}
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Fatalf("the instance is %s", now.Status)
				}
				h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
				h.give(h.orchestrator(versions("1"), "mended"))
				if now := h.read(in); now.Status != c.want {
					t.Errorf("the instance is %s, want %s", now.Status, c.want)
				}
			})
		})
	}
}

// A name that no build has waits for the build that has it, without a turn.
func TestR18AnUnregisteredNameWaitsForItsBuild(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		other := h.orchestrator(versions("1"), "other")
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.give(other)
		}
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypeUnregistered {
			t.Fatalf("the instance is %s: %+v", now.Status, now.Diagnosis)
		}
		h.raise(in, "e", 5) // kept at once: it is blocked already
		for range 3 {
			h.give(other)
			time.Sleep(10 * time.Minute)
		}
		right := h.orchestrator(sleeper(1, "add"), "right")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Fatalf("woke %d, %v", woken, err)
		}
		h.give(right)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "5" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// Interleaving: while a build is rolled out, an environment of the old one parks what only the new one knows, after the new one
// has reported. The watch wakes it all the same.
func TestR18ParkedByAnOldEnvironmentOfARollout(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(ctx context.Context, h *hub) {
		old := h.Orchestrators[0]
		time.Sleep(time.Minute)
		fresh := h.orchestrator(sleeper(1, "add"), "new")
		in := h.start("sleeper", 0)
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.give(old)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s", now.Status)
		}
		if woken, err := h.Timekeeper.Sweep(ctx); woken == 0 || err != nil {
			t.Fatalf("woke %d, %v", woken, err)
		}
		h.give(fresh)
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("the instance is %s", now.Status)
		}
	})
}

func TestABlockedInstanceCanBeTerminated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(versions("1"), "broken")
		if err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "give up"}); err != nil {
			t.Fatal(err)
		}
		if failed := h.give(broken); len(failed) > 0 {
			t.Error("it needs code to be terminated")
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationTerminated || h.read(in).Status != provider.StatusTerminated {
			t.Errorf("ended with %s, %v", end.Kind, err)
		}
	})
}

// For those who want failure.
func TestFailOnNondeterminismFailsTheInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		strict := h.orchestrator(sleeper(2, "plus", perdure.FailOnNondeterminism()), "strict")
		h.raise(in, "", 1)
		for range 3 {
			h.give(strict)
			time.Sleep(10 * time.Minute)
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationFailed || end.Error.Type != history.TypeNondeterminism {
			t.Errorf("ended with %s %+v, %v", end.Kind, end.Error, err)
		}
	})
}

// A body that waits for something else than a future, for ever, is blocked, and says so.
func TestABodyThatBlocksOutsideIsReported(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(_ *perdure.OrchestrationContext, _ int) (int, error) {
		time.Sleep(time.Hour)
		return 0, nil
	})
	inBubble(t, simhub.Options{Registry: r, TurnLimit: time.Second}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		for range 3 {
			h.turn(0)
			time.Sleep(10 * time.Minute)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypeBlockingCall {
			t.Errorf("the instance is %s: %+v", now.Status, now.Diagnosis)
		} else if m := now.Diagnosis.Message; !strings.Contains(m, "TestABodyThatBlocksOutsideIsReported") || !strings.Contains(m, "(dispatch/blocked_test.go:") {
			t.Errorf("the diagnosis does not say where: %s", m)
		}
		time.Sleep(2 * time.Hour) // the bubble waits for the body
	})
}
