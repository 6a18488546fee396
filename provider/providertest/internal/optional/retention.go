package optional

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Retention tests the deletion of instances some days after their end, and of past executions of running instances
// (R21).
func Retention() kit.Group {
	return kit.Group{Name: "retention", Optional: provider.CapabilityRetention, Cases: []kit.Case{
		{Name: "InstanceWithoutRetentionIsNeverDue", Run: neverDue, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "EndedInstanceIsDueAfterRetention", Run: endDue, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "PastExecutionsAreErasedOldestFirst", Run: pastDue, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "EmptyListIfNothingIsDue", Run: nothingDue, Long: true},
	}}
}

const aDay = 24 * time.Hour

// due returns the IDs that DueInstances finds.
func due(f *kit.Fixture) (ids []string) {
	f.T.Helper()
	for id, err := range f.Provider.DueInstances(f.Ctx()) {
		f.Must(err)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// end commits a terminal event with the given retention.
func end(e *kit.Execution, retention time.Duration) {
	e.F.T.Helper()
	t := e.Turn(kit.TurnStarted(), history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
	t.Retention = retention
	if _, err := e.F.Provider.AckOrchestrationItem(e.F.Ctx(), t); err != nil {
		e.F.T.Fatal(err)
	}
}

func neverDue(f *kit.Fixture) {
	end(f.Start("a"), 0)
	f.Start("running")
	f.Advance(400 * aDay)
	f.WantEqual("due", due(f), []string(nil))
	done, err := f.Provider.ApplyRetention(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("retired", done, provider.RetentionResult{})
	f.WantStatus("a", provider.StatusCompleted)
}

func endDue(f *kit.Fixture) {
	a := f.Start("a")
	end(a, 3*aDay)
	end(f.Start("b"), 10*aDay)
	f.Advance(2 * aDay)
	f.WantEqual("due after two days", due(f), []string(nil))
	done, err := f.Provider.ApplyRetention(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("deleted before its retention expired", done, provider.RetentionResult{})
	f.Advance(2 * aDay)
	f.WantEqual("due after four days", due(f), []string{"a"})
	done, err = f.Provider.ApplyRetention(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("retired", done, provider.RetentionResult{Instance: true})
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
	_, err = f.Provider.StartOrchestration(f.Ctx(), provider.Start{
		InstanceID: "a", Name: kit.Order, Input: history.Payload("1"), StartID: a.Instance.StartID,
	})
	f.WantErrorIs(err, provider.ErrAlreadyExists) // the start was made before and cannot be made again
	f.WantEqual("due after the removal", due(f), []string(nil))
	f.Advance(60 * aDay)
	f.WantEqual("due after two months", due(f), []string{"b"})
}

func pastDue(f *kit.Fixture) {
	e := f.Start("a")
	first := e.Head.ExecutionID
	e.Commit(kit.TurnStarted())
	var ids []string
	for range 4 {
		f.Advance(20 * aDay)
		next := provider.NewExecutionID(f.StoredNow(), "a", e.Head.ExecutionID)
		t := e.Continuing(next, kit.TurnStarted())
		t.Retention = 30 * aDay
		if len(ids) == 0 {
			t.Events = t.Events[1:] // the first turn has already run
		}
		if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), t); err != nil {
			f.T.Fatal(err)
		}
		e = f.ExecutionAfter(t)
		ids = append(ids, next)
	}
	f.WantEqual("due", due(f), []string{"a"})
	done, err := f.Provider.ApplyRetention(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("retired", done, provider.RetentionResult{Executions: 2})
	var left []string
	for x, err := range f.Provider.ListExecutions(f.Ctx(), "a") {
		f.Must(err)
		left = append(left, x.ExecutionID)
	}
	f.WantEqual("remaining executions", left, []string{ids[3], ids[2], ids[1]})
	for _, erased := range []string{first, ids[0]} {
		_, err := f.Provider.ReadTerminalEvent(f.Ctx(), erased)
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	f.WantEqual("due after the removal", due(f), []string(nil))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
}

func nothingDue(f *kit.Fixture) {
	f.WantEqual("due", due(f), []string(nil))
	end(f.Start("a"), aDay)
	for _, id := range []string{"a", "missing"} {
		done, err := f.Provider.ApplyRetention(f.Ctx(), id)
		f.Must(err)
		f.WantEqual("retired", done, provider.RetentionResult{})
	}
	f.WantStatus("a", provider.StatusCompleted)
}
