package instances

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func damagedDeleted(f *kit.Fixture) {
	for _, d := range []kit.Damage{kit.Undecodable, kit.LaterRelease, kit.NoEvents, kit.PartMissing, kit.Missing} {
		for segment := range int64(4) {
			if d == kit.PartMissing && segment != 2 {
				continue
			}
			m := kit.StartMessageOf(fmt.Sprintf("%s %d", d, segment), "s1")
			m.Parent.ExecutionID = "parent of " + m.InstanceID // so that no response is dropped
			e := f.Create(m)
			e.Commit(kit.Activity(kit.Queue))
			e.Commit(kit.Bulky(900 << 10))
			e.Commit(kit.Completed(2))
			late := e.Turn(kit.Activity(kit.Queue), kit.Activity(kit.OtherQueue))
			f.Damage(e.Instance.ExecutionID, segment, d)
			id := e.Instance.InstanceID
			f.DeleteInstance(id)
			wantParentNotified(f, m, "", wasDeleted())
			wantGone(f, id, e.Instance.ExecutionID)
			e.WantReasons("instance_deleted")
			for head := range int64(3) { // a turn cannot commit in the gap
				late.Head.Segment = head
				_, err := f.Provider.AckOrchestrationItem(f.Ctx(), late)
				f.WantErrorIs(err, provider.ErrConflict)
			}
		}
	}
	if n := len(f.Drain(kit.OtherQueue)); n > 0 {
		f.T.Errorf("got %d work items of turns after the deletion, want none", n)
	}
}

// damagedEnded deletes an instance whose terminal event can be read, but not the events before it. The status shows
// that the outcome was not sent to the parent. The parent receives the child's outcome.
func damagedEnded(f *kit.Fixture) {
	for id, reported := range map[string]bool{"sent": true, "not sent": false} {
		m := kit.StartMessageOf(id, "s1")
		m.Parent.ExecutionID = "parent of " + id
		e := f.Create(m)
		e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
		if !reported {
			f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
		}
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.Completed(3), kit.Ended(`"paid"`)))
		if (err == nil) != reported {
			f.T.Errorf("%s: final event: %v", id, err)
		}
		f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
		f.Must(f.Provider.DeleteInstance(f.Ctx(), id, !reported))
		wantParentNotified(f, m, `"paid"`, nil)
		wantGone(f, id, e.Instance.ExecutionID)
	}
}

// damagedEndDeleted deletes an instance whose terminal event cannot be read. The status shows that the instance has
// ended, so the outcome was already sent to the parent.
func damagedEndDeleted(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	e.Commit(kit.TurnStarted(), kit.Ended(`"paid"`))
	f.Messages()
	f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
	f.Advance(6 * time.Minute) // otherwise a queue drops the next response as a duplicate
	f.DeleteInstance("c")
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("messages to the parent: got %s", kit.Text(ms))
	}
	wantGone(f, "c", e.Instance.ExecutionID)
}

// damagedWatermark deletes an instance whose history has no segment left.
func damagedWatermark(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Commit(kit.TurnStarted(), kit.Ended(`1`))
	for segment := range int64(2) {
		f.Damage(e.Instance.ExecutionID, segment, kit.Missing)
	}
	f.DeleteInstance("a")
	s := kit.StartOf("a")
	s.StartID = "the next"
	in, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	wantConsumed(f, "a", in.ExecutionID, 1)
}
