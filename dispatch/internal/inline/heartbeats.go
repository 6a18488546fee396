package inline

import (
	"encoding/json"
	"sync"
)

// heartbeats holds the heartbeat details of an activity in memory for its next attempt. It does not write them to the
// table, because an inline activity ends within seconds.
type heartbeats struct {
	mu         sync.Mutex
	last, kept json.RawMessage
}

// Record implements activityctx.Heartbeats.
func (b *heartbeats) Record(details json.RawMessage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && details != nil {
		b.kept = details
	}
}

// LastDetails implements activityctx.Heartbeats.
func (b *heartbeats) LastDetails() json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// next starts another attempt.
func (b *heartbeats) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = b.kept
}
