package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// A suspect is a record on which a mark stands: some delivery of it began, and its process died, of whatever. It runs when the others
// of its batch are done with, alone, so that should it be what kills, it takes nobody along, and nobody bears a mark for it (R13).

// longestWait is how long a suspect waits for its turn. What takes longer goes back to its queue: another batch may have room.
const longestWait = longestRetryDelay

// alone is what a suspect holds while it runs: a process that polls has several batches in hand, and one suspect at a time.
type alone struct {
	mu      sync.Mutex
	taken   bool
	waiting []*aloneWaiter // in the order of their keys, which does not depend on who came first
}

type aloneWaiter struct {
	key  string
	turn chan struct{}
}

func newAlone() *alone { return &alone{} }

// take waits until no other suspect runs in the process, or reports false when ctx ends or the time is up.
func (a *alone) take(ctx context.Context, key string, up <-chan time.Time) bool {
	a.mu.Lock()
	if !a.taken {
		a.taken = true
		a.mu.Unlock()
		return true
	}
	w := &aloneWaiter{key: key, turn: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(a.waiting, w, func(x, y *aloneWaiter) int { return cmp.Compare(x.key, y.key) })
	a.waiting = slices.Insert(a.waiting, at, w)
	a.mu.Unlock()

	select {
	case <-w.turn:
		return true
	case <-up:
	case <-ctx.Done():
	}
	return !a.leave(w)
}

// leave takes a waiter out, or reports false: it has got its turn meanwhile.
func (a *alone) leave(w *aloneWaiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, w)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return i >= 0
}

func (a *alone) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken = len(a.waiting) > 0; a.taken {
		close(a.waiting[0].turn)
		a.waiting = a.waiting[1:]
	}
}

// innocentFirst orders suspects: what has died least is most likely a neighbour of what kills, and the oldest has waited for longest.
func innocentFirst(died, otherDied, deliveries, otherDeliveries int) int {
	return cmp.Or(cmp.Compare(died, otherDied), cmp.Compare(otherDeliveries, deliveries))
}

// diedAlone is how many marks stand at least on what has died alone: the first one may have been a neighbour's doing. Of such one runs in
// an invocation. Several that kill, in one batch, would come back together each time, and use each other's deliveries up.
const diedAlone = 2

// spread is how long a record stays invisible that is not to come back together with others of its batch: as long as its deliveries
// say, and up to half as long more.
func spread(r *provider.Record) time.Duration {
	h := fnv.New32a()
	of := r.ID
	if r.Group != "" {
		of = r.Group // which is invisible until all of it is visible
	}
	_, _ = fmt.Fprint(h, of, r.ReceiveCount)
	d := retryDelay(r.ReceiveCount)
	return d + d/2*time.Duration(h.Sum32()%spreadSteps)/spreadSteps
}

const spreadSteps = 1000

// line is where the suspects of a shift wait until all others of it are told.
type line struct {
	mu      sync.Mutex
	busy    int // tasks that are neither told nor in the line
	waiting []*task
	proven  bool // one of those that have died alone is in it, or was
}

// join puts a task into the line. What comes back is closed when its turn has come; nil where it is to go back.
func (l *line) join(t *task) (turn <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.died >= diedAlone {
		if t.apart = l.proven; t.apart {
			return nil
		}
		l.proven = true
	}
	t.turn = make(chan struct{})
	l.waiting = append(l.waiting, t)
	l.busy--
	l.next()
	return t.turn
}

// leave takes a task out of the line that goes back, unless its turn has come.
func (l *line) leave(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, t); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.busy++
	}
}

// told is that n tasks are done with.
func (l *line) told(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy -= n
	l.next()
}

func (l *line) next() {
	if l.busy > 0 || len(l.waiting) == 0 {
		return
	}
	first := slices.MinFunc(l.waiting, func(a, b *task) int {
		return innocentFirst(a.died, b.died, a.item.Record.ReceiveCount, b.item.Record.ReceiveCount)
	})
	l.waiting = slices.DeleteFunc(l.waiting, func(t *task) bool { return t == first })
	l.busy++
	close(first.turn)
}

// awaitTurn waits until a suspect may run, or reports false when it is to go back. Its lease is renewed meanwhile.
func (w *Worker) awaitTurn(ctx context.Context, t *task) bool {
	turn := t.shift.line.join(t)
	if turn == nil {
		return false
	}
	longest := longestWait
	if at := t.shift.tellAt; !at.IsZero() {
		longest = min(longest, at.Sub(w.options.Clock()))
	}
	up := time.NewTimer(longest)
	defer up.Stop()
	select {
	case <-turn:
		t.single = w.alone.take(ctx, t.item.Record.ID, up.C)
	case <-up.C:
		t.shift.line.leave(t)
	case <-ctx.Done():
		t.shift.line.leave(t)
	}
	return t.single
}

// told ends the turns of tasks that are done with.
func (w *Worker) told(s *shift, ends []ended) {
	for _, e := range ends {
		if e.task.single {
			w.alone.release()
		}
	}
	s.line.told(len(ends))
}

// suspected is an item of an instance on which a mark stands, and how many do.
type suspected struct {
	item *provider.OrchestrationItem
	died int
}

// suspectError: a mark stands on the message that leads to the turn, which is not to run beside others.
type suspectError struct{ died int }

func (e *suspectError) Error() string { return "dispatch: a mark stands on the message" }
