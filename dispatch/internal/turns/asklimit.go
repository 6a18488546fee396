package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

const (
	// askedAtOnce bounds the queries that a process answers at once: each holds a history and a replay of it, beside the turns.
	askedAtOnce = 4
	// mostHung bounds how often a process calls a handler that does not come back: each call keeps its goroutine, and may keep a processor.
	mostHung = 3
)

// askLimits bound what queries take of a process that runs turns. They are safe for concurrent use.
type askLimits struct {
	places chan struct{}

	mu   sync.Mutex
	hung map[askedCode][]<-chan struct{} // each closed when that code has come back
}

// askedCode is what a query calls.
type askedCode struct{ orchestration, query string }

func newAskLimits() *askLimits {
	return &askLimits{places: make(chan struct{}, askedAtOnce), hung: map[askedCode][]<-chan struct{}{}}
}

// enter waits for a place, which leave gives back.
func (l *askLimits) enter(ctx context.Context, q *provider.QueryRequest) error {
	select {
	case l.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("dispatch: query %q: instance %q: no time left while this process handles %d other queries: %w",
			q.Name, q.InstanceID, askedAtOnce, ctx.Err())
	}
}

func (l *askLimits) leave() { <-l.places }

// check refuses a query whose handler has not come back too often.
func (l *askLimits) check(q *provider.QueryRequest, code *replay.Orchestration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := askedCode{code.Name, q.Name}
	l.hung[key] = slices.DeleteFunc(l.hung[key], isClosed)
	if len(l.hung[key]) >= mostHung { // more, where several were called at once
		return refusal(q, provider.QueryHandlerTimedOut,
			fmt.Sprintf("%d earlier calls or replays have not returned in this process; "+
				"the handler is not called until one returns", len(l.hung[key])), nil)
	}
	if len(l.hung[key]) == 0 {
		delete(l.hung, key)
	}
	return nil
}

// note keeps in mind that a query was given up while its code ran. gone is closed when that comes back.
func (l *askLimits) note(q *provider.QueryRequest, code *replay.Orchestration, gone <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := askedCode{code.Name, q.Name}
	l.hung[key] = append(l.hung[key], gone)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
