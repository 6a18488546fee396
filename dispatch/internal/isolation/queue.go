// Package isolation runs records that may crash their process one at a time. A suspect is a record with crash markers:
// a process crashed while the code of an earlier delivery ran. Suspects of a batch run after its other records, one
// after another, so that a record that crashes the process does not mark others (R13).
package isolation

import (
	"cmp"
	"slices"
	"sync"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// Suspect is a record with crash markers.
type Suspect struct {
	// CrashCount is the number of crash markers.
	CrashCount int
	// Deliveries and ReceiptHandle are those of the record.
	Deliveries    int
	ReceiptHandle string

	turn chan struct{} // closed when the suspect may run
}

// Queue lets the suspects of a batch wait until the results of all other records are sent.
type Queue struct {
	mu sync.Mutex
	// busy is the number of running records whose results are not sent.
	busy         int
	waiting      []*Suspect
	crashedAlone bool // a suspect that crashed its process alone has joined
}

// AddBusy adds n records that start to run.
func (q *Queue) AddBusy(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy += n
}

// Join adds a suspect, which was busy until now. The channel is closed when the suspect may run. ok is false if the
// suspect must be released to its queue, because a batch runs at most one suspect that crashed its process alone.
func (q *Queue) Join(s *Suspect) (turn <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.CrashCount >= intake.CrashedAlone {
		if q.crashedAlone {
			return nil, false
		}
		q.crashedAlone = true
	}
	s.turn = make(chan struct{})
	q.waiting = append(q.waiting, s)
	q.busy--
	q.startNext()
	return s.turn, true
}

// Leave removes a suspect that is released to its queue, unless it may run already. The suspect is busy until Done.
func (q *Queue) Leave(s *Suspect) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, s); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.busy++
	}
}

// Done reports that the results of n busy records were sent.
func (q *Queue) Done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy -= n
	q.startNext()
}

// startNext lets the suspect that is the least likely to crash the process run.
func (q *Queue) startNext() {
	if q.busy > 0 || len(q.waiting) == 0 {
		return
	}
	first := slices.MinFunc(q.waiting, func(a, b *Suspect) int {
		return cmp.Or(intake.CompareSuspects(a.CrashCount, b.CrashCount, a.Deliveries, b.Deliveries),
			cmp.Compare(a.ReceiptHandle, b.ReceiptHandle)) // not the order of arrival, which is random
	})
	q.waiting = slices.DeleteFunc(q.waiting, func(s *Suspect) bool { return s == first })
	q.busy++
	close(first.turn)
}
