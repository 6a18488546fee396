package turns

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

// A function may have been frozen for hours: what it holds is not worth a try then.
func TestCache_entryIsOlderThanAnHour_isNotUsed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := newCache(1<<20, func() time.Time { return now })
	for age, used := range map[time.Duration]bool{0: true, time.Hour: true, time.Hour + 1: false, 24 * time.Hour: false} {
		x := &execution{state: history.NewState(history.TrackTimers)}
		c.put("a", x)
		now = now.Add(age)
		if got := c.take("a"); got == x != used || c.bytes != 0 || c.order.Len() != 0 {
			t.Errorf("after %v: used: %v, want %v; %d bytes are left", age, got == x, used, c.bytes)
		}
	}
}
