package providertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// stopDeletion starts a forced deletion that fails halfway.
func (f *fixture) stopDeletion(id string, fault Fault) {
	f.t.Helper()
	f.Fail(fault)
	err := f.p.DeleteInstance(f.ctx(), id, true)
	f.Fail(Fault{})
	if err == nil {
		f.t.Fatalf("deletion of %q did not fail", id)
	}
}

// family creates a child with two executions, which has a child and an activity.
func (f *fixture) family(id string) {
	f.t.Helper()
	m := startMessageOf(id, "start of "+id)
	m.Parent.ExecutionID = "parent of " + id // so that a queue does not take one response for another
	e := f.create(m)
	t := e.continuing("next of "+id, turnStarted(), bulky(400<<10))
	t.Next.Start.Parent = m.Parent
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	next := f.executionAfter(t)
	next.instance.ExecutionID = t.Next.ExecutionID
	mine := child()
	mine.InstanceID = "child of " + id
	next.commit(turnStarted(), mine, activity(Queue))
	f.messages()
	f.work(Queue)
}

// wantFamilyDeleted fails unless the deletion of a family is complete.
func (f *fixture) wantFamilyDeleted(id string) {
	f.t.Helper()
	var sent []string
	for _, m := range f.messages() {
		if what := string(m.Kind) + " " + m.InstanceID; !slices.Contains(sent, what) {
			sent = append(sent, what)
		}
	}
	slices.Sort(sent)
	if got, want := strings.Join(sent, ", "), "cancel child of "+id+", childOutcome p"; got != want {
		f.t.Errorf("%s: sent %q, want %q", id, got, want)
	}
	f.wantGone(id, "next of "+id)
	if !f.cancels("next of " + id).Of(4).Requested {
		f.t.Errorf("%s: activity is not cancelled", id)
	}
	if _, err := f.p.StartOrchestration(f.ctx(), startOf(id)); !errors.Is(err, provider.ErrAlreadyExists) {
		f.t.Errorf("%s: repeated start created the instance again: %v", id, err)
	}
}

// resumesDeletion: whichever call fails, a repeated deletion continues there.
func resumesDeletion(f *fixture) {
	const mostCalls = 60
	for _, on := range []Operation{Read, Write, Update, Send} {
		for n := range mostCalls {
			id := fmt.Sprintf("%s %d", on, n)
			f.family(id)
			hits := f.Fail(Fault{Operation: on, Failure: Rejected, Times: 1, After: n})
			err := f.p.DeleteInstance(f.ctx(), id, true)
			failed := hits() > 0
			f.Fail(Fault{})
			if failed {
				f.wantPermanent(err)
				f.remove(id)
			} else {
				f.must(err)
			}
			f.wantFamilyDeleted(id)
			if !failed {
				break
			}
			if n == mostCalls-1 {
				f.t.Errorf("%s: more than %d calls", on, mostCalls)
			}
		}
	}
}

func lostDeletion(f *fixture) {
	for _, on := range []Operation{Write, Update, Send} {
		for n := 0; ; n++ {
			id := fmt.Sprintf("%s %d", on, n)
			f.family(id)
			hits := f.Fail(Fault{Operation: on, Failure: ResponseLost, Times: 1, After: n})
			f.must(f.p.DeleteInstance(f.ctx(), id, true))
			lost := hits() > 0
			f.Fail(Fault{})
			f.wantFamilyDeleted(id)
			if !lost {
				break
			}
		}
	}
}

