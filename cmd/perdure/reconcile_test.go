package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simhub"
)

func TestReconcile_lostMessages_areSentAgain(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		h.mustRun("start", "hello", "--id", "order-7")
		h.mustRun("start", "hello", "--id", "order-8", "--delay", "5m")
		for _, url := range []string{hub.Provider.Config().InboxURL, hub.Provider.Config().TimersURL} {
			if _, err := hub.Cloud.Queues.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
				t.Fatal(err)
			}
		}
		h.in = "no\n"
		if code := h.run(ctx, "reconcile"); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "nothing was changed") {
			t.Errorf("reconcile without confirmation: exit %d, %s", code, h.err.String())
		}
		if got := h.mustRun("reconcile", "--yes"); !strings.Contains(got,
			"2 instances: 2 not ended, 0 ended within --lookback, 0 ended earlier") {
			t.Errorf("printed %s", got)
		}
		if h.mustRun("reconcile", "--instance", "order-7", "--instance", "ordr-8",
			"--yes"); !strings.Contains(h.err.String(), "1 of the specified instances not found") {
			t.Errorf("reconcile with an unknown instance ID: printed %s", h.err.String())
		}
		hub.ServeFor(ctx, 6*time.Minute)
		for _, id := range []string{"order-7", "order-8"} {
			if got := h.mustRun("status", id); !strings.Contains(got, "Running") {
				t.Errorf("%s is %s; want Running", id, got)
			}
		}
		deployed(h, hub)
		h.mustRun("pause", "--yes")
		if got := h.mustRun("reconcile", "--after-restore", "--yes", "--json"); !strings.Contains(got,
			`"instances":2,"living":2,"over":0,"old":0,"deleted":0,"gone":0,"failed":0,`) ||
			!strings.Contains(h.err.String(), "nothing is sent for 6m10s") {
			t.Errorf("printed %s%s", got, h.err.String())
		}
		addDeadLetter(h.t, hub, "timers", "corrupt: it", "{}")
		h.wantErrorAfter("perdure dead-letters drop", "reconcile", "--after-restore", "--yes")
		h.wantError(cli.CodeError, "--lookback must be 0 to 28 days", "reconcile", "--lookback", "40d", "--yes")
		h.wantError(cli.CodeError, "do not use it with --cursor", "reconcile", "--after-restore", "--cursor", "x",
			"--yes")
	})
}

// wantErrorAfter runs a command that must fail, and checks that its error output contains the given text.
func (h *tool) wantErrorAfter(mentions string, args ...string) {
	h.t.Helper()
	if code := h.run(h.t.Context(), args...); code != cli.CodeError || !strings.Contains(h.err.String(), mentions) {
		h.t.Errorf("perdure %s: exit %d, %s", strings.Join(args, " "), code, h.err.String())
	}
}

// An operator runs reconcile --after-restore on a hub that is not paused, for example on the wrong hub. The command
// deletes no accepted messages.
func TestReconcile_afterRestoreWithoutPause_deletesNothing(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("start", "hello", "--id", "order-7")
		hub.ServeFor(ctx, time.Minute)
		h.mustRun("raise", "order-7", "e", "--data", "1")
		h.wantError(cli.CodeError,
			`hub "default" is not paused (worker of function perdure-test-worker is Enabled), and nothing was deleted`,
			"reconcile", "--after-restore", "--yes")

		h.mustRun("pause", "--yes")
		m.set(aws.String("worker"), "Enabling") // only one mapping is not disabled
		m.polls["worker"] = 3
		h.wantError(cli.CodeError, "is Enabling), and nothing was deleted", "reconcile", "--after-restore", "--yes")
		h.mustRun("resume", "--all")
		hub.ServeFor(ctx, time.Hour)
		if got := h.mustRun("status", "order-7"); !strings.Contains(got, "Completed") {
			h.t.Errorf("order-7 has lost an accepted event: %s", got)
		}
	})
}

// throttledMappings throttles the listing of event source mappings until a given time.
type throttledMappings struct {
	*mappings

	until time.Time
}

func (m *throttledMappings) ListEventSourceMappings(
	ctx context.Context, in *lambda.ListEventSourceMappingsInput, opts ...func(*lambda.Options),
) (*lambda.ListEventSourceMappingsOutput, error) {
	if time.Now().Before(m.until) {
		return nil, &smithy.GenericAPIError{Code: "TooManyRequestsException", Message: "Rate exceeded"}
	}
	return m.mappings.ListEventSourceMappings(ctx, in, opts...)
}

// Lambda throttles for an hour, so the command cannot check whether the hub is paused. The command waits, and prints
// the waiting time.
func TestReconcile_pauseCheckIsThrottled_waits(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("start", "hello", "--id", "order-7")
		h.mustRun("pause", "--yes")
		h.adminHub.Lambda = &throttledMappings{m, time.Now().Add(time.Hour)}
		if got := h.mustRun("reconcile", "--after-restore", "--yes"); !strings.Contains(got,
			"1 instances: 1 not ended") ||
			!strings.Contains(h.err.String(), "waiting for Lambda, EventBridge or SQS, 3 minutes so far\n") {
			t.Errorf("printed %s%s", got, h.err.String())
		}
	})
}
