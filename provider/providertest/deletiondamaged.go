package providertest

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

func damagedDeleted(f *fixture) {
	for _, d := range []Damage{Undecodable, LaterRelease, NoEvents, PartMissing, Missing} {
		for segment := range int64(4) {
			if d == PartMissing && segment != 2 {
				continue
			}
			m := startMessageOf(fmt.Sprintf("%s %d", d, segment), "s1")
			m.Parent.ExecutionID = "parent of " + m.InstanceID // so that a queue does not take one response for another
			e := f.create(m)
			e.commit(activity(Queue))
			e.commit(bulky(900 << 10))
			e.commit(completed(2))
			late := e.turn(activity(Queue), activity(OtherQueue))
			f.Damage(e.instance.ExecutionID, segment, d)
			id := e.instance.InstanceID
			f.remove(id)
			f.wantTold(m, "", wasDeleted())
			f.wantGone(id, e.instance.ExecutionID)
			e.wantReasons("instance_deleted")
			for head := range int64(3) { // the gap has no free segment for a turn either
				late.Head.Segment = head
				_, err := f.p.AckOrchestrationItem(f.ctx(), late)
				f.wantIs(err, provider.ErrConflict)
			}
		}
	}
	if n := len(f.drain(OtherQueue)); n > 0 {
		f.t.Errorf("%d work items of turns after the deletion, want none", n)
	}
}

// damagedOver: the end can be read and the events before it cannot, and the status shows that the outcome was not sent
// to the parent. The parent receives the child's outcome.
func damagedOver(f *fixture) {
	for id, told := range map[string]bool{"told": true, "not told": false} {
		m := startMessageOf(id, "s1")
		m.Parent.ExecutionID = "parent of " + id
		e := f.create(m)
		e.commit(turnStarted(), activity(Queue))
		if !told {
			f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
		}
		_, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(completed(3), ended(`"paid"`)))
		if (err == nil) != told {
			f.t.Errorf("%s: final event: %v", id, err)
		}
		f.Damage(e.instance.ExecutionID, 1, Undecodable)
		f.must(f.p.DeleteInstance(f.ctx(), id, !told))
		f.wantTold(m, `"paid"`, nil)
		f.wantGone(id, e.instance.ExecutionID)
	}
}

// damagedEndDeleted: the end cannot be read. The status shows that the instance has ended, so the outcome was sent to
// the parent before.
func damagedEndDeleted(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted(), ended(`"paid"`))
	f.messages()
	f.Damage(e.instance.ExecutionID, 1, Undecodable)
	f.Advance(6 * time.Minute) // otherwise a queue takes another response for a repetition
	f.remove("c")
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
	f.wantGone("c", e.instance.ExecutionID)
}

// damagedWatermark: no segment of the history is left.
func damagedWatermark(f *fixture) {
	e := f.quiet("a")
	e.commit(turnStarted(), ended(`1`))
	for segment := range int64(2) {
		f.Damage(e.instance.ExecutionID, segment, Missing)
	}
	f.remove("a")
	s := startOf("a")
	s.StartID = "the next"
	in, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	f.wantConsumed("a", in.ExecutionID, 1)
}
