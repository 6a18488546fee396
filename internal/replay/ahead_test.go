package replay

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestWhatIsTakenIsForgotten: code that takes each of 100,000 results as it comes, in whatever order, leaves nothing to look through for the next.
func TestWhatIsTakenIsForgotten(t *testing.T) {
	t.Parallel()
	var a ahead
	most := 0
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(100_000) {
		task := &Task{id: int64(i + 1)}
		a.settled(task)
		a.taken(task)
		most = max(most, len(a.waiting)+len(a.fresh))
	}
	if most > 4 {
		t.Errorf("%d are kept", most)
	}
}

// TestWhatComesNextIsFetchedInOrder: in whatever order results have come, those behind the one that is taken come next, and more each time.
func TestWhatComesNextIsFetchedInOrder(t *testing.T) {
	t.Parallel()
	const n = 1000
	var a ahead
	tasks := make([]*Task, n)
	for i := range tasks {
		tasks[i] = &Task{id: int64(i + 1), result: json.RawMessage(`1`)}
	}
	random := rand.New(rand.NewPCG(3, 4))
	settle := func(some []*Task) {
		for _, i := range random.Perm(len(some)) {
			a.settled(some[i])
		}
	}
	settle(tasks[:n/2])
	for i, task := range tasks {
		if i == n/4 {
			settle(tasks[n/2:])
		}
		next := a.taken(task)
		if want := min(1<<min(i, 4)-1, mostAhead, n-1-i); len(next) != want {
			t.Fatalf("%d are fetched beside the %dth, want %d", len(next), i, want)
		}
	}
}
