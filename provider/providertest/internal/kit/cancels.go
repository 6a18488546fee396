package kit

import (
	"github.com/perdure/perdure/provider"
)

// Ack commits a turn that may have rejected outputs, and advances the head.
func (e *Execution) Ack(t *provider.Turn) {
	e.F.T.Helper()
	_, err := e.F.Provider.AckOrchestrationItem(e.F.Ctx(), t)
	e.F.Must(err)
	e.Block, _ = e.Block.Add(t.Head.Segment+1, t.Cancels)
	e.Follow(t)
}

// Cancels returns the whole cancel record of an execution.
func (f *Fixture) Cancels(executionID string) provider.Cancels {
	f.T.Helper()
	c, _ := f.CancelsFrom(executionID, 0)
	return c
}

// CancelsFrom returns the part of the cancel record that starts at a segment.
func (f *Fixture) CancelsFrom(executionID string, from int64) (c provider.Cancels, next int64) {
	f.T.Helper()
	c, next, err := f.Provider.ReadCancels(f.Ctx(), executionID, from)
	f.Must(err)
	return c, next
}

// WantReasons fails if activities 1 to len(want) are not cancelled for these reasons. An empty reason means not
// cancelled.
func (e *Execution) WantReasons(want ...string) {
	e.F.T.Helper()
	c := e.F.Cancels(e.Head.ExecutionID)
	var got []string
	for i := range want {
		info := c.Of(int64(i + 1))
		if info.Requested != (info.Reason != "") {
			e.F.T.Errorf("activity %d: %+v", i+1, info)
		}
		got = append(got, info.Reason)
	}
	e.F.WantEqual("reasons of activities 1, 2, …", got, want)
}
