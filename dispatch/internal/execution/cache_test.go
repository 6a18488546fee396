package execution

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

// A Lambda environment may have been frozen for hours. Its cached executions are then outdated.
func TestCache_entryIsOlderThanAnHour_isNotUsed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := NewCache(1<<20, func() time.Time { return now })
	for age, used := range map[time.Duration]bool{
		0: true, time.Hour: true, time.Hour + 1: false, 24 * time.Hour: false,
	} {
		x := &Execution{state: history.NewState(history.TrackTimers)}
		c.Put("a", x)
		now = now.Add(age)
		if got := c.Take("a"); got == x != used || c.bytes != 0 || c.order.Len() != 0 {
			t.Errorf("after %v: used: %v, want %v; %d bytes are left", age, got == x, used, c.bytes)
		}
	}
}
