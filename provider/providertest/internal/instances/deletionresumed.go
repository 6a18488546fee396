package instances

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// stopDeletion starts a forced deletion that fails halfway.
func stopDeletion(f *kit.Fixture, id string, fault kit.Fault) {
	f.T.Helper()
	f.Fail(fault)
	err := f.Provider.DeleteInstance(f.Ctx(), id, true)
	f.Fail(kit.Fault{})
	if err == nil {
		f.T.Fatalf("deletion of %q did not fail", id)
	}
}

// family creates a child with two executions, which has a child and an activity.
func family(f *kit.Fixture, id string) {
	f.T.Helper()
	m := kit.StartMessageOf(id, "start of "+id)
	m.Parent.ExecutionID = "parent of " + id // so that no response is dropped
	e := f.Create(m)
	t := e.Continuing("next of "+id, kit.TurnStarted(), kit.Bulky(400<<10))
	t.Next.Start.Parent = m.Parent
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	next := f.ExecutionAfter(t)
	next.Instance.ExecutionID = t.Next.ExecutionID
	mine := kit.Child()
	mine.InstanceID = "child of " + id
	next.Commit(kit.TurnStarted(), mine, kit.Activity(kit.Queue))
	f.Messages()
	f.Work(kit.Queue)
}

// wantFamilyDeleted fails if the deletion of a family is not complete.
func wantFamilyDeleted(f *kit.Fixture, id string) {
	f.T.Helper()
	var sent []string
	for _, m := range f.Messages() {
		if what := string(m.Kind) + " " + m.InstanceID; !slices.Contains(sent, what) {
			sent = append(sent, what)
		}
	}
	slices.Sort(sent)
	if got, want := strings.Join(sent, ", "), "cancel child of "+id+", childOutcome p"; got != want {
		f.T.Errorf("%s: sent %q, want %q", id, got, want)
	}
	wantGone(f, id, "next of "+id)
	if !f.Cancels("next of " + id).Of(4).Requested {
		f.T.Errorf("%s: activity is not cancelled", id)
	}
	if _, err := f.Provider.StartOrchestration(f.Ctx(), kit.StartOf(id)); !errors.Is(err, provider.ErrAlreadyExists) {
		f.T.Errorf("%s: repeated start created the instance again: %v", id, err)
	}
}

// resumesDeletion checks that a repeated deletion continues after the failure of any call.
func resumesDeletion(f *kit.Fixture) {
	const mostCalls = 60
	for _, on := range []kit.Operation{kit.Read, kit.Write, kit.Update, kit.Send} {
		for n := range mostCalls {
			id := fmt.Sprintf("%s %d", on, n)
			family(f, id)
			hits := f.Fail(kit.Fault{Operation: on, Failure: kit.Rejected, Times: 1, After: n})
			err := f.Provider.DeleteInstance(f.Ctx(), id, true)
			failed := hits() > 0
			f.Fail(kit.Fault{})
			if failed {
				f.WantPermanent(err)
				f.DeleteInstance(id)
			} else {
				f.Must(err)
			}
			wantFamilyDeleted(f, id)
			if !failed {
				break
			}
			if n == mostCalls-1 {
				f.T.Errorf("%s: more than %d calls", on, mostCalls)
			}
		}
	}
}

func lostDeletion(f *kit.Fixture) {
	for _, on := range []kit.Operation{kit.Write, kit.Update, kit.Send} {
		for n := 0; ; n++ {
			id := fmt.Sprintf("%s %d", on, n)
			family(f, id)
			hits := f.Fail(kit.Fault{Operation: on, Failure: kit.ResponseLost, Times: 1, After: n})
			f.Must(f.Provider.DeleteInstance(f.Ctx(), id, true))
			lost := hits() > 0
			f.Fail(kit.Fault{})
			wantFamilyDeleted(f, id)
			if !lost {
				break
			}
		}
	}
}

