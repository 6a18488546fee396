package tasks

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
)

// A settled child is not retried, and a warm instance releases its input.
func TestChild_settled_releasesInput(t *testing.T) {
	t.Parallel()
	var set Set
	var scopes Scopes
	set.Init(&Options{ExecutionRef: &history.ExecutionRef{}}, &Scheduler{}, &scopes, &journal.Journal{},
		&loading.Loader{})
	child := set.Schedule(scopes.Root(), &history.Event{
		ID: 3, Kind: history.SubOrchestrationScheduled, Input: history.Payload("1"), Retry: &history.RetryPolicy{},
	})
	if string(child.child.input) != "1" {
		t.Fatalf("got %s", child.child.input)
	}
	set.settle(child, json.RawMessage("22"), nil)
	if child.child.input != nil || set.untaken != 2 {
		t.Errorf("got %s, %d bytes", child.child.input, set.untaken)
	}
	if got := child.TakeResult(); string(got) != "22" || set.untaken != 0 || child.TakeResult() != nil {
		t.Errorf("got %s, %d bytes", got, set.untaken)
	}
}
