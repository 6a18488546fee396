package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// What turns back a canary of a build is an instance that this build is the first to block: one that another build had blocked says nothing of it.
func TestTheLogSaysWhichBuildIsTheFirstToBlockAnInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.raise(in, "", 1)
		var log bytes.Buffer
		for _, build := range []string{"first", "second"} {
			o := must(dispatch.NewOrchestrator(sleeper(2, "plus"), h.Provider, &dispatch.OrchestratorOptions{
				BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
			}))
			t.Cleanup(o.Close)
			if err := o.ReportBuild(ctx); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				h.give(o)
				time.Sleep(10 * time.Minute)
			}
			h.raise(in, "", 1)
		}

		var blocked []any
		for line := range bytes.Lines(log.Bytes()) {
			var said map[string]any
			if err := json.Unmarshal(line, &said); err != nil {
				t.Fatal(err)
			}
			if is, has := said["newlyBlocked"]; has && said["level"] == "ERROR" {
				blocked = append(blocked, said["buildId"], is)
			}
		}
		if want := []any{"first", true, "second", false}; !slices.Equal(blocked, want) {
			t.Errorf("it says %v, want %v", blocked, want)
		}
	})
}

// A canary of a tenth: the new build fails each turn that it takes, and the old build takes the message when it is delivered again. What
// turns the canary back are errors of invocations and log lines of newlyBlocked.
func TestACanaryHearsOfABuildThatFailsEveryTurnItTakes(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
		var log bytes.Buffer
		newer := must(dispatch.NewOrchestrator(sleeper(1, "plus"), h.Provider, &dispatch.OrchestratorOptions{
			BuildID: "new", TurnTimeout: time.Second, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		}))
		h.t.Cleanup(newer.Close)
		if err := newer.ReportBuild(ctx); err != nil {
			t.Fatal(err)
		}
		const instances = 100
		failed := 0
		for n := range instances {
			in := h.startAs(fmt.Sprint("i-", n), "sleeper", 0)
			h.turn(0) // begun by the old build
			h.send(provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "e", Data: encoded(t, 1)})
			failed += len(h.give(newer)) // the tenth of the invocations
			time.Sleep(10 * time.Minute)
			h.turn(0) // the other nine tenths
			if now := h.read(in); now.Status != provider.StatusCompleted {
				t.Fatalf("instance %d is %s", n, now.Status)
			}
		}
		if blocked := strings.Count(log.String(), `"newlyBlocked":true`); failed != instances || blocked == 0 {
			t.Errorf("the new build failed %d of %d turns that it took, no invocation failed, and %d lines say newlyBlocked: the canary ends well, and all is shifted to it", failed, instances, blocked)
		}
	})
}

// The other way round: the canary takes a turn, and decides what the old build does not, which gets the next message. That no longer fits the old build
// is the canary's doing, of which it must hear. What the canary cannot go on with is not the old build's.
func TestACanaryHearsThatTheBuildBeforeItCannotGoOnWithWhatItDecided(t *testing.T) {
	t.Parallel()
	for name, canaryBegins := range map[string]bool{"the canary decides": true, "the build before decides": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
				var log bytes.Buffer
				announced := func(build, waits string) *dispatch.Orchestrator {
					o := must(dispatch.NewOrchestrator(sleeper(2, waits), h.Provider, &dispatch.OrchestratorOptions{
						BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
					}))
					h.t.Cleanup(o.Close)
					if err := o.ReportBuild(ctx); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					return o
				}
				old, canary := announced("old", "add"), announced("new", "plus")
				first, second := old, canary
				if canaryBegins {
					first, second = canary, old
				}
				if err := old.ReportBuild(ctx); err != nil { // an environment that starts later
					t.Fatal(err)
				}

				in := h.start("sleeper", 0)
				h.give(first)
				h.raise(in, "", 1)
				if failed := h.give(second); len(failed) != 1 {
					t.Fatal("it could go on")
				}
				want := 0
				if canaryBegins {
					want = 1
				}
				if n := strings.Count(log.String(), `"blockedOnNewer":true,"newerBuild":"new"`); n != want || strings.Count(log.String(), "newerBuild") != want {
					t.Errorf("%d lines say so, want %d:\n%s", n, want, log.String())
				}
				log.Reset()
				h.blockIn(second, in) // a log level of error leaves this line alone
				if says := strings.Contains(log.String(), `"level":"ERROR","msg":"instance blocked: its code cannot continue","blockedOnNewer":true,"newerBuild":"new"`); says != canaryBegins {
					t.Errorf("when it is blocked the log says so: %v, want %v:\n%s", says, canaryBegins, log.String())
				}
			})
		})
	}
}

// What is no doing of the canary's does not turn it back: that an instance is blocked which was blocked before, that a build parts from what it has
// decided itself, and what a build says of which nobody knows whether it is the older one.
func TestACanaryDoesNotHearOfWhatIsNotItsDoing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(h *hub, build func(id, waits string) *dispatch.Orchestrator){
		"the instance was blocked before": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "plus")
			in := h.start("sleeper", 0)
			h.give(canary)
			h.raise(in, "", 1)
			h.blockIn(build("another", "times"), in)
			h.raise(in, "", 2)
			h.give(old)
		},
		"the build parts from what it has decided itself": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "add")
			in := h.start("sleeper", 0)
			h.give(old)
			h.raise(in, "", 1)
			h.give(canary)
			h.raise(in, "", 2)
			h.give(build("old", "times")) // whose code depends on chance
		},
		"the build has reported to an earlier release": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "plus")
			report := h.item("hub", "b#old")
			delete(report, "first")
			if _, err := h.Cloud.Table.PutItem(h.t.Context(), &dynamodb.PutItemInput{TableName: aTable(), Item: report}); err != nil {
				h.t.Fatal(err)
			}
			in := h.start("sleeper", 0)
			h.give(canary)
			h.raise(in, "", 1)
			h.give(old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
				var log bytes.Buffer
				do(h, func(id, waits string) *dispatch.Orchestrator {
					o := must(dispatch.NewOrchestrator(sleeper(2, waits), h.Provider, &dispatch.OrchestratorOptions{
						BuildID: id, TurnTimeout: time.Second, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
					}))
					h.t.Cleanup(o.Close)
					if err := o.ReportBuild(ctx); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					return o
				})
				if !strings.Contains(log.String(), `"buildId":"old"`) || strings.Contains(log.String(), "blockedOnNewer") {
					t.Errorf("want that the old build cannot go on, and not that it is the canary's doing:\n%s", log.String())
				}
			})
		})
	}
}
