package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// The hundred deliveries before a queue moves a message to the dead-letter queue must take longer than a night.
func TestRetryDelay_manyDeliveries_growsUpToFiveMinutes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		0: 2 * time.Second, 1: 2 * time.Second, 2: 4 * time.Second, 3: 8 * time.Second, 8: 256 * time.Second,
		9: 5 * time.Minute, 100: 5 * time.Minute, 1 << 30: 5 * time.Minute,
	} {
		if got := RetryDelay(n); got != want {
			t.Errorf("delivery %d: %v, want %v", n, got, want)
		}
	}
	night := time.Duration(0)
	for n := 1; n <= 100; n++ {
		night += RetryDelay(n)
	}
	if night < 7*time.Hour {
		t.Errorf("a hundred deliveries take %v", night)
	}
}

func TestByDelay_recordsOfSeveralDeliveries_haveTheirOwnDelays(t *testing.T) {
	t.Parallel()
	records := []provider.Record{
		{ID: "a", ReceiveCount: 3}, {ID: "b", ReceiveCount: 1}, {ID: "c", ReceiveCount: 3}, {ID: "d", ReceiveCount: 2},
	}
	own := func(r *provider.Record) time.Duration { return RetryDelay(r.ReceiveCount) + time.Millisecond }
	var got []string
	for delay, together := range ByDelay(records, own) {
		for _, r := range together {
			got = append(got, fmt.Sprint(r.ID, " after ", delay))
		}
	}
	if want := "[b after 2s d after 4s a after 8s c after 8s]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
