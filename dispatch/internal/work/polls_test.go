package work

import (
	"reflect"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// What an execution was polled with is used again for another: empty, and not while a poll has it, which would tell the activities of one execution the
// cancels of another.
func TestWhatAnExecutionIsPolledWithIsUsedAgain(t *testing.T) {
	t.Parallel()
	p := &cancelPolls{executions: map[string]*polled{}}
	of := func(executionID string) *task {
		item := &provider.LockedWorkItem{WorkItem: provider.WorkItem{InstanceID: "a", ExecutionID: executionID}}
		return &task{item: item, batch: &batch{ctx: t.Context()}, unread: 7, pollEvery: time.Second, began: time.Unix(1, 0)}
	}
	first, second, third := of("x"), of("y"), of("z")
	p.watch(first)
	x := p.executions["x"]
	p.unwatch(first)
	if !reflect.DeepEqual(x, &polled{pace: pace{asked: []asked{}}}) {
		t.Errorf("it has %+v", x)
	}
	if p.watch(second); p.executions["y"] != x {
		t.Error("it is not used again")
	}
	x.polling = true
	p.unwatch(second)
	if p.watch(third); p.executions["z"] == x {
		t.Error("it is used again while a poll has it")
	}
}
