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

// orchestrator creates an environment of another build and reports the build.
func (h *hub) orchestrator(r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{
		BuildID: build, TurnTimeout: time.Second,
	}))
	h.t.Cleanup(o.Close)
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// passRecords passes the visible inbox records to o once, and returns the IDs of the records that failed.
func (h *hub) passRecords(o *dispatch.Orchestrator) (failed []string) {
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

// versions returns a registry with versions of the orchestration "which". Each version waits for an event, continues as
// new, and returns its version at the end.
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

// sleeper returns a registry whose orchestration waits for events. Builds differ in their number and name.
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

//  1. An instance runs in a build whose code differs from history. After three deliveries, the session parks its
//     messages and blocks the instance with a diagnosis.
//  2. A fixed build reports, and the sweeper wakes the instance.
//  3. The instance continues with all parked messages.
func TestR18_nondeterministicCode_blocksUntilItIsFixed(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(3, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(sleeper(3, "plus"), "broken")
		for i := range 2 {
			h.raise(in, "", i+1)
			time.Sleep(10 * time.Minute)
			if failed := h.passRecords(broken); len(failed) != i+1 || h.read(in).Status != provider.StatusRunning {
				t.Fatalf("delivery %d: got %d failed messages, the instance is %s", i+1, len(failed), h.read(in).Status)
			}
		}
		time.Sleep(10 * time.Minute)
		if failed := h.passRecords(broken); len(failed) > 0 {
			t.Fatalf("third delivery: got %d failed messages, want none", len(failed))
		}
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
			now.Diagnosis.Type != history.TypeNondeterminism ||
			now.Diagnosis.Expected != `ExternalEventSubscribed "add"` ||
			now.Diagnosis.Got != `ExternalEventSubscribed "plus"` {
			t.Fatalf("the instance is %s with diagnosis %+v, want blocked", now.Status, now.Diagnosis)
		}
		if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
			t.Errorf("the sweeper woke %d instances, %v; want none before another build reports", woken, err)
		}
		time.Sleep(time.Second)
		fixed := h.orchestrator(sleeper(3, "add"), "fixed")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the sweeper woke %d instances, %v; want 1", woken, err)
		}
		h.passRecords(fixed)
		if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
			t.Errorf("after the fix, the instance is %s with diagnosis %+v", now.Status, now.Diagnosis)
		}
		h.raise(in, "", 4)
		h.passRecords(fixed)
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || string(end.Output) != "7" {
			t.Errorf("ended with %s %s, %v, want the sum of all three events", end.Kind, end.Output, err)
		}
		h.events(in)
	})
}

// Parked messages belong to the instance. If the first message causes continue-as-new, the next executions receive the
// others.
func TestR18_parkedInputsAndContinueAsNew_nextExecutionReceivesThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest provider.Message
		want provider.RuntimeStatus
	}{
		"an event": {provider.Message{
			Kind: provider.MessageEventRaised, Name: "add", EventID: "second",
			Data: history.NewInlinePayload([]byte("1")),
		}, provider.StatusCompleted},
		"a cancel": {
			provider.Message{Kind: provider.MessageCancel, Reason: "requested", RequestedBy: "client"},
			provider.StatusCancelled,
		},
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
					h.passRecords(broken)
				}
				c.rest.InstanceID = in.InstanceID
				h.raise(in, "first", 1) // a duplicate
				h.send(c.rest)
				for range 3 {
					h.passRecords(broken)
					time.Sleep(10 * time.Minute)
				}
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Fatalf("the instance is %s, want blocked", now.Status)
				}
				h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
				h.passRecords(h.orchestrator(versions("1"), "fixed"))
				if now := h.read(in); now.Status != c.want {
					t.Errorf("the instance is %s, want %s", now.Status, c.want)
				}
			})
		})
	}
}

// An instance of an unregistered orchestration is blocked until a build registers it. No turn runs before.
func TestR18_unregisteredName_waitsForItsBuild(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		other := h.orchestrator(versions("1"), "other")
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.passRecords(other)
		}
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
			now.Diagnosis.Type != history.TypeUnregistered {
			t.Fatalf("the instance is %s with diagnosis %+v, want blocked as unregistered", now.Status, now.Diagnosis)
		}
		h.raise(in, "e", 5) // is parked at once, because the instance is blocked
		for range 3 {
			h.passRecords(other)
			time.Sleep(10 * time.Minute)
		}
		right := h.orchestrator(sleeper(1, "add"), "right")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Fatalf("the sweeper woke %d instances, %v; want 1", woken, err)
		}
		h.passRecords(right)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "5" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// During a rollout, an environment of the old build parks messages of an orchestration that only the new build
// registers. The new build reported before. The sweeper still wakes the instance.
func TestR18_oldEnvironmentParks_sweeperWakesTheInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(ctx context.Context, h *hub) {
		old := h.Orchestrators[0]
		time.Sleep(time.Minute)
		fresh := h.orchestrator(sleeper(1, "add"), "new")
		in := h.start("sleeper", 0)
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.passRecords(old)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s, want blocked", now.Status)
		}
		if woken, err := h.Renewer.Sweep(ctx); woken == 0 || err != nil {
			t.Fatalf("the sweeper woke %d instances, %v; want at least 1", woken, err)
		}
		h.passRecords(fresh)
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("the instance is %s, want running", now.Status)
		}
	})
}

func TestBlocked_terminated_needsNoCode(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(versions("1"), "broken")
		err := h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "give up",
		})
		if err != nil {
			t.Fatal(err)
		}
		if failed := h.passRecords(broken); len(failed) > 0 {
			t.Error("the termination failed without the code of the instance")
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationTerminated || h.read(in).Status != provider.StatusTerminated {
			t.Errorf("ended with %s, %v", end.Kind, err)
		}
	})
}

// With FailOnNondeterminism, the instance fails instead of being blocked.
func TestFailOnNondeterminism_threeDeliveries_failTheInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		strict := h.orchestrator(sleeper(2, "plus", perdure.FailOnNondeterminism()), "strict")
		h.raise(in, "", 1)
		for range 3 {
			h.passRecords(strict)
			time.Sleep(10 * time.Minute)
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationFailed || end.Error.Type != history.TypeNondeterminism {
			t.Errorf("ended with %s %+v, %v", end.Kind, end.Error, err)
		}
	})
}

// Code that blocks outside perdure blocks its instance. The diagnosis names the line.
func TestBlocked_codeBlocksOutsideTheEngine_diagnosisNamesTheLine(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(_ *perdure.OrchestrationContext, _ int) (int, error) {
		time.Sleep(time.Hour)
		return 0, nil
	})
	inBubble(t, simhub.Options{Registry: r, TurnTimeout: time.Second}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		for range 3 {
			h.turn(0)
			time.Sleep(10 * time.Minute)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
			now.Diagnosis.Type != history.TypeBlockingCall {
			t.Errorf("the instance is %s with diagnosis %+v, want blocked", now.Status, now.Diagnosis)
		} else if m := now.Diagnosis.Message; !strings.Contains(m, "TestBlocked_codeBlocksOutsideTheEngine_") ||
			!strings.Contains(m, "(dispatch/blocked_test.go:") {
			t.Errorf("the diagnosis lacks the line: %s", m)
		}
		time.Sleep(2 * time.Hour) // the orchestration returns
	})
}
