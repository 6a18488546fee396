package work

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
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

// slowPoll is a provider that needs time to read cancels: it calls meanwhile.
type slowPoll struct {
	provider.Provider

	meanwhile func()
}

func (p slowPoll) PollCancels(_ context.Context, _ string, from int64) (provider.Cancels, int64, error) {
	p.meanwhile()
	return nil, from + 1, nil
}

// Interleaving: while a poll reads, an activity begins whose own read ended at an earlier segment. Earlier polls have
// read the segments in between, when this activity did not run yet, so the next poll reads them again.
func TestPoll_activityBeginsMeanwhile_nextPollReadsFromWhereItStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the timer of the next look does not fire
		o := &Options{Clock: time.Now}
		m := newManager(&intake.Base{}, o, &reporter{options: o})
		of := func(unread int64) *task {
			item := &provider.LockedWorkItem{WorkItem: provider.WorkItem{InstanceID: "a", ExecutionID: "x"}}
			b := &batch{ctx: t.Context()}
			return &task{item: item, batch: b, unread: unread, pollEvery: time.Second, began: time.Now()}
		}
		m.polls.watch(of(7))
		x := m.polls.executions["x"]
		poll := func(meanwhile func()) {
			m.polls.provider = slowPoll{meanwhile: meanwhile}
			x.polling = true
			m.polls.poll(t.Context(), x, x.from, x.pace.begin(time.Now(), 1))
		}

		poll(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.polls.watch(of(3))
		})
		if x.from != 3 {
			t.Errorf("the next poll reads from segment %d, want 3", x.from)
		}
		poll(func() {})
		if x.from != 4 {
			t.Errorf("the poll after it reads from segment %d, want 4", x.from)
		}
	})
}
