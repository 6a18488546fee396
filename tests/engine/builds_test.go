package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// generations returns a build with the orchestration "Generation" in these versions. Each turn records its version, and
// an event is awaited between turns. The input n is the number of further executions.
func generations(versions ...string) *perdure.Registry {
	return build(func(r *perdure.Registry) {
		for _, v := range versions {
			perdure.AddOrchestration(r, "Generation", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
				first, err := perdure.CallActivityByName[string](ctx, "Echo", v).Await(ctx)
				if err != nil {
					return "", err
				}
				if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
					return "", err
				}
				if n > 0 {
					return perdure.ContinueAsNew[string](ctx, n-1)
				}
				then, err := perdure.CallActivityByName[string](ctx, "Echo", v).Await(ctx)
				return first + " then " + then, err
			}, perdure.WithVersion(v))
		}
	})
}

// During a rollout, environments of the old and the new build consume the same inbox. Instances of version 1 keep their
// version in both builds. Instances of version 2 run only in the new build.
func TestVersions_twoBuildsOnOneQueue_instancesKeepTheirVersion(t *testing.T) {
	t.Parallel()
	inBubble(t, generations("1"), func(_ context.Context, h *hub) {
		for n := range 3 {
			h.start(fmt.Sprint("old-", n), "Generation", 0)
		}
		h.serve(5 * time.Minute)
		h.Orchestrators = append(h.Orchestrators, h.environment(generations("1", "2"), "new"))
		for n := range 6 {
			h.start(fmt.Sprint("new-", n), "Generation", 0)
			h.start(fmt.Sprint("two-", n), "Generation", 0, client.WithVersion("2"))
		}
		h.serve(30 * time.Minute)
		for n := range 6 {
			h.raiseGo(fmt.Sprint("new-", n), 1)
			h.raiseGo(fmt.Sprint("two-", n), 1)
			if n < 3 {
				h.raiseGo(fmt.Sprint("old-", n), 1)
			}
		}
		h.serve(4 * time.Hour)
		for n := range 3 {
			h.completed(fmt.Sprint("old-", n), `"1 then 1"`)
		}
		for n := range 6 {
			h.completed(fmt.Sprint("two-", n), `"2 then 2"`)
			version := h.status(fmt.Sprint("new-", n)).Version
			h.completed(fmt.Sprint("new-", n), fmt.Sprintf(`"%s then %s"`, version, version))
		}
	})
}

// A running execution keeps its version, and the next execution uses the highest registered version.
func TestContinueAsNew_newBuild_usesHighestVersion(t *testing.T) {
	t.Parallel()
	inBubble(t, generations("1"), func(_ context.Context, h *hub) {
		h.start("loose", "Generation", 1)
		h.start("bound", "Generation", 1, client.WithVersion("1"))
		h.serve(5 * time.Minute)
		h.deploy(generations("1", "2"), "new")
		for _, id := range []string{"loose", "bound"} {
			h.raiseGo(id, 1)
			h.raiseGo(id, 2)
		}
		h.serve(time.Hour)
		h.completed("loose", `"2 then 2"`)
		h.completed("bound", `"1 then 1"`)
	})
}

// An instance whose name or version is not registered in the deployed build waits for a build that has it. It is listed
// with the missing name or version.
func TestUnregisteredOrchestration_waitsForBuildThatHasIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		other    *perdure.Registry
		mentions []string
	}{
		"name":    {build(nil), []string{`orchestration "Generation"`, "not registered"}},
		"version": {generations("1"), []string{`orchestration "Generation" version "2"`, "not registered"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, generations("1", "2"), func(_ context.Context, h *hub) {
				h.start("i", "Generation", 0, client.WithVersion("2"))
				h.deploy(tt.other, "other")
				h.serve(30 * time.Minute)
				unregistered(t, h, "i", tt.mentions...)
				h.raiseGo("i", 1)
				h.serve(30 * time.Minute)
				unregistered(t, h, "i", tt.mentions...)
				h.deploy(generations("1", "2"), "right")
				h.serve(time.Hour)
				h.completed("i", `"2 then 2"`)
			})
		})
	}
}

