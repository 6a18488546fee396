package loading

import (
	"math/rand/v2"
	"testing"

	"github.com/perdure/perdure/history"
)

// availableResult is a result that the code has not read.
type availableResult struct{}

func (availableResult) StoredResult() (p history.EventPayload, ok bool) { return p, true }

// If code reads each of 100,000 results when it arrives, in any order, no search is needed for the next result.
func TestPrefetch_takenResults_areRemoved(t *testing.T) {
	t.Parallel()
	var p prefetch
	most := 0
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(100_000) {
		p.add(int64(i+1), availableResult{})
		p.take(int64(i + 1))
		most = max(most, len(p.waiting)+len(p.fresh))
	}
	if most > 4 {
		t.Errorf("got %d stored results", most)
	}
}

// After a read, the next results are fetched, more each time. Results may arrive in any order.
func TestPrefetch_nextResults_areFetchedInOrder(t *testing.T) {
	t.Parallel()
	const n = 1000
	var p prefetch
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	random := rand.New(rand.NewPCG(3, 4))
	settle := func(some []int64) {
		for _, i := range random.Perm(len(some)) {
			p.add(some[i], availableResult{})
		}
	}
	settle(ids[:n/2])
	for i, id := range ids {
		if i == n/4 {
			settle(ids[n/2:])
		}
		next := p.take(id)
		if want := min(1<<min(i, 4)-1, maxPrefetched, n-1-i); len(next) != want {
			t.Fatalf("got %d prefetched after %d, want %d", len(next), i, want)
		}
	}
}
