package admin_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The inbox of a running hub loses its messages. For five minutes, SQS treats messages that are sent again as
// duplicates of the lost messages, and drops the duplicates. A reconciliation after the cooldown loses no messages.
func TestReconcile_inboxLosesMessages_messagesArriveAfterCooldown(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		orchestration string
		input         any
	}{
		"start": {"parent", 1}, "childOutcome": {"parent", 1}, "activityOutcomes": {"chain", 1},
		"timerFired": {"near", time.Second},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
				h.failDeliveries(kind)
				if _, err := h.Start(h.ctx, c.orchestration, c.input, client.WithInstanceID("i")); err != nil {
					t.Fatal(err)
				}
				h.ServeFor(h.ctx, time.Minute)
				h.fault.Store(nil)
				url := h.Provider.Config().InboxURL
				if _, err := h.Cloud.Queues.PurgeQueue(h.ctx, &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(provider.QueuePurgeCooldown)
				h.wantStatus("i", client.StatusRunning)
				h.mustReconcile()
				h.wantStatus("i", client.StatusCompleted)
			})
		})
	}
}
