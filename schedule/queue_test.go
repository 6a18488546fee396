package schedule

import (
	"testing"
	"time"
)

func TestTheQueueIsBoundedAndWhatLeavesItIsCounted(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	for n := range int64(MaxQueuedRuns + 5) {
		k.queue(time.Unix(n, 0))
	}
	if len(k.Queue) != MaxQueuedRuns || k.Counts.Missed != 5 || k.Queue[0].Unix() != 5 {
		t.Errorf("%d wait, the first since %v; %+v", len(k.Queue), k.Queue[0], k.Counts)
	}
	if err := k.take(Command{Delete: true}); err != nil || len(k.Queue) != 0 || k.Counts.Missed != MaxQueuedRuns+5 || !k.Deleting {
		t.Errorf("after the end: %d wait, %+v, %v", len(k.Queue), k.Counts, err)
	}
	if err := k.take(Command{RunAt: time.Unix(1, 0)}); err != nil || len(k.Queue) != 0 || k.Counts.Missed != MaxQueuedRuns+6 {
		t.Errorf("a run of one that ends: %d wait, %+v, %v", len(k.Queue), k.Counts, err)
	}
}
