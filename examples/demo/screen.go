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

// screen prints what happens, a line each, from several goroutines.
type screen struct {
	mu        sync.Mutex
	out       io.Writer
	began     time.Time
	scheduled map[string]history.Event // by instance and event id
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, began: time.Now(), scheduled: map[string]history.Event{}}
}

func (s *screen) line(instanceID, what, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.2fs  %-12s  %-28s %s\n", time.Since(s.began).Seconds(), instanceID, what, detail)
}

// event shows an event if it is worth a line.
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
		s.line(instanceID, s.name(key(e.SourceEventID)), "ok, "+s.took(key(e.SourceEventID), e)+attempts(e.Attempt)+ended(e))
	case history.ActivityFailed, history.SubOrchestrationFailed:
		s.line(instanceID, s.name(key(e.SourceEventID)), failedText(e.Error))
	case history.OrchestrationCompleted:
		s.line(instanceID, "completed", describe(e.Output))
	case history.OrchestrationCancelled:
		s.line(instanceID, "cancelled", fmt.Sprintf("%q: what was done is undone", e.Message))
	case history.OrchestrationFailed:
		s.line(instanceID, "FAILED", e.Error.Message)
	default:
	}
}

// failedText is what a call failed with. A cancel needs no message.
func failedText(f *history.Failure) string {
	if f.Type == history.TypeCancelled {
		return "cancelled: " + cmp.Or(f.Message, f.Reason)
	}
	return "failed: " + f.Message
}

// why is what perdure why shows of activities, in a line each.
func (s *screen) why(instanceID string, cancelled []client.Cancellation) {
	for i := range cancelled {
		c := &cancelled[i]
		if c.Target != client.TargetActivity {
			continue
		}
		s.line(instanceID, "why", fmt.Sprintf("#%d %s %s: %s, decided by the %s; %s; %s", c.ID, c.Target, c.Name, c.Reason, c.RequestedBy, seen(c), over(c)))
	}
	s.line(instanceID, "why", "perdure why "+instanceID+" tells all")
}

// seen says when the worker of an activity saw its cancel. A worker that dies in between has told nobody.
func seen(c *client.Cancellation) string {
	if c.SeenAt.IsZero() || c.DecidedAt.IsZero() {
		return "when its worker saw it is not known"
	}
	return fmt.Sprintf("its worker saw it %v later", c.SeenAt.Sub(c.DecidedAt).Round(time.Millisecond))
}

// over says how an activity ended that was cancelled.
func over(c *client.Cancellation) string {
	switch {
	case c.End == "":
		return "its end is not known yet"
	case c.SeenAt.IsZero() || c.EndedAt.IsZero():
		return "it " + string(c.End)
	default:
		return fmt.Sprintf("it %s in %v", c.End, c.EndedAt.Sub(c.SeenAt).Round(time.Millisecond))
	}
}

// ended shows of what was cancelled that its end was waited for.
func ended(e *history.Event) string {
	if e.Cancel == nil || e.Cancel.Ended == "" {
		return ""
	}
	return ", though it was cancelled meanwhile: now it can be undone"
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", at attempt %d", n)
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

// describe puts a fulfilment into words.
func describe(output history.Payload) string {
	var f orders.Fulfilment
	if json.Unmarshal(output, &f) != nil {
		return string(output)
	}
	switch {
	case f.Status == orders.StatusBackOrder:
		return "on back order, short of " + strings.Join(f.Short, ", ")
	case f.Status == orders.StatusUnpaid:
		return "unpaid, the card processor took too long: what it may have charged is refunded"
	case f.Status == orders.StatusCancelled:
		return "cancelled, nobody packed it in time: the card is refunded"
	case f.Shipment == nil:
		return f.Status
	case f.Shipment.Lost:
		return fmt.Sprintf("lost by %s, %s: the card is refunded", f.Shipment.Carrier, f.Shipment.Tracking)
	default:
		return fmt.Sprintf("delivered, %s %s", f.Shipment.Carrier, f.Shipment.Tracking)
	}
}

// sum prints the last line, and fails unless each order has ended as it should.
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
	fmt.Fprintf(s.out, "demo: %d instances, %d completed, %d failed, %.2f s\n", len(results), completed, failed, time.Since(s.began).Seconds())
	return errors.Join(errs...)
}