// deletingInstance checks an instance whose deletion has started and is not complete.
func deletingInstance(f *kit.Fixture) {
	for name, fault := range map[string]kit.Fault{
		"before its end is sent":      {Operation: kit.Send, Failure: kit.Rejected, Times: 1},
		"before it is erased":         {Operation: kit.Update, Failure: kit.Rejected, Times: 1},
		"when its start is erased":    {Operation: kit.Write, Failure: kit.Rejected, Times: 1, After: 2},
		"before the execution before": {Operation: kit.Update, Failure: kit.Rejected, Times: 1, After: 1},
	} {
		family(f, name)
		stopDeletion(f, name, fault)
		f.WantStatus(name, provider.StatusDeleting)
		if in := f.Instance(name); !in.Status.Terminal() || in.Name != kit.Refund {
			f.T.Errorf("%s: instance %s", name, kit.Text(in))
		}
		if ids := f.List(provider.ListQuery{Status: provider.StatusDeleting}); !slices.Equal(ids, []string{name}) {
			f.T.Errorf("%s: listed as deleting are %q", name, ids)
		}
		for _, startID := range []string{"start of " + name, "another"} {
			s := kit.StartOf(name)
			s.StartID = startID
			_, err := f.Provider.StartOrchestration(f.Ctx(), s)
			f.WantErrorIs(err, map[bool]error{
				true: provider.ErrPurged, false: provider.ErrAlreadyExists,
			}[startID != "another"])
			_, err = f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf(name, startID))
			f.WantErrorIs(err, provider.ErrAlreadyExists)
		}
		f.Must(f.Provider.DeleteInstance(f.Ctx(), name, false)) // the deletion continues without force
		wantFamilyDeleted(f, name)
	}
}

// ownStartMeanwhile redelivers the message that started the instance during the deletion. This start must not be
// rejected because the ID is in use. Another start must be rejected.
func ownStartMeanwhile(f *kit.Fixture) {
	f.Create(kit.StartMessageOf("c", "s1"))
	stopDeletion(f, "c", kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	f.Must(f.Provider.RejectStart(f.Ctx(), kit.StartMessageOf("c", "s1")))
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("messages to the parent: %s", kit.Text(ms))
	}
	other := kit.StartMessageOf("c", "s2")
	other.Parent.EventID = 6
	f.Must(f.Provider.RejectStart(f.Ctx(), other))
	if ms := f.Messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeAlreadyExists {
		f.T.Errorf("messages to the parent: %s", kit.Text(ms))
	}
	f.DeleteInstance("c")
	wantParentNotified(f, kit.StartMessageOf("c", "s1"), "", wasDeleted())
	for _, id := range []string{"s1", "s2"} {
		_, err := f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("c", id))
		f.WantErrorIs(err, provider.ErrAlreadyExists)
	}
}

// cancelMeanwhile cancels a child from its parent while an instance with the child's ID is being deleted.
func cancelMeanwhile(f *kit.Fixture) {
	f.StartWithoutWake("c")
	stopDeletion(f, "c", kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	m := kit.StartMessageOf("c", "s2")
	m.Kind, m.Reason = provider.MessageCancel, "requested"
	f.Must(f.Provider.RejectCancel(f.Ctx(), m))
	if ms := f.Messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeCancelled {
		f.T.Errorf("messages to the parent: %s", kit.Text(ms))
	}
	f.WantStatus("c", provider.StatusDeleting)
	f.DeleteInstance("c")
	_, err := f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("c", "s2"))
	f.WantErrorIs(err, provider.ErrAlreadyExists)
}

func staysDeleting(f *kit.Fixture) {
	family(f, "a")
	f.StartWithoutWake("running")
	deleting := func() (ids []string) {
		for some, err := range f.Provider.DeletingInstances(f.Ctx()) {
			f.Must(err)
			for _, in := range some {
				if ids = append(ids, in.InstanceID); in.Status != provider.StatusDeleting {
					f.T.Errorf("instance in the list of deletions: %s", kit.Text(in))
				}
			}
		}
		return ids
	}
	stopDeletion(f, "a", kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	f.Advance(time.Minute)
	if ids := deleting(); len(ids) > 0 {
		f.T.Errorf("deletions after a minute: %q", ids)
	}
	f.Advance(90 * time.Second)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.T.Errorf("deletions after 2.5 minutes: %q", ids)
	}
	// the deletion makes progress
	stopDeletion(f, "a", kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1, After: 1})
	if ids := deleting(); len(ids) > 0 {
		f.T.Errorf("deletions after progress: %q", ids)
	}
	f.Advance(3 * time.Minute)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.T.Errorf("deletions at the end: %q", ids)
	}
	f.DeleteInstance("a")
	if ids := deleting(); len(ids) > 0 {
		f.T.Errorf("deletions after the instance is removed: %q", ids)
	}
}