// deletingInstance: a deletion that has started and is not complete.
func deletingInstance(f *fixture) {
	for name, fault := range map[string]Fault{
		"before its end is sent": {Operation: Send, Failure: Rejected, Times: 1}, "before it is erased": {Operation: Update, Failure: Rejected, Times: 1},
		"when its start is erased": {Operation: Write, Failure: Rejected, Times: 1, After: 2}, "before the execution before": {Operation: Update, Failure: Rejected, Times: 1, After: 1},
	} {
		f.family(name)
		f.stopDeletion(name, fault)
		f.wantStatus(name, provider.StatusDeleting)
		if in := f.instance(name); !in.Status.Terminal() || in.Name != refund {
			f.t.Errorf("%s: instance %s", name, text(in))
		}
		if ids := f.list(provider.ListQuery{Status: provider.StatusDeleting}); !slices.Equal(ids, []string{name}) {
			f.t.Errorf("%s: listed as deleting are %q", name, ids)
		}
		for _, startID := range []string{"start of " + name, "another"} {
			s := startOf(name)
			s.StartID = startID
			_, err := f.p.StartOrchestration(f.ctx(), s)
			f.wantIs(err, map[bool]error{true: provider.ErrPurged, false: provider.ErrAlreadyExists}[startID != "another"])
			_, err = f.p.CreateOrchestration(f.ctx(), startMessageOf(name, startID))
			f.wantIs(err, provider.ErrAlreadyExists)
		}
		f.must(f.p.DeleteInstance(f.ctx(), name, false)) // it has ended, so the deletion continues without force
		f.wantFamilyDeleted(name)
	}
}

// ownStartMeanwhile: the message that started the instance is redelivered during the deletion. It must not be rejected
// with "the ID is in use". Another start must be.
func ownStartMeanwhile(f *fixture) {
	f.create(startMessageOf("c", "s1"))
	f.stopDeletion("c", Fault{Operation: Send, Failure: Rejected, Times: 1})
	f.must(f.p.RejectStart(f.ctx(), startMessageOf("c", "s1")))
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
	other := startMessageOf("c", "s2")
	other.Parent.EventID = 6
	f.must(f.p.RejectStart(f.ctx(), other))
	if ms := f.messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeAlreadyExists {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), "", wasDeleted())
	for _, id := range []string{"s1", "s2"} {
		_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", id))
		f.wantIs(err, provider.ErrAlreadyExists)
	}
}

// cancelMeanwhile: a parent cancels a child while an instance with its ID is being deleted.
func cancelMeanwhile(f *fixture) {
	f.quiet("c")
	f.stopDeletion("c", Fault{Operation: Update, Failure: Rejected, Times: 1})
	m := startMessageOf("c", "s2")
	m.Kind, m.Reason = provider.MessageCancel, "requested"
	f.must(f.p.RejectCancel(f.ctx(), m))
	if ms := f.messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeCancelled {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
	f.wantStatus("c", provider.StatusDeleting)
	f.remove("c")
	_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", "s2"))
	f.wantIs(err, provider.ErrAlreadyExists)
}

func staysDeleting(f *fixture) {
	f.family("a")
	f.quiet("running")
	deleting := func() (ids []string) {
		for some, err := range f.p.DeletingInstances(f.ctx()) {
			f.must(err)
			for _, in := range some {
				if ids = append(ids, in.InstanceID); in.Status != provider.StatusDeleting {
					f.t.Errorf("instance in the list of deletions: %s", text(in))
				}
			}
		}
		return ids
	}
	f.stopDeletion("a", Fault{Operation: Send, Failure: Rejected, Times: 1})
	f.Advance(time.Minute)
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("deletions after a minute: %q", ids)
	}
	f.Advance(90 * time.Second)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.t.Errorf("deletions after 2.5 minutes: %q", ids)
	}
	f.stopDeletion("a", Fault{Operation: Update, Failure: Rejected, Times: 1, After: 1}) // the deletion makes progress
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("deletions after progress: %q", ids)
	}
	f.Advance(3 * time.Minute)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.t.Errorf("deletions at the end: %q", ids)
	}
	f.remove("a")
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("deletions after the instance is removed: %q", ids)
	}
}

