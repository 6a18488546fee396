package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// startWithPast starts an instance that copies the history of e so far (R30), and returns it with that history.
func (f *fixture) startWithPast(e *execution, id string) (again *execution, past []history.Event) {
	f.t.Helper()
	past = e.log()
	s := startOf(id)
	s.RestartFrom = &provider.RestartSource{ExecutionRef: history.ExecutionRef{InstanceID: e.instance.InstanceID, ExecutionID: e.instance.ExecutionID}, Events: past}
	started, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	return &execution{f: f, instance: started}, past
}

// pastTakenOver: the history starts with the copied events in the first segment. A repetition is the same start, and
// wakes the instance.
func pastTakenOver(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue)) // 3 4
	e.commit(turnStarted(), completed(3))                     // 5 6
	f.messages()

	again, past := f.startWithPast(e, "b")
	if repeated, _ := f.startWithPast(e, "b"); repeated.instance.ExecutionID != again.instance.ExecutionID {
		f.t.Errorf("repeated start has execution %s, want %s", repeated.instance.ExecutionID,
			again.instance.ExecutionID)
	}
	f.wantStatus("b", provider.StatusPending)
	if ms := f.messages(); len(ms) != 2 || ms[0].Kind != provider.MessageWake || ms[0].InstanceID != "b" {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
	wantPast(again, e, past)
}

// wantPast fails unless the history starts with past, whose last event is parked for the first turn.
func wantPast(e, from *execution, past []history.Event) {
	f, log, last := e.f, e.log(), len(past)-1
	f.t.Helper()
	if len(log) != len(past) {
		f.t.Fatalf("history: %s", text(log))
	}
	for i := range past[:last] {
		if log[i].Kind != past[i].Kind || log[i].ID != past[i].ID || !log[i].Time.Equal(past[i].Time) {
			f.t.Errorf("event %s was copied as %s", past[i].String(), log[i].String())
		}
	}
	restarted := &log[last]
	if restarted.Kind != history.ExecutionRestarted || restarted.ExecutionID != e.instance.ExecutionID || len(restarted.Inputs) != 1 || restarted.Inputs[0].SourceEventID != past[last].SourceEventID {
		f.t.Errorf("history ends with %s", text(restarted))
	}
	f.wantEqual("from", restarted.Parent, &history.Parent{InstanceID: from.instance.InstanceID, ExecutionID: from.instance.ExecutionID, EventID: past[last].ID})
	if o := e.read(); len(o.Segments) != 1 || len(o.RestartedEvents()) != len(past) {
		f.t.Errorf("%d segments, %d events copied", len(o.Segments), len(o.RestartedEvents()))
	}
}

// openPastIsSent: a repeated dispatch sends the open work of the copied history, and nothing that has ended or that the
// execution does not wait for.
func openPastIsSent(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue), detached("d"), timer(f.now().Add(-time.Minute)), child()) // 3 4, 5, 6, 7
	e.commit(turnStarted(), completed(3))
	f.work(Queue)
	f.timers()
	f.messages()

	again, _ := f.startWithPast(e, "b")
	f.messages()
	f.redispatch(again, provider.Position{})
	f.wantWork(Queue, 4)
	if ts := f.timers(); len(ts) != 1 || ts[0].TimerID != 6 || ts[0].ExecutionID != again.instance.ExecutionID {
		f.t.Errorf("timers %s, want 6", text(ts))
	}
	ms := f.messages()
	if len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].Parent == nil || ms[0].Parent.InstanceID != "b" || ms[0].Parent.EventID != 7 {
		f.t.Errorf("inbox messages: %s, want the start of the child", text(ms))
	}
}
