// Package letters holds dead letters in memory, for tests of clients.
package letters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// Letters holds dead letters in memory. A hub can use it besides its Provider. A received dead letter is hidden for the
// requested time or until it is released.
type Letters struct {
	now func() time.Time

	mu       sync.Mutex
	queues   map[string][]*letter
	redriven []provider.DeadLetter
	buried   int
	failure  error
}

type letter struct {
	provider.DeadLetter

	hidden time.Time // until then
}

var _ provider.DeadLetters = (*Letters)(nil)

// New returns Letters with these queues, which are empty.
func New(now func() time.Time, queues ...string) *Letters {
	l := &Letters{now: now, queues: map[string][]*letter{}}
	for _, queue := range queues {
		l.queues[queue] = nil
	}
	return l
}

// Bury adds a dead letter that was moved to the dead-letter queue now, and returns its ID.
func (l *Letters) Bury(queue, reason, body string) (id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buried++
	id = fmt.Sprintf("%s-%d", queue, l.buried)
	l.queues[queue] = append(l.queues[queue], &letter{DeadLetter: provider.DeadLetter{
		Queue: queue, Reason: reason, SentAt: l.now(), Subject: wire.SubjectOf(body),
		Record: provider.Record{ID: id, Body: body},
	}})
	return id
}

// FailLetters makes later calls fail with err until FailLetters(nil). ReleaseDeadLetters never fails.
func (l *Letters) FailLetters(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// Redriven returns the dead letters that were redriven.
func (l *Letters) Redriven() []provider.DeadLetter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.redriven)
}

// DeadLetterQueues implements provider.DeadLetters.
func (l *Letters) DeadLetterQueues() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.queues))
}

// CountDeadLetters implements provider.DeadLetters.
func (l *Letters) CountDeadLetters(_ context.Context, queue string) (visible, hidden int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.queues[queue] {
		if d.hidden.After(l.now()) {
			hidden++
		} else {
			visible++
		}
	}
	return visible, hidden, l.failure
}

// ReceiveDeadLetters implements provider.DeadLetters.
func (l *Letters) ReceiveDeadLetters(
	_ context.Context, queue string, hide time.Duration,
) (some []provider.DeadLetter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return nil, l.failure
	}
	for _, d := range l.queues[queue] {
		if len(some) == 10 || d.hidden.After(l.now()) {
			continue
		}
		d.hidden = l.now().Add(hide)
		d.Record.ReceiveCount++
		some = append(some, d.DeadLetter)
	}
	return some, nil
}

// ReleaseDeadLetters implements provider.DeadLetters.
func (l *Letters) ReleaseDeadLetters(_ context.Context, queue string, letters ...provider.DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.queues[queue] {
		if holds(letters, d.Record.ID) {
			d.hidden = time.Time{}
		}
	}
	return nil
}

// RedriveDeadLetters implements provider.DeadLetters.
func (l *Letters) RedriveDeadLetters(_ context.Context, queue string, letters ...provider.DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return l.failure
	}
	l.redriven = append(l.redriven, letters...)
	l.delete(queue, letters)
	return nil
}

// DropDeadLetters implements provider.DeadLetters.
func (l *Letters) DropDeadLetters(_ context.Context, queue string, letters ...provider.DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return l.failure
	}
	l.delete(queue, letters)
	return nil
}

func (l *Letters) delete(queue string, letters []provider.DeadLetter) {
	l.queues[queue] = slices.DeleteFunc(l.queues[queue], func(d *letter) bool { return holds(letters, d.Record.ID) })
}

func holds(letters []provider.DeadLetter, id string) bool {
	return slices.ContainsFunc(letters, func(d provider.DeadLetter) bool { return d.Record.ID == id })
}