func idIsFree(f *fixture) {
	old := f.quiet("a")
	old.commit(turnStarted(), ended(`1`))
	f.remove("a")
	_, err := f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantIs(err, provider.ErrPurged) // its own start
	f.wantIs(err, provider.ErrAlreadyExists)
	s := startOf("a")
	s.StartID = "the next"
	in, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	if in.ExecutionID == old.instance.ExecutionID || in.Status != provider.StatusPending {
		f.t.Errorf("started instance: %s", text(in))
	}
	next := &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
	t := next.commit(turnStarted(), activity(Queue))
	next.wantSegments(t)
	f.wantStatus("a", provider.StatusRunning)
	for _, err := range f.p.ReadHistory(f.ctx(), "a", old.instance.ExecutionID, 0) {
		f.wantIs(err, provider.ErrNotFound)
	}
	_, err = f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantIs(err, provider.ErrPurged) // whichever incarnation has the ID now
	s.StartID = "another"
	if _, err = f.p.StartOrchestration(f.ctx(), s); !errors.Is(err, provider.ErrAlreadyExists) || errors.Is(err, provider.ErrPurged) {
		f.t.Errorf("deletion of an unknown start: %v", err)
	}
	f.remove("a") // and again
	for _, id := range []string{"start of a", "the next"} {
		s.StartID = id
		_, err := f.p.StartOrchestration(f.ctx(), s)
		f.wantIs(err, provider.ErrPurged)
	}
	f.create(startMessageOf("a", "a third"))
}

func refusedStaysRefused(f *fixture) {
	f.quiet("c")
	f.must(f.p.RejectStart(f.ctx(), startMessageOf("c", "refused")))
	f.remove("c")
	f.must(f.p.RejectStart(f.ctx(), startMessageOf("c", "refused later")))
	f.create(startMessageOf("c", "another"))
	f.remove("c")
	for _, id := range []string{"start of c", "refused", "refused later", "another"} {
		_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", id))
		f.wantIs(err, provider.ErrAlreadyExists)
	}
}

// lastLife: messages up to the watermark of the last incarnation are not for the next one, whichever start creates it
// (R3).
func lastLife(f *fixture) {
	const consumed = 1000 // more digits than in the start message, because positions are numbers and not texts
	for id, end := range map[string][]history.Event{"over": {turnStarted(), ended(`1`)}, "forced": {turnStarted()}} {
		e := f.quiet(id)
		t := e.turn(end...)
		t.Watermark = at(consumed)
		e.ack(t)
		f.remove(id)
		s := startOf(id)
		s.StartID = "by a client"
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		f.wantConsumed(id, in.ExecutionID, consumed)
		f.remove(id) // an incarnation that has consumed nothing
		for _, number := range []int{9, consumed + 1} {
			m := startMessageOf(id, fmt.Sprint("by the message at ", number))
			m.Position = at(number)
			o, err := f.p.CreateOrchestration(f.ctx(), m)
			f.must(err)
			f.wantEqual("position", o.Head.Watermark, at(max(number, consumed)))
			f.wantConsumed(id, o.Head.ExecutionID, max(number, consumed))
			f.remove(id)
		}
		m := startMessageOf(id, "from another inbox") // its positions cannot be compared
		m.Position = provider.Position{Inbox: "another", Sequence: "1"}
		o, err := f.p.CreateOrchestration(f.ctx(), m)
		f.must(err)
		f.wantEqual("position", o.Head.Watermark, m.Position)
	}
}

// wantConsumed fails unless a new execution starts behind the message at number.
func (f *fixture) wantConsumed(id, executionID string, number int) {
	f.t.Helper()
	o, err := f.p.ReadOrchestration(f.ctx(), &provider.OrchestrationItem{InstanceID: id}, provider.Strong)
	f.must(err)
	if o.Head != (provider.Head{ExecutionID: executionID, Watermark: at(number)}) {
		f.t.Errorf("%s: next incarnation starts at position %+v, want after message %d", id, o.Head, number)
	}
}

// deletedByMany: all callers find the instance deleted, and none deletes the next incarnation.
func deletedByMany(f *fixture) {
	f.family("a")
	const many = 8
	errs := make(chan error, many)
	for range many {
		go func() { errs <- f.p.DeleteInstance(f.ctx(), "a", true) }()
	}
	succeeded := 0
	for range many {
		if err := <-errs; err == nil {
			succeeded++
		} else if !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrConflict) {
			f.t.Error(err)
		}
	}
	if succeeded == 0 {
		f.t.Error("no deletion succeeded")
	}
	f.wantFamilyDeleted("a")
}
