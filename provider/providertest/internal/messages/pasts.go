package messages

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// startWithPast starts an instance that copies the history of e so far (R30), and returns it with that history.
func startWithPast(f *kit.Fixture, e *kit.Execution, id string) (again *kit.Execution, past []history.Event) {
	f.T.Helper()
	past = e.History()
	s := kit.StartOf(id)
	s.RestartFrom = &provider.RestartSource{
		ExecutionRef: history.ExecutionRef{InstanceID: e.Instance.InstanceID, ExecutionID: e.Instance.ExecutionID},
		Events:       past,
	}
	started, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	return &kit.Execution{F: f, Instance: started}, past
}

// pastTakenOver checks that the first segment contains the copied events. A repeated start wakes the instance.
func pastTakenOver(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue)) // 3 4
	e.Commit(kit.TurnStarted(), kit.Completed(3))                                 // 5 6
	f.Messages()

	again, past := startWithPast(f, e, "b")
	if repeated, _ := startWithPast(f, e, "b"); repeated.Instance.ExecutionID != again.Instance.ExecutionID {
		f.T.Errorf("repeated start has execution %s, want %s", repeated.Instance.ExecutionID,
			again.Instance.ExecutionID)
	}
	f.WantStatus("b", provider.StatusPending)
	if ms := f.Messages(); len(ms) != 2 || ms[0].Kind != provider.MessageWake || ms[0].InstanceID != "b" {
		f.T.Errorf("inbox messages: %s", kit.Text(ms))
	}
	wantPast(again, e, past)
}

// wantPast fails if the history does not start with past, or if the last event of past is not parked for the first
// turn.
func wantPast(e, from *kit.Execution, past []history.Event) {
	f, log, last := e.F, e.History(), len(past)-1
	f.T.Helper()
	if len(log) != len(past) {
		f.T.Fatalf("history: %s", kit.Text(log))
	}
	for i := range past[:last] {
		if log[i].Kind != past[i].Kind || log[i].ID != past[i].ID || !log[i].Time.Equal(past[i].Time) {
			f.T.Errorf("event %s was copied as %s", past[i].String(), log[i].String())
		}
	}
	restarted := &log[last]
	if restarted.Kind != history.ExecutionRestarted || restarted.ExecutionID != e.Instance.ExecutionID ||
		len(restarted.Inputs) != 1 || restarted.Inputs[0].SourceEventID != past[last].SourceEventID {
		f.T.Errorf("history ends with %s", kit.Text(restarted))
	}
	f.WantEqual("origin of the restart", restarted.Parent, &history.Parent{
		InstanceID: from.Instance.InstanceID, ExecutionID: from.Instance.ExecutionID, EventID: past[last].ID,
	})
	if o := e.Read(); len(o.Segments) != 1 || len(o.RestartedEvents()) != len(past) {
		f.T.Errorf("%d segments, %d events copied", len(o.Segments), len(o.RestartedEvents()))
	}
}

// openPastIsSent checks that a redispatch sends only the open work of the copied history that the execution waits for.
func openPastIsSent(f *kit.Fixture) {
	e := f.Start("a")
	// 3 4, 5, 6, 7
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Detached("d"),
		kit.Timer(f.StoredNow().Add(-time.Minute)), kit.Child())
	e.Commit(kit.TurnStarted(), kit.Completed(3))
	f.Work(kit.Queue)
	f.Timers()
	f.Messages()

	again, _ := startWithPast(f, e, "b")
	f.Messages()
	f.Redispatch(again, provider.Position{})
	f.WantWork(kit.Queue, 4)
	if ts := f.Timers(); len(ts) != 1 || ts[0].TimerID != 6 || ts[0].ExecutionID != again.Instance.ExecutionID {
		f.T.Errorf("timers %s, want 6", kit.Text(ts))
	}
	ms := f.Messages()
	if len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].Parent == nil || ms[0].Parent.InstanceID != "b" ||
		ms[0].Parent.EventID != 7 {
		f.T.Errorf("inbox messages: %s, want the start of the child", kit.Text(ms))
	}
}
