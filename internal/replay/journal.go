package replay

import "github.com/perdure/perdure/history"

// journal is an execution's history, as far as its code is concerned: a cursor over the past while that is replayed, and the draft of what the
// turn under way adds.
type journal struct {
	cursor cursor
	draft  draft
}

// decide takes a decision. In a turn it adds an event, which the caller completes: added is true. On replay it returns the event that history
// has there, which must be left as it is, or a *NondeterminismError.
func (j *journal) decide(d *decision) (ev *history.Event, added bool, err error) {
	if j.cursor.replaying {
		ev, err = j.cursor.match(d)
		return ev, false, err
	}

	ev = j.add()
	ev.Kind = d.kind
	ev.Name = d.name
	ev.InstanceID = d.instanceID
	ev.Reason = d.reason
	ev.SourceEventID = d.source
	ev.SourceEventIDs = d.sources
	return ev, true, nil
}

// add adds an event to those of the turn, with its id and time. The caller fills in the rest.
func (j *journal) add() *history.Event { return j.draft.add(j.cursor.assign()) }

// startTurn writes TurnStarted, once there is something to follow it.
func (j *journal) startTurn(t *Turn) {
	if !j.draft.isEmpty() {
		return
	}
	j.draft.makeRoom(t.Room)
	ev := j.add()
	ev.Kind = history.TurnStarted
	ev.Version = t.Version
	ev.BuildID = t.BuildID
	ev.LargePayloads = j.draft.large
}
