package schedule

import (
	"testing"
	"time"
)

func TestQueue_tooManyTimes_oldestAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	s := &scheduler{}
	for n := range int64(MaxQueuedRuns + 5) {
		s.enqueue(time.Unix(n, 0))
	}
	if len(s.Queue) != MaxQueuedRuns || s.Counts.Missed != 5 || s.Queue[0].Unix() != 5 {
		t.Errorf("got %d queued, the first at %v; %+v", len(s.Queue), s.Queue[0], s.Counts)
	}
	err := s.apply(Command{Delete: true})
	if err != nil || len(s.Queue) != 0 || s.Counts.Missed != MaxQueuedRuns+5 || !s.Deleting {
		t.Errorf("after the deletion: got %d queued, %+v, error %v", len(s.Queue), s.Counts, err)
	}
	err = s.apply(Command{RunAt: time.Unix(1, 0)})
	if err != nil || len(s.Queue) != 0 || s.Counts.Missed != MaxQueuedRuns+6 {
		t.Errorf("manual run during the deletion: got %d queued, %+v, error %v", len(s.Queue), s.Counts, err)
	}
}