func idIsFree(f *kit.Fixture) {
	old := f.StartWithoutWake("a")
	old.Commit(kit.TurnStarted(), kit.Ended(`1`))
	f.DeleteInstance("a")
	_, err := f.Provider.StartOrchestration(f.Ctx(), kit.StartOf("a"))
	f.WantErrorIs(err, provider.ErrPurged) // the start that created the instance
	f.WantErrorIs(err, provider.ErrAlreadyExists)
	s := kit.StartOf("a")
	s.StartID = "the next"
	in, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	if in.ExecutionID == old.Instance.ExecutionID || in.Status != provider.StatusPending {
		f.T.Errorf("started instance: %s", kit.Text(in))
	}
	next := &kit.Execution{F: f, Instance: in, Head: provider.Head{ExecutionID: in.ExecutionID}, Next: 2}
	t := next.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	next.WantSegments(t)
	f.WantStatus("a", provider.StatusRunning)
	for _, err := range f.Provider.ReadHistory(f.Ctx(), "a", old.Instance.ExecutionID, 0) {
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	_, err = f.Provider.StartOrchestration(f.Ctx(), kit.StartOf("a"))
	f.WantErrorIs(err, provider.ErrPurged) // regardless of the current incarnation
	s.StartID = "another"
	if _, err = f.Provider.StartOrchestration(f.Ctx(), s); !errors.Is(err, provider.ErrAlreadyExists) ||
		errors.Is(err, provider.ErrPurged) {
		f.T.Errorf("deletion of an unknown start: %v", err)
	}
	f.DeleteInstance("a") // and again
	for _, id := range []string{"start of a", "the next"} {
		s.StartID = id
		_, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.WantErrorIs(err, provider.ErrPurged)
	}
	f.Create(kit.StartMessageOf("a", "a third"))
}

func refusedStaysRefused(f *kit.Fixture) {
	f.StartWithoutWake("c")
	f.Must(f.Provider.RejectStart(f.Ctx(), kit.StartMessageOf("c", "refused")))
	f.DeleteInstance("c")
	f.Must(f.Provider.RejectStart(f.Ctx(), kit.StartMessageOf("c", "refused later")))
	f.Create(kit.StartMessageOf("c", "another"))
	f.DeleteInstance("c")
	for _, id := range []string{"start of c", "refused", "refused later", "another"} {
		_, err := f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("c", id))
		f.WantErrorIs(err, provider.ErrAlreadyExists)
	}
}

// lastIncarnation checks that messages up to the watermark of the last incarnation are not for the next incarnation,
// regardless of its start (R3).
func lastIncarnation(f *kit.Fixture) {
	const consumed = 1000 // more digits than in the start message, because positions are numbers and not texts
	for id, end := range map[string][]history.Event{
		"over": {kit.TurnStarted(), kit.Ended(`1`)}, "forced": {kit.TurnStarted()},
	} {
		e := f.StartWithoutWake(id)
		t := e.Turn(end...)
		t.Watermark = kit.At(consumed)
		e.Ack(t)
		f.DeleteInstance(id)
		s := kit.StartOf(id)
		s.StartID = "by a client"
		in, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
		wantConsumed(f, id, in.ExecutionID, consumed)
		f.DeleteInstance(id) // an incarnation that has consumed nothing
		for _, number := range []int{9, consumed + 1} {
			m := kit.StartMessageOf(id, fmt.Sprint("by the message at ", number))
			m.Position = kit.At(number)
			o, err := f.Provider.CreateOrchestration(f.Ctx(), m)
			f.Must(err)
			f.WantEqual("position", o.Head.Watermark, kit.At(max(number, consumed)))
			wantConsumed(f, id, o.Head.ExecutionID, max(number, consumed))
			f.DeleteInstance(id)
		}
		m := kit.StartMessageOf(id, "from another inbox") // positions of different inboxes cannot be compared
		m.Position = provider.Position{Inbox: "another", Sequence: "1"}
		o, err := f.Provider.CreateOrchestration(f.Ctx(), m)
		f.Must(err)
		f.WantEqual("position", o.Head.Watermark, m.Position)
	}
}

// wantConsumed fails if a new execution does not start after the message at number.
func wantConsumed(f *kit.Fixture, id, executionID string, number int) {
	f.T.Helper()
	o, err := f.Provider.ReadOrchestration(f.Ctx(), &provider.OrchestrationItem{InstanceID: id}, provider.Strong)
	f.Must(err)
	if o.Head != (provider.Head{ExecutionID: executionID, Watermark: kit.At(number)}) {
		f.T.Errorf("%s: next incarnation starts at position %+v, want after message %d", id, o.Head, number)
	}
}

// deletedByMany checks concurrent deletions. All callers find the instance deleted, and no caller deletes the next
// incarnation.
func deletedByMany(f *kit.Fixture) {
	family(f, "a")
	const many = 8
	errs := make(chan error, many)
	for range many {
		go func() { errs <- f.Provider.DeleteInstance(f.Ctx(), "a", true) }()
	}
	succeeded := 0
	for range many {
		if err := <-errs; err == nil {
			succeeded++
		} else if !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrConflict) {
			f.T.Error(err)
		}
	}
	if succeeded == 0 {
		f.T.Error("no deletion succeeded")
	}
	wantFamilyDeleted(f, "a")
}
