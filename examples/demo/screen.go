package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
)

// screen prints one line per step. It is safe for concurrent use.
type screen struct {
	mu        sync.Mutex
	out       io.Writer
	began     time.Time
	scheduled map[string]history.Event // by instance ID and event ID
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, began: time.Now(), scheduled: map[string]history.Event{}}
}

func (s *screen) line(instanceID, what, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.2fs  %-12s  %-28s %s\n", time.Since(s.began).Seconds(), instanceID, what, detail)
}

// event prints an event if the event is important for the progress of an order.
func (s *screen) event(instanceID string, e *history.Event) {
	key := func(id int64) string { return fmt.Sprintf("%s#%d", instanceID, id) }
	switch e.Kind {
	case history.CustomStatusSet:
		s.line(instanceID, "status", text(e.CustomStatus))
	case history.ActivityScheduled, history.SubOrchestrationScheduled:
		s.mu.Lock()
		s.scheduled[key(e.ID)] = *e
		s.mu.Unlock()
	case history.ActivityCompleted, history.SubOrchestrationCompleted:
		call := key(e.SourceEventID)
		s.line(instanceID, s.name(call), "ok, "+s.took(call, e)+attempts(e.Attempt)+ended(e))
	case history.ActivityFailed, history.SubOrchestrationFailed:
		s.line(instanceID, s.name(key(e.SourceEventID)), failedText(e.Error))
	case history.OrchestrationCompleted:
		s.line(instanceID, "completed", describe(e.Output))
	case history.OrchestrationCancelled:
		s.line(instanceID, "cancelled", fmt.Sprintf("%q, completed steps are undone", e.Message))
	case history.OrchestrationFailed:
		s.line(instanceID, "FAILED", e.Error.Message)
	default:
	}
}

// failedText describes the failure of a call. A cancellation without a message shows its reason.
func failedText(f *history.Failure) string {
	if f.Type == history.TypeCancelled {
		return "cancelled: " + cmp.Or(f.Message, f.Reason)
	}
	return "failed: " + f.Message
}

// why prints the cancelled activities, as perdure why shows them.
func (s *screen) why(instanceID string, cancelled []client.Cancellation) {
	for i := range cancelled {
		c := &cancelled[i]
		if c.Target != client.TargetActivity {
			continue
		}
		s.line(instanceID, "why", fmt.Sprintf("#%d %s %s: cancelled (%s) by %s, %s, %s",
			c.ID, c.Target, c.Name, c.Reason, requester(c.RequestedBy), seen(c), over(c)))
	}
	s.line(instanceID, "why", "for details, run perdure why "+instanceID)
}

// requester names the sender of a cancellation.
func requester(by string) string {
	if by == history.RequestedByOrchestration {
		return "the orchestration"
	}
	return by
}

// seen describes when the worker of an activity observed its cancellation. A worker that died did not report a time.
func seen(c *client.Cancellation) string {
	if c.SeenAt.IsZero() || c.DecidedAt.IsZero() {
		return "not reported by the worker"
	}
	return fmt.Sprintf("observed by the worker after %v", c.SeenAt.Sub(c.DecidedAt).Round(time.Millisecond))
}

// over describes how a cancelled activity ended.
func over(c *client.Cancellation) string {
	switch {
	case c.End == "":
		return "not ended yet"
	case c.SeenAt.IsZero() || c.EndedAt.IsZero():
		return "ended: " + string(c.End)
	default:
		return fmt.Sprintf("ended: %s after %v", c.End, c.EndedAt.Sub(c.SeenAt).Round(time.Millisecond))
	}
}

// ended returns a note if the orchestration waited for the end of a cancelled activity.
func ended(e *history.Event) string {
	if e.Cancel == nil || e.Cancel.Outcome == "" {
		return ""
	}
	return ", completed after its cancellation, the undo can start"
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", n)
}

func (s *screen) name(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "  " + s.scheduled[key].Name
}

func (s *screen) took(key string, e *history.Event) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.Time.Sub(s.scheduled[key].Time).Round(time.Millisecond).String()
}

// describe describes a fulfilment.
func describe(output history.Payload) string {
	var f orders.Fulfilment
	if json.Unmarshal(output, &f) != nil {
		return string(output)
	}
	switch {
	case f.Status == orders.StatusBackOrder:
		return "on back order, missing " + strings.Join(f.Short, ", ")
	case f.Status == orders.StatusUnpaid:
		return "unpaid, the card processor timed out, any charge is refunded"
	case f.Status == orders.StatusCancelled:
		return "cancelled, not packed in time, the card is refunded"
	case f.Shipment == nil:
		return f.Status
	case f.Shipment.Lost:
		return fmt.Sprintf("lost by %s, %s, the card is refunded", f.Shipment.Carrier, f.Shipment.Tracking)
	default:
		return fmt.Sprintf("delivered, %s %s", f.Shipment.Carrier, f.Shipment.Tracking)
	}
}

// sum prints the last line. It returns the errors of all orders without the expected outcome.
func (s *screen) sum(results []result) error {
	completed, failed := 0, 0
	var errs []error
	for _, r := range results {
		errs = append(errs, r.err)
		switch {
		case r.failed:
			failed++
		case r.ended != "":
			completed++
		}
	}
	fmt.Fprintf(s.out, "demo: %d instances, %d completed, %d failed, %.2f s\n", len(results), completed, failed,
		time.Since(s.began).Seconds())
	return errors.Join(errs...)
}
