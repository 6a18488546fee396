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

// An alarm rolls back a canary if its build is the first to block an instance. The log line of a second build that
// blocks the instance contains newlyBlocked=false.
func TestBlockedLog_firstBuildToBlock_isMarked(t *testing.T) {
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
				h.passRecords(o)
				time.Sleep(10 * time.Minute)
			}
			h.raise(in, "", 1)
		}

		var blocked []any
		for line := range bytes.Lines(log.Bytes()) {
			var printed map[string]any
			if err := json.Unmarshal(line, &printed); err != nil {
				t.Fatal(err)
			}
			if is, has := printed["newlyBlocked"]; has && printed["level"] == "ERROR" {
				blocked = append(blocked, printed["buildId"], is)
			}
		}
		if want := []any{"first", true, "second", false}; !slices.Equal(blocked, want) {
			t.Errorf("got log lines %v, want %v", blocked, want)
		}
	})
}

// A canary receives a tenth of the messages. The new build fails each turn, and the old build processes the redelivered
// message. Failed messages and log lines with newlyBlocked show the fault of the new build.
func TestBlockedLog_canaryFailsEveryTurn_isReported(t *testing.T) {
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
			h.turn(0) // the first turn runs in the old build
			h.send(provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "e",
				Data: encoded(t, 1),
			})
			failed += len(h.passRecords(newer)) // the canary's tenth of the invocations
			time.Sleep(10 * time.Minute)
			h.turn(0) // the other nine tenths
			if now := h.read(in); now.Status != provider.StatusCompleted {
				t.Fatalf("instance %d is %s, want completed", n, now.Status)
			}
		}
		if blocked := strings.Count(log.String(), `"newlyBlocked":true`); failed != instances || blocked == 0 {
			t.Errorf("got %d of %d failed turns of the new build and %d lines with newlyBlocked, want all and at "+
				"least 1",
				failed, instances, blocked)
		}
	})
}

// The canary runs a turn, and the old build receives the next message. If the old build cannot replay the canary's
// decisions, the log attributes that to the canary. In the reverse case, the log does not blame the old build.
func TestBlockedLog_oldBuildCannotReplayTheCanary_blamesTheCanary(t *testing.T) {
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
				if err := old.ReportBuild(ctx); err != nil { // another environment of the old build starts
					t.Fatal(err)
				}

				in := h.start("sleeper", 0)
				h.passRecords(first)
				h.raise(in, "", 1)
				if failed := h.passRecords(second); len(failed) != 1 {
					t.Fatal("the second build continued the instance, want a failed message")
				}
				want := 0
				if canaryBegins {
					want = 1
				}
				blamed := strings.Count(log.String(), `"blockedOnNewer":true,"newerBuild":"new"`)
				if blamed != want || strings.Count(log.String(), "newerBuild") != want {
					t.Errorf("got %d lines with newerBuild, want %d:\n%s", blamed, want, log.String())
				}
				log.Reset()
				h.blockIn(second, in) // with log level error, this is the only line
				line := `"level":"ERROR","msg":"instance blocked: its code cannot continue","blockedOnNewer":true,"newerBuild":"new"`
				if mentions := strings.Contains(log.String(), line); mentions != canaryBegins {
					t.Errorf("the line about the blocked instance names the newer build: %v, want %v:\n%s",
						mentions, canaryBegins, log.String())
				}
			})
		})
	}
}

// The log does not blame the canary if the instance was blocked before, if a build differs from its own decisions, or
// if the order of the builds is unknown.
func TestBlockedLog_otherCauses_doNotBlameTheCanary(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(h *hub, build func(id, waits string) *dispatch.Orchestrator){
		"the instance was blocked before": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "plus")
			in := h.start("sleeper", 0)
			h.passRecords(canary)
			h.raise(in, "", 1)
			h.blockIn(build("another", "times"), in)
			h.raise(in, "", 2)
			h.passRecords(old)
		},
		"the build differs from its own decisions": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "add")
			in := h.start("sleeper", 0)
			h.passRecords(old)
			h.raise(in, "", 1)
			h.passRecords(canary)
			h.raise(in, "", 2)
			h.passRecords(build("old", "times")) // the same build with nondeterministic code
		},
		"an earlier release stored the report": func(h *hub, build func(id, waits string) *dispatch.Orchestrator) {
			old, canary := build("old", "add"), build("new", "plus")
			report := h.item("hub", "b#old")
			delete(report, "first")
			put := &dynamodb.PutItemInput{TableName: aTable(), Item: report}
			if _, err := h.Cloud.Table.PutItem(h.t.Context(), put); err != nil {
				h.t.Fatal(err)
			}
			in := h.start("sleeper", 0)
			h.passRecords(canary)
			h.raise(in, "", 1)
			h.passRecords(old)
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
				if !strings.Contains(log.String(), `"buildId":"old"`) ||
					strings.Contains(log.String(), "blockedOnNewer") {
					t.Errorf("want a line about the old build without blockedOnNewer:\n%s", log.String())
				}
			})
		})
	}
}
