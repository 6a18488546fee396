package attempts

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// hub returns the same verdict for each failed attempt, and lists the attempts.
type hub struct {
	provider.Provider

	verdict provider.RetryVerdict
	failed  []int64
}

func (h *hub) RetryActivities(_ context.Context, r *provider.RetryRequest) (provider.RetryResult, error) {
	result := provider.RetryResult{Failed: make([]provider.RetryVerdict, len(r.Failed))}
	for i := range r.Failed {
		h.failed = append(h.failed, r.Failed[i].ActivityID)
		result.Failed[i] = h.verdict
	}
	return result, nil
}

// open returns an execution without code that has open activities.
func open(t *testing.T, ids ...int64) *execution.Execution {
	t.Helper()
	events := []history.Event{{ID: 1, Kind: history.OrchestrationStarted, Time: time.Unix(0, 0)}}
	for _, id := range ids {
		events = append(events, history.Event{ID: id, Kind: history.ActivityScheduled, Name: "a"})
	}
	read := &provider.Orchestration{
		Head: provider.Head{ExecutionID: "x"}, Segments: []provider.Segment{{Events: events}},
	}
	l := &execution.Loader{Registry: registry.New()}
	x, err := l.Load(t.Context(), read, read.State(history.TrackOpen), execution.ErrPaused)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// message returns a message with the outcome of an attempt. A failure has a run, because another attempt may follow.
func message(record string, activityID int64, failed bool) provider.InboxMessage {
	o := provider.ActivityOutcome{ActivityID: activityID, Attempt: 1}
	if failed {
		o.Run, o.Error = "r", &history.Failure{Type: "E"}
	}
	return provider.InboxMessage{
		Message: provider.Message{Kind: provider.MessageActivityOutcomes, Outcomes: []provider.ActivityOutcome{o}},
		Record:  provider.Record{ID: record},
	}
}

// Failed attempts of open activities are retried before the turn. The last allowed attempt is an input of the turn.
func TestProcess_failedAttempt_isRetriedOrAnInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages  []provider.InboxMessage
		verdict   provider.RetryVerdict
		retried   []int64
		processed bool // the last message
		done      int
	}{
		"another attempt follows": {
			[]provider.InboxMessage{message("r1", 2, true)}, provider.RetryNext, []int64{2}, true, 1,
		},
		"no attempt follows": {
			[]provider.InboxMessage{message("r1", 2, true)}, provider.RetryExhausted, []int64{2}, false, 0,
		},
		"activity is not open": {[]provider.InboxMessage{message("r1", 9, true)}, provider.RetryNext, nil, false, 0},
		"an earlier message settles the activity": {
			[]provider.InboxMessage{message("r1", 2, false), message("r2", 2, true)}, provider.RetryNext, nil, false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, ledger := &hub{verdict: c.verdict}, &Ledger{}
			p := &Processor{intake.NewBase(h, func() time.Time { return time.Unix(9, 0) }, nil)}
			if _, err := p.Process(t.Context(), ledger, open(t, 2), "i-1", c.messages); err != nil {
				t.Fatal(err)
			}
			last := &c.messages[len(c.messages)-1]
			if got := ledger.IsProcessed(last, 0); !slices.Equal(h.failed, c.retried) || got != c.processed {
				t.Errorf("retried %v, want %v; processed: %v, want %v", h.failed, c.retried, got, c.processed)
			}
			if got := ledger.Done(c.messages); got != c.done {
				t.Errorf("%d messages are done, want %d", got, c.done)
			}
		})
	}
}
