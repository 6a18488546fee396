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
	waiting []awaited // by id
	fresh   []awaited // that have settled since a result was taken, as they came
	gone    int       // of those that wait, were taken
	last    int64     // whose result was taken last
	window  int
}

// awaited is a task whose result waits in the store; nil once it is taken.
type awaited struct {
	id   int64
	task *Task
}

func byTask(x, y awaited) int { return int(x.id - y.id) }

// settled notes a task whose result lies in the store.
func (a *ahead) settled(t *Task) { a.fresh = append(a.fresh, awaited{t.id, t}) }

// arrange puts what has settled in its place among what waits, and drops what was taken once that is the half: code with 100,000 results under way may take
// each as it comes.
func (a *ahead) arrange() {
	if 2*a.gone > len(a.waiting) {
		a.waiting = slices.DeleteFunc(a.waiting, func(w awaited) bool { return w.task == nil && w.id != a.last })
		a.gone = 0
	}
	slices.SortFunc(a.fresh, byTask)
	at, from := len(a.waiting)-1, len(a.fresh)-1
	a.waiting = append(a.waiting, a.fresh...)
	for to := len(a.waiting) - 1; from >= 0; to-- { // from behind, up to where nothing moves
		if at >= 0 && a.waiting[at].id > a.fresh[from].id {
			a.waiting[to] = a.waiting[at]
			at--
		} else {
			a.waiting[to] = a.fresh[from]
			from--
		}
	}
	clear(a.fresh)
	a.fresh = a.fresh[:0]
}

// taken notes that a result is taken, and returns those that are likely to be taken next: none until it is the one behind that which was taken before.
func (a *ahead) taken(t *Task) (next []history.EventPayload) {
	a.arrange()
	at, found := slices.BinarySearchFunc(a.waiting, awaited{id: t.id}, byTask)
	if !found {
		return nil
	}
	a.waiting[at].task = nil
	a.gone++
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
