package rehearsal

import (
	"context"
	"errors"
	"sync"

	"github.com/perdure/perdure/provider"
)

// asked is the bucket of a binary that replays: who has asked it for the replay reads it. A replay calls GetPayload alone.
type asked struct {
	provider.PayloadStore

	mu    sync.Mutex // several goroutines fetch ahead, and a question has one answer
	lines *Lines
}

// GetPayload implements provider.PayloadStore.
func (a *asked) GetPayload(_ context.Context, key string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.lines.Send(Reply{Object: key}); err != nil {
		return nil, err
	}
	var answer Request
	if err := a.lines.Receive(&answer); err != nil {
		return nil, err
	}
	if answer.Problem != "" {
		return nil, errors.New(answer.Problem)
	}
	return a.lines.ReceiveObject(answer.Bytes)
}