func unregistered(t *testing.T, h *hub, id string, mentions ...string) {
	t.Helper()
	d := h.blocked(id)
	for _, words := range mentions {
		if d.Type != history.TypeUnregistered || !strings.Contains(d.Message, words) {
			t.Errorf("%s: got %s, want %q", d.Type, d.Message, words)
		}
	}
}

// A child with an unregistered name is blocked, and its parent waits for it.
func TestUnregisteredChild_waitsForBuildThatHasIt(t *testing.T) {
	t.Parallel()
	parent := func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "Parent", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			return perdure.CallSubOrchestrationByName[string](ctx, "Later", nil,
				perdure.WithInstanceID("child")).Await(ctx)
		})
	}
	inBubble(t, build(parent), func(_ context.Context, h *hub) {
		h.start("i", "Parent", 0)
		h.serve(30 * time.Minute)
		unregistered(t, h, "child", `orchestration "Later"`)
		if s := h.status("i"); s.Status != client.StatusRunning {
			t.Errorf("parent: got status %s", s.Status)
		}
		h.deploy(build(func(r *perdure.Registry) {
			parent(r)
			perdure.AddOrchestration(r, "Later", func(*perdure.OrchestrationContext, any) (string, error) {
				return "here", nil
			})
		}), "with the child")
		h.serve(time.Hour)
		h.completed("i", `"here"`)
	})
}

// An activity with an unregistered name stays in its queue until a worker has it.
func TestUnregisteredActivity_waitsForWorkerThatHasIt(t *testing.T) {
	t.Parallel()
	inBubble(t, build(func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "Caller", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			return perdure.CallActivityByName[string](ctx, "Later", nil).Await(ctx)
		})
	}), func(_ context.Context, h *hub) {
		h.start("i", "Caller", 0)
		h.serve(2 * time.Hour)
		if s := h.status("i"); s.Status != client.StatusRunning {
			t.Fatalf("got status %s, failure %+v", s.Status, s.Failure)
		}
		later := must(dispatch.NewWorker(build(func(r *perdure.Registry) {
			perdure.AddActivity(r, "Later", func(context.Context, any) (string, error) { return "here", nil })
		}), h.Provider, nil))
		h.Cloud.Map(h.Provider.Config().WorkQueues[perdure.DefaultQueue], simaws.Mapping{
			Invoke: func(ctx context.Context, ms []sqstypes.Message) ([]string, error) {
				return later.HandleRecords(ctx, simhub.Records(ms)), nil
			},
		})
		h.serve(12 * time.Hour) // the other worker may receive the message several times first
		h.completed("i", `"here"`)
	})
}

// Unsupported code blocks its instance with a message for its author, and the instance continues after the fix.
func TestBlockedInstance_unsupportedCode_isReportedAndContinuesAfterFix(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code     step
		kind     string
		mentions []string
	}{
		"a body that blocks outside": {func(*perdure.OrchestrationContext) error {
			time.Sleep(time.Hour)
			return nil
		}, history.TypeBlockingCall, []string{`instance "i"`, "did not return within 1s", "not a future"}},
		"a call on a goroutine": {func(ctx *perdure.OrchestrationContext) error {
			done := make(chan bool)
			go func() {
				defer close(done)
				perdure.CreateTimer(ctx, time.Second)
			}()
			<-done
			return nil
		}, history.TypeForeignGoroutine, []string{
			`instance "i"`, "a goroutine that does not belong to the orchestration",
		}},
		"call of a closure": {func(ctx *perdure.OrchestrationContext) error {
			name := "x"
			perdure.CallActivity(ctx, func(context.Context, int) (string, error) { return name, nil }, 1)
			return nil
		}, history.TypeUnregistered, []string{`instance "i"`, "it is a closure"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, code([]step{tt.code, event("go")}), func(_ context.Context, h *hub) {
				h.start("i", "Code", 0)
				h.serve(30 * time.Minute)
				d := h.blocked("i")
				for _, words := range tt.mentions {
					if d.Type != tt.kind || !strings.Contains(d.Message, words) {
						t.Errorf("%s: got %s; want %s with %q", d.Type, d.Message, tt.kind, words)
					}
				}
				h.raiseGo("i", 1)
				h.deploy(code([]step{inc(), event("go")}), "fixed")
				h.serve(time.Hour)
				h.completed("i", `"done"`)
			})
		})
	}
}
