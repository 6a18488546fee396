package optional

import (
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Annotations tests that notes can be added to instances.
func Annotations() kit.Group {
	return kit.Group{Name: "annotations", Optional: provider.CapabilityAnnotations, Cases: []kit.Case{
		{Name: "newestNotes_areKeptUntilTheDeletion", Run: notesKept},
		{Name: "turnsAndNextExecutions_keepNotes", Run: notesSurviveTurns},
		{Name: "concurrentNotes_areAllKept", Run: notesConcurrent},
		{Name: "sameID_isAddedOnce", Run: notesWithID},
		{Name: "missingInstance_isNotFound", Run: notesNotFound},
	}}
}

func noteNumber(f *kit.Fixture, n int) provider.Note {
	return provider.Note{
		Text: fmt.Sprintf("note %d <é\"\\>", n), By: "arn:aws:iam::1:user/ann", At: f.StoredNow().Add(time.Duration(n)),
	}
}

func notesKept(f *kit.Fixture) {
	e := f.Start("a")
	f.WantEqual("notes of a new instance", f.Instance("a").Notes, []provider.Note(nil))
	f.Messages()
	end(e, 0)
	var want []provider.Note
	for n := range provider.MaxNotes + 2 {
		note := noteNumber(f, n)
		f.Must(f.Provider.Annotate(f.Ctx(), "a", note))
		want = append(want, note)
	}
	f.WantEqual("notes", f.Instance("a").Notes, want[2:])
	f.WantStatus("a", provider.StatusCompleted)
	f.WantNothingSent()
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	for i := range page.Instances {
		f.WantEqual("notes in a list", page.Instances[i].Notes, []provider.Note(nil))
	}

	f.DeleteInstance("a")
	f.WantErrorIs(f.Provider.Annotate(f.Ctx(), "a", noteNumber(f, 0)), provider.ErrNotFound)
	_, err = f.Provider.StartOrchestration(f.Ctx(), provider.Start{
		InstanceID: "a", Name: kit.Order, Input: history.Payload("1"), StartID: "another start",
	})
	f.Must(err)
	f.WantEqual("notes of the next incarnation", f.Instance("a").Notes, []provider.Note(nil))
}

func notesSurviveTurns(f *kit.Fixture) {
	e := f.Start("a")
	note := noteNumber(f, 1)
	f.Must(f.Provider.Annotate(f.Ctx(), "a", note))
	next := e.ContinueAs("x2", kit.TurnStarted())
	f.WantEqual("execution", next.Instance.ExecutionID, "x2")
	f.WantEqual("notes", next.Instance.Notes, []provider.Note{note})
	end(next, 0)
	f.WantEqual("notes of an ended instance", f.Instance("a").Notes, []provider.Note{note})
}

func notesWithID(f *kit.Fixture) {
	f.Start("a")
	first, other := noteNumber(f, 1), noteNumber(f, 2)
	first.ID, other.ID = "n1", "n2"
	repeated := noteNumber(f, 3)
	repeated.ID = first.ID
	for _, note := range []provider.Note{first, other, repeated} {
		f.Must(f.Provider.Annotate(f.Ctx(), "a", note))
	}
	f.WantEqual("notes", f.Instance("a").Notes, []provider.Note{first, other})
}

func notesConcurrent(f *kit.Fixture) {
	f.Start("a")
	const many = 5
	var group sync.WaitGroup
	errs := make([]error, many)
	for n := range many {
		note := noteNumber(f, n)
		group.Go(func() { errs[n] = f.Provider.Annotate(f.Ctx(), "a", note) })
	}
	group.Wait()
	for _, err := range errs {
		f.Must(err)
	}
	f.WantEqual("number of notes", len(f.Instance("a").Notes), many)
}

func notesNotFound(f *kit.Fixture) {
	f.WantErrorIs(f.Provider.Annotate(f.Ctx(), "none", noteNumber(f, 1)), provider.ErrNotFound)
	_, err := f.Provider.ReadInstance(f.Ctx(), "none")
	f.WantErrorIs(err, provider.ErrNotFound)
}
