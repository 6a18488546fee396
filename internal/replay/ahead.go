package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// mostAhead is how many results are fetched beside the one that the code takes. Code that takes a thousand, one after the other, would wait for a thousand
// answers of the store otherwise, each time it is replayed.
const mostAhead = 15

// ahead are the results that lie in a store and wait to be taken. Code that takes them in the order in which it asked for them is likely to go on so.
type ahead struct {
	waiting  []awaited // by id, once sorted
	unsorted bool
	last     int64 // whose result was taken last
	window   int
}

// awaited is a task whose result waits in the store; nil once it is taken.
type awaited struct {
	id   int64
	task *Task
}

// settled notes a task whose result lies in the store.
func (a *ahead) settled(t *Task) {
	n := len(a.waiting)
	a.unsorted = a.unsorted || n > 0 && a.waiting[n-1].id > t.id
	a.waiting = append(a.waiting, awaited{t.id, t})
}

// taken notes that a result is taken, and returns those that are likely to be taken next: none until it is the one behind that which was taken before.
func (a *ahead) taken(t *Task) (next []history.EventPayload) {
	if a.unsorted {
		slices.SortFunc(a.waiting, func(x, y awaited) int { return int(x.id - y.id) })
		a.unsorted = false
	}
	at, found := slices.BinarySearchFunc(a.waiting, t.id, func(x awaited, id int64) int { return int(x.id - id) })
	if !found {
		return nil
	}
	a.waiting[at].task = nil
	if at == 0 || a.waiting[at-1].id != a.last {
		a.window = 0
	} else {
		a.window = min(2*a.window+1, mostAhead)
	}
	a.last = t.id
	for _, w := range a.waiting[at+1:] {
		if len(next) == a.window {
			break
		}
		if w.task == nil || w.task.result == nil {
			continue
		}
		p := history.Payload(w.task.result)
		next = append(next, history.EventPayload{Payload: &p, Kind: resultKind(w.task), Name: w.task.name})
	}
	return next
}
