package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func TestQueues_workAndReports_areListed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.SetWorkers(map[string]time.Time{memhub.DefaultQueue: began.Add(-time.Hour)})
	want := "QUEUE         WORK ITEMS  DEAD LETTERS  WORKER REPORTED  BUILD\n" +
		"default                0             —  1h00m ago        —\n" +
		"default.fifo           0             —  never            —\n"
	if got := h.mustRun("queues"); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	queue := history.ExclusiveQueue(memhub.DefaultQueue)
	if got := h.mustRun("queues", "--json"); !strings.Contains(got,
		`{"queue":"default","depth":0,"worker":{"seenAt":"2026-07-01T02:00:00Z"}},{"queue":"`+queue+`","depth":0}`) {
		t.Errorf("got %s", got)
	}
}

// A queue with work items and without a worker has the fix below its row.
func TestQueues_workWithoutWorker_hasFix(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		if err := hub.Provider.ReportWorker(ctx, provider.WorkerReport{Queue: "default", BuildID: "b7"}); err != nil {
			t.Fatal(err)
		}
		h.now = time.Now
		if got := h.mustRun("queues"); strings.Contains(got, "no worker") || !strings.Contains(got, "0ms ago") ||
			!strings.Contains(got, "inbox") {
			t.Errorf("without work: %s", got)
		}
		url, body := hub.Provider.Config().WorkQueues["default"], "{}"
		if _, err := hub.Cloud.Queues.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: &body,
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(provider.WorkerMissingAfter + time.Second)
		if got := h.mustRun("queues"); !strings.Contains(got,
			"      no worker: deploy a worker for the queue, or find its failed start in its log\n") {
			t.Errorf("with work: %s", got)
		}
	})
}
