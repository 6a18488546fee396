package queries

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

const (
	// maxConcurrent is the number of queries that a process handles at once. Each holds a history and its replay in
	// memory, next to the turns.
	maxConcurrent = 4
	// maxHung is the number of hung calls of a handler at which a process stops calling the handler. Each hung call
	// occupies its goroutine, and possibly a processor.
	maxHung = 3
)

// limits limit the use of a process by queries. They are safe for concurrent use.
type limits struct {
	slots chan struct{}

	mu   sync.Mutex
	hung map[handlerKey][]<-chan struct{} // each is closed when the call has returned
}

// handlerKey identifies a query handler.
type handlerKey struct{ orchestration, query string }

func newLimits() *limits {
	return &limits{slots: make(chan struct{}, maxConcurrent), hung: map[handlerKey][]<-chan struct{}{}}
}

// enter waits for a slot, which leave releases.
func (l *limits) enter(ctx context.Context, q *provider.QueryRequest) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("dispatch: query %q: instance %q: no time left while this process handles "+
			"%d other queries: %w", q.Name, q.InstanceID, maxConcurrent, ctx.Err())
	}
}

func (l *limits) leave() { <-l.slots }

// check refuses a query if too many calls of its handler have not returned.
func (l *limits) check(q *provider.QueryRequest, code *replay.Orchestration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := handlerKey{code.Name, q.Name}
	l.hung[key] = slices.DeleteFunc(l.hung[key], isClosed)
	if len(l.hung[key]) >= maxHung { // more if several were called at once
		return refusal(q, provider.QueryHandlerTimedOut,
			fmt.Sprintf("%d earlier calls or replays have not returned in this process; "+
				"the handler is not called until one returns", len(l.hung[key])), nil)
	}
	if len(l.hung[key]) == 0 {
		delete(l.hung, key)
	}
	return nil
}

// addHung records a query that was abandoned while its code ran. returned is closed when the code returns.
func (l *limits) addHung(q *provider.QueryRequest, code *replay.Orchestration, returned <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := handlerKey{code.Name, q.Name}
	l.hung[key] = append(l.hung[key], returned)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
