package work

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// A suspect is a record on which a mark stands: some delivery of it began, and its process died, of whatever. It runs when the others
// of its batch are done with, alone, so that should it be what kills, it takes no other along, and no other bears a mark for it (R13).

// line is where the suspects of a batch wait until the results of all others are sent.
type line struct {
	mu      sync.Mutex
	busy    int // tasks whose results are not sent, and that are neither in the line nor behind another of their key
	waiting []*task
	proven  bool // a task that has died alone is in it, or was
}

// join puts a task into the line. The channel is closed when its turn has come; nil: it is to go back.
func (l *line) join(t *task) (turn <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &t.suspicion
	if s.died >= intake.DiedAlone {
		if s.apart = l.proven; s.apart {
			return nil
		}
		l.proven = true
	}
	s.turn = make(chan struct{})
	l.waiting = append(l.waiting, t)
	l.busy--
	l.next()
	return s.turn
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

// sent notes that the results of n tasks are sent.
func (l *line) sent(n int) {
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
		return cmp.Or(intake.InnocentFirst(a.suspicion.died, b.suspicion.died, a.item.Record.ReceiveCount, b.item.Record.ReceiveCount),
			cmp.Compare(a.item.Record.ReceiptHandle, b.item.Record.ReceiptHandle)) // and not by their arrival
	})
	l.waiting = slices.DeleteFunc(l.waiting, func(t *task) bool { return t == first })
	l.busy++
	close(first.suspicion.turn)
}

// joins counts a task that was behind another of its key. The lock is held.
func (l *line) joins() { l.busy++ }

// awaitTurn waits until a suspect may run, or reports false when it is to go back. Its lease is renewed meanwhile.
func (a *admission) awaitTurn(ctx context.Context, t *task) bool {
	line := &t.batch.line
	turn := line.join(t)
	if turn == nil {
		return false
	}
	longest := intake.LongestWait
	if at := t.batch.stopAt; !at.IsZero() {
		longest = min(longest, at.Sub(a.options.Clock()))
	}
	up := time.NewTimer(longest)
	defer up.Stop()

	select {
	case <-turn:
		t.suspicion.single = a.alone.Take(ctx, &t.item.Record, up.C)
	case <-up.C:
		line.leave(t)
	case <-ctx.Done():
		line.leave(t)
	}
	return t.suspicion.single
}

// sent ends the turns of tasks whose results are sent, of which some have failed.
func (a *admission) sent(b *batch, ends []finished, failed []string) {
	for _, e := range ends {
		if e.task.suspicion.single {
			a.alone.Release()
		}
	}
	a.passOn(b, ends, failed)
	b.line.sent(len(ends))
}
