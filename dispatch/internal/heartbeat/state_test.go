package heartbeat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

var start = time.Unix(1000, 0)

func TestState_expiresAfterLastHeartbeat(t *testing.T) {
	t.Parallel()
	ctx, expire := context.WithCancelCause(t.Context())
	defer expire(nil)
	s := New(start)
	s.Expect(expire)
	s.Record(start.Add(time.Second), nil)
	if next := s.ExpireIfDue(
		"a", time.Second, start.Add(1500*time.Millisecond),
	); !next.Equal(start.Add(2 * time.Second)) {
		t.Errorf("the timeout expires at %v", next)
	}
	if ctx.Err() != nil {
		t.Error("it has expired early")
	}
	s.ExpireIfDue("a", time.Second, start.Add(2*time.Second))
	if _, ok := errors.AsType[*perdure.TimeoutError](context.Cause(ctx)); !ok {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

// The details of a failed write are written again, unless there are newer ones. Only the first failure is reported.
func TestState_writeFails_detailsAreKept(t *testing.T) {
	t.Parallel()
	s := New(start)
	s.Record(start, []byte("1"))
	r := s.Take(7, start)
	if s.HasUnwritten() || r.ActivityID != 7 || string(r.Details) != "1" {
		t.Fatalf("taken %+v", r)
	}
	if !s.Written(&r, errors.New("outage")) || s.Written(&r, errors.New("outage")) {
		t.Error("the first failure must be reported, and no other")
	}
	if r = s.Take(7, start); string(r.Details) != "1" {
		t.Errorf("details %q after a failure, want 1", r.Details)
	}
	s.Record(start, []byte("2"))
	s.Written(&r, errors.New("outage"))
	if r = s.Take(7, start); string(r.Details) != "2" {
		t.Errorf("details %q, want the newer ones", r.Details)
	}
}

func TestState_progress_needsOtherDetails(t *testing.T) {
	t.Parallel()
	s := NewWithDetails([]byte("1"))
	s.Start(start)
	if s.Record(start, []byte("1")); s.HasProgressed() {
		t.Error("the same details are progress")
	}
	if s.Record(start, []byte("2")); !s.HasProgressed() || string(s.LastDetails()) != "1" {
		t.Error("other details are no progress")
	}
	var none *State
	if none.HasProgressed() || none.HasUnwritten() || none.LastDetails() != nil || none.Writer() != nil {
		t.Error("a nil state has heartbeats")
	}
}
