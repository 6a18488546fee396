package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

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

// event shows an event if it is worth a line, and tells how the instance ended when it did.
func (s *screen) event(instanceID string, e *history.Event) (status string, over bool) {
	key := func(id int64) string { return fmt.Sprintf("%s#%d", instanceID, id) }
	switch e.Kind {
	case history.ActivityScheduled:
		s.mu.Lock()
		s.scheduled[key(e.ID)] = *e
		s.mu.Unlock()
	case history.ActivityCompleted:
		s.line(instanceID, s.name(key(e.SourceEventID)), "ok, "+s.took(key(e.SourceEventID), e))
	case history.ActivityFailed:
		s.line(instanceID, s.name(key(e.SourceEventID)), "failed: "+e.Error.Message)
	case history.OrchestrationCompleted:
		s.line(instanceID, "completed", describe(e.Output))
		return "completed", true
	case history.OrchestrationFailed:
		s.line(instanceID, "FAILED", e.Error.Message)
		return "failed", true
	default:
	}
	return "", false
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

// describe tells a fulfilment in words.
func describe(output history.Payload) string {
	var f orders.Fulfilment
	if json.Unmarshal(output, &f) != nil {
		return string(output)
	}
	if f.Shipment == nil {
		return fmt.Sprintf("on back order, short of %v", f.Short)
	}
	return fmt.Sprintf("shipped, %s %s", f.Shipment.Carrier, f.Shipment.Tracking)
}

// sum prints the last line, and fails unless everything has completed.
func (s *screen) sum(results []result) error {
	count := map[string]int{}
	var errs []error
	for _, r := range results {
		count[r.status]++
		errs = append(errs, r.err)
	}
	fmt.Fprintf(s.out, "demo: %d instances, %d completed, %d failed, %.2f s\n", len(results), count["completed"], count["failed"], time.Since(s.began).Seconds())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if count["completed"] != len(results) {
		return fmt.Errorf("%d of %d instances have not completed", len(results)-count["completed"], len(results))
	}
	return nil
}
