package replaycheck

import (
	"context"
	"errors"
	"sync"

	"github.com/perdure/perdure/provider"
)

// remoteStore reads payloads through the command that requested the replay. A replay calls only GetPayload.
type remoteStore struct {
	provider.PayloadStore

	mu   sync.Mutex // several goroutines fetch ahead, and each request has one response
	conn *Conn
}

// GetPayload implements provider.PayloadStore.
func (s *remoteStore) GetPayload(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.Send(Reply{Object: key}); err != nil {
		return nil, err
	}
	var response Request
	if err := s.conn.Receive(&response); err != nil {
		return nil, err
	}
	if response.Problem != "" {
		return nil, errors.New(response.Problem)
	}
	return s.conn.ReceiveObject(response.Bytes)
}
