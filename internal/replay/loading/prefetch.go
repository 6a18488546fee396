package loading

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// maxPrefetched is the number of results that are fetched together with the result that the code takes. Without
// prefetching, code that takes a thousand results in sequence waits for a thousand responses of the store in each
// replay.
const maxPrefetched = 15

// Result is a result of a task.
type Result interface {
	// StoredResult returns the result, unless the code has taken it.
	StoredResult() (p history.EventPayload, ok bool)
}

// prefetch holds the results in the payload store that the code has not taken. Code that takes results in the order of
// its tasks probably continues in this order.
type prefetch struct {
	waiting []storedResult // by ID
	fresh   []storedResult // settled since a result was taken, in the order of arrival
	gone    int            // the taken results in waiting
	last    int64          // the ID of the result that was taken last
	window  int
}

// storedResult is the result of a task. The result is nil after it was taken.
type storedResult struct {
	id     int64
	result Result
}

func byID(x, y storedResult) int { return int(x.id - y.id) }

func (p *prefetch) add(id int64, r Result) { p.fresh = append(p.fresh, storedResult{id, r}) }

// arrange merges the fresh results into the waiting ones. It drops the taken results when they are more than half, so
// that code can take 100,000 results in any order.
func (p *prefetch) arrange() {
	if 2*p.gone > len(p.waiting) {
		p.waiting = slices.DeleteFunc(p.waiting, func(s storedResult) bool { return s.result == nil && s.id != p.last })
		p.gone = 0
	}
	slices.SortFunc(p.fresh, byID)
	at, from := len(p.waiting)-1, len(p.fresh)-1
	p.waiting = append(p.waiting, p.fresh...)
	for to := len(p.waiting) - 1; from >= 0; to-- { // from the end, until no result moves
		if at >= 0 && p.waiting[at].id > p.fresh[from].id {
			p.waiting[to] = p.waiting[at]
			at--
		} else {
			p.waiting[to] = p.fresh[from]
			from--
		}
	}
	clear(p.fresh)
	p.fresh = p.fresh[:0]
}

// take marks a result as taken and returns the results that are likely to be taken next. It returns none unless the
// code also took the result before this one.
func (p *prefetch) take(id int64) (next []history.EventPayload) {
	p.arrange()
	at, found := slices.BinarySearchFunc(p.waiting, storedResult{id: id}, byID)
	if !found {
		return nil
	}
	p.waiting[at].result = nil
	p.gone++
	if at == 0 || p.waiting[at-1].id != p.last {
		p.window = 0
	} else {
		p.window = min(2*p.window+1, maxPrefetched)
	}
	p.last = id
	for _, s := range p.waiting[at+1:] {
		if len(next) == p.window {
			break
		}
		if s.result == nil {
			continue
		}
		if stored, ok := s.result.StoredResult(); ok {
			next = append(next, stored)
		}
	}
	return next
}
