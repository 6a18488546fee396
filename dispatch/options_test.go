package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// Zero selects a default. A negative number disables options that can be disabled. For other options, it causes an
// error that names the option.
func TestOptions_negative_areRejectedUnlessTheySwitchOff(t *testing.T) {
	t.Parallel()
	r, p := perdure.NewRegistry(), fakeprovider.New(time.Now)
	orchestrator := func(o dispatch.OrchestratorOptions) error {
		_, err := dispatch.NewOrchestrator(r, p, &o)
		return err
	}
	worker := func(o dispatch.WorkerOptions) error {
		_, err := dispatch.NewWorker(r, p, &o)
		return err
	}
	for want, err := range map[string]error{
		"OrchestratorOptions.TurnTimeout":  orchestrator(dispatch.OrchestratorOptions{TurnTimeout: -1}),
		"OrchestratorOptions.MaxCrashes":   orchestrator(dispatch.OrchestratorOptions{MaxCrashes: -1}),
		"WorkerOptions.MaxCrashes":         worker(dispatch.WorkerOptions{MaxCrashes: -1}),
		"WorkerOptions.LeaseAfter":         worker(dispatch.WorkerOptions{LeaseAfter: -1}),
		"WorkerOptions.LockTimeout":        worker(dispatch.WorkerOptions{LockTimeout: -1}),
		"WorkerOptions.LockRenewalBuffer":  worker(dispatch.WorkerOptions{LockRenewalBuffer: -1}),
		"WorkerOptions.CancelPollInterval": worker(dispatch.WorkerOptions{CancelPollInterval: -1}),
		"PollOptions.Concurrency": dispatch.Poll(t.Context(), nil, provider.QueueInbox, nil,
			dispatch.PollOptions{Concurrency: -1}),
		"PollOptions.LockTimeout": dispatch.Poll(t.Context(), nil, provider.QueueInbox, nil,
			dispatch.PollOptions{LockTimeout: -1}),
	} {
		if err == nil || !strings.Contains(err.Error(), want+" must not be negative") {
			t.Errorf("got error %v, want one that rejects %s", err, want)
		}
	}
	if err := orchestrator(dispatch.OrchestratorOptions{CacheBytes: -1, Retention: perdure.RetainForever}); err != nil {
		t.Error(err)
	}
	if err := worker(dispatch.WorkerOptions{ResendAfterDeliveries: -1, CancellationGracePeriod: -1}); err != nil {
		t.Error(err)
	}
}

// For missing or invalid arguments, the first call returns an error. There is no later panic in a loop, and no lock
// that is never renewed.
func TestPoll_invalidArguments_areRejected(t *testing.T) {
	t.Parallel()
	p := struct{ provider.Poller }{}
	handle := func(context.Context, []provider.Record) []string { return nil }
	_, tooLong := dispatch.NewWorker(perdure.NewRegistry(), fakeprovider.New(time.Now),
		&dispatch.WorkerOptions{LockTimeout: 13 * time.Hour})
	for want, err := range map[string]error{
		"provider of Poll: must not be nil": dispatch.Poll(t.Context(), nil,
			provider.QueueInbox, handle, dispatch.PollOptions{}),
		"queue of Poll must not be empty": dispatch.Poll(t.Context(), p, "", handle,
			dispatch.PollOptions{}),
		`handle of queue "inbox": must not be nil`: dispatch.Poll(t.Context(), p,
			provider.QueueInbox, nil, dispatch.PollOptions{}),
		"PollOptions.LockTimeout is 13h0m0s, but must be at most 12h0m0s": dispatch.Poll(t.Context(), p,
			provider.QueueInbox, handle, dispatch.PollOptions{LockTimeout: 13 * time.Hour}),
		"WorkerOptions.LockTimeout is 13h0m0s, but must be at most 12h0m0s": tooLong,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
