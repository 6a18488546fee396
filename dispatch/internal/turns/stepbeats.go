package turns

import (
	"encoding/json"
	"sync"
)

// stepBeats keeps the heartbeat details of a step for its next attempt. Nothing is written: an inline activity is over within seconds.
type stepBeats struct {
	mu         sync.Mutex
	last, kept json.RawMessage
}

// Record implements activityctx.Heartbeats.
func (b *stepBeats) Record(details json.RawMessage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && details != nil {
		b.kept = details
	}
}

// LastDetails implements activityctx.Heartbeats.
func (b *stepBeats) LastDetails() json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// next begins another attempt.
func (b *stepBeats) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = b.kept
}
