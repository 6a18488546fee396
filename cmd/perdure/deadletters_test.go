package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// onAWSInMemory runs f with the tool on a hub with all its queues, in virtual time.
func onAWSInMemory(t *testing.T, f func(ctx context.Context, h *tool, hub *simhub.Hub)) {
	t.Helper()
	onInterceptedAWS(t, nil, f)
}

func onInterceptedAWS(
	t *testing.T, intercept simaws.Interceptor, f func(ctx context.Context, h *tool, hub *simhub.Hub),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })
		perdure.AddOrchestration(r, "hello", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
		})
		hub, err := simhub.New(simhub.Options{Registry: r, Intercept: intercept})
		if err != nil {
			t.Fatal(err)
		}
		h := setup(t)
		h.client, h.admin = client.New(hub.Provider), admin.New(hub.Provider)
		f(t.Context(), h, hub)
		hub.Close()
		synctest.Wait()
	})
}

func addDeadLetter(t *testing.T, hub *simhub.Hub, queue, reason, body string) {
	t.Helper()
	var about struct {
		InstanceID string `json:"instanceId"`
	}
	_ = json.Unmarshal([]byte(body), &about)
	r := provider.Record{ID: reason + body, Group: "group-of-" + about.InstanceID, Body: body}
	if err := hub.Provider.DeadLetter(t.Context(), queue,
		provider.Unreadable{Record: r, Err: errors.New(reason)}); err != nil {
		t.Fatal(err)
	}
}

func TestDeadLetters_severalQueues_areListedShownRedrivenAndDropped(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		h.mustRun("start", "hello", "--id", "order-7")
		if got := h.mustRun("dead-letters", "list"); got != "no dead letters found\n" {
			t.Errorf("of none: %q", got)
		}
		addDeadLetter(h.t, hub, provider.QueueInbox, "corrupt: item x#1 h#2",
			`{"v":1,"kind":"eventRaised","instanceId":"order-7","name":"e","data":5}`)
		addDeadLetter(h.t, hub, "default", "poison: 13 deaths",
			`{"v":1,"instanceId":"order-8","executionId":"x","seq":1,"activityId":3,"name":"inc","queue":"default","attempt":2}`)
		addDeadLetter(h.t, hub, provider.QueueTimers, "later: field fireAt",
			`{"v":9,"instanceId":"order-9","timerId":4}`)

		got := h.mustRun("dead-letters", "list")
		for _, want := range []string{
			"order-7", "eventRaised e", "corrupt: item x#1 h#2", "activity inc #3", "timer #4",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
		if got := h.mustRun("dead-letters", "list", "--instance", "order-8", "--json"); strings.Count(got,
			`"id":`) != 1 || !strings.Contains(got, `"reason":"poison: 13 deaths"`) ||
			!strings.Contains(got, `{"queue":"inbox","visible":1,"hidden":0}`) {
			t.Errorf("listed %s", got)
		}

		var listed operations.DeadLetterList
		if err := json.Unmarshal([]byte(h.mustRun("dead-letters", "list", "--queue", "timers", "--json")),
			&listed); err != nil || len(listed.DeadLetters) != 1 {
			t.Fatalf("%s: %v", h.out.String(), err)
		}
		id := listed.DeadLetters[0].ID
		if got := h.mustRun("dead-letters", "show", id); !strings.Contains(got, "\n  \"v\": 9,\n") ||
			!strings.Contains(got, "Reason         later: field fireAt\n") {
			t.Errorf("shown is %s", got)
		}
		if got := h.mustRun("dead-letters", "show", id, "--json"); !strings.Contains(got, `"body":{"v":9,`) {
			t.Errorf("shown is %s", got)
		}
		h.wantError(cli.CodeError, "perdure dead-letters list", "dead-letters", "show", "nothing")

		if h.mustRun("dead-letters", "redrive", "--all", "--dry-run"); !strings.Contains(h.out.String(), "order-9") {
			t.Errorf("a dry run prints %s", h.out.String())
		}
		if got := h.mustRun("dead-letters", "redrive", "--reason", "corrupt:", "--yes"); got != "1\n" {
			t.Errorf("redriven are %q", got)
		}
		hub.ServeFor(ctx, time.Second)
		if got := h.mustRun("status", "order-7"); !strings.Contains(got, "Completed") {
			t.Errorf("after the redrive: %s", got)
		}
		if got := h.mustRun("dead-letters", "redrive", "--queue", "default", "--yes",
			"--json"); got != `{"done":0,"kept":1,"failed":0,"complete":true}`+"\n" {
			t.Errorf("the redrive included poison: %s", got)
		}

		h.in = "no\n"
		if code := h.run(ctx, "dead-letters", "drop", id); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "nothing was changed") {
			t.Errorf("not confirmed: %d, %s", code, h.err.String())
		}
		h.in = "yes\n"
		if got := h.mustRun("dead-letters", "drop", id); got != "1\n" {
			t.Errorf("dropped are %q", got)
		}
		h.wantError(cli.CodeError, "dead letter "+id+" not found", "dead-letters", "drop", id, "--yes")
		if got := h.mustRun("dead-letters", "drop", "--all", "--yes"); got != "1\n" {
			t.Errorf("dropped are %q", got)
		}
	})
}

func TestDeadLetters_invalidSelection_isAnError(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "specify IDs, a filter such as --reason, or --all", "dead-letters", "drop", "--yes")
	h.wantError(cli.CodeError, "not both", "dead-letters", "redrive", "a", "--all")
	h.wantError(cli.CodeError, "--instance must not be empty", "dead-letters", "drop", "--queue", "inbox", "--instance",
		"", "--yes")
	h.wantError(cli.CodeError, "hub does not support dead letters", "dead-letters", "list")
	h.wantError(cli.CodeError, "must be 1 to 1000", "dead-letters", "list", "--limit", "0")
}

func TestDeadLetters_moreThanLimit_listPrintsCount(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		for i := range 12 {
			addDeadLetter(h.t, hub, provider.QueueInbox, "corrupt: it",
				fmt.Sprintf(`{"v":1,"kind":"wake","instanceId":"one","seq":%d}`, i))
		}
		if h.mustRun("dead-letters", "list"); strings.Count(h.out.String(), "corrupt:") != 10 ||
			!strings.Contains(h.err.String(), "inbox about 12") {
			t.Errorf("printed %s%s", h.out.String(), h.err.String())
		}
		if got := h.mustRun("dead-letters", "drop", "--instance", "one", "--yes"); got != "12\n" {
			t.Errorf("dropped are %q", got)
		}
	})
}
