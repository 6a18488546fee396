package cancelpoll

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// An execution is reused for another one. It must be empty, and no poll may refer to it. Such a poll would stop the
// activities of one execution because of the cancels of another.
func TestPoller_executionEnds_isReused(t *testing.T) {
	t.Parallel()
	p := New(&intake.Base{}, nil, nil)
	activity := func(executionID string) *Activity {
		return &Activity{
			InstanceID: "a", ExecutionID: executionID,
			CancelsFrom: 7, Interval: time.Second, StartedAt: time.Unix(1, 0),
		}
	}
	first, second, third := activity("x"), activity("y"), activity("z")
	p.Watch(t.Context(), first)
	x := p.executions["x"]
	p.Unwatch("x", time.Second)
	if !reflect.DeepEqual(x, &execution{schedule: schedule{requests: []request{}}}) {
		t.Errorf("the unused execution is %+v, want an empty one", x)
	}
	if p.Watch(t.Context(), second); p.executions["y"] != x {
		t.Error("the unused execution is not reused")
	}
	x.polling = true
	p.Unwatch("y", time.Second)
	if p.Watch(t.Context(), third); p.executions["z"] == x {
		t.Error("an execution is reused while a poll refers to it")
	}
}

// slowReader calls meanwhile during each poll.
type slowReader struct {
	provider.Provider

	meanwhile func()
}

func (r *slowReader) PollCancels(_ context.Context, _ string, from int64) (provider.Cancels, int64, error) {
	r.meanwhile()
	return nil, from + 1, nil
}

// supervisor is a Supervisor that does nothing.
type supervisor struct{ sync.Mutex }

func (*supervisor) StopCancelled(string, provider.Cancels) {}
func (*supervisor) WakeAt(time.Time)                       {}
func (*supervisor) Check()                                 {}

// Interleaving: while a poll reads, an activity starts whose own read ended at an earlier segment. Earlier polls have
// read the segments in between before the start of the activity, so the next poll reads them again.
func TestPoll_activityStartsDuringAPoll_nextPollReadsTheSkippedSegments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, s := &slowReader{}, &supervisor{}
		p := New(&intake.Base{Provider: reader, Clock: time.Now}, s, nil)
		activity := func(from int64) *Activity {
			return &Activity{
				InstanceID: "a", ExecutionID: "x", CancelsFrom: from, Interval: time.Second, StartedAt: time.Now(),
			}
		}
		p.Watch(t.Context(), activity(7))
		x := p.executions["x"]
		poll := func(meanwhile func()) {
			reader.meanwhile = meanwhile
			x.polling = true
			p.poll(t.Context(), x, x.from, x.schedule.start(time.Now(), 1))
		}

		poll(func() {
			s.Lock()
			defer s.Unlock()
			p.Watch(t.Context(), activity(3))
		})
		if x.from != 3 {
			t.Errorf("the next poll reads from segment %d, want 3", x.from)
		}
		poll(func() {})
		if x.from != 4 {
			t.Errorf("the poll after it reads from segment %d, want 4", x.from)
		}
	})
}
