package instances

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Management tests lists of instances.
func Management() kit.Group {
	return kit.Group{Name: "management", Cases: []kit.Case{
		{Name: "ListOfNone", Run: listOfNone},
		{Name: "ListsAreNewestFirst", Run: newestFirst},
		{Name: "PagingOver1050Instances", Run: pagingOverMany, Long: true},
		{Name: "FilterByStatus", Run: filterByStatus},
		{Name: "FilterByName", Run: filterByName},
		{Name: "FilterByStartedAfter", Run: filterByTime},
		{Name: "FiltersAreExactAtTheirEdges", Run: listFilters},
		{Name: "FiltersGoTogetherWithPaging", Run: filtersAndPaging},
		{Name: "ACursorOfAnotherFilterIsRefused", Run: foreignCursor},
		{Name: "WhatIsNoCursorIsRefused", Run: noCursor},
		{Name: "LimitsAreBounded", Run: limits},
		{Name: "NewInstancesDoNotMoveThePages", Run: startsWhilePaging},
		{Name: "PendingInstances", Run: pendingInstances},
		{Name: "ARequestFromOutsideIsNoted", Run: interruptionsNoted},
		{
			Name: "WhatNeedsAttentionIsCounted", Run: attentionCounted, Optional: provider.CapabilityMonitoring,
			Needs: []kit.Capability{kit.VirtualTime, kit.Faults},
		},
	}}
}

// startMany starts instances concurrently. Their IDs consist of the prefix and a number.
func startMany(f *kit.Fixture, prefix string, n int) {
	f.T.Helper()
	const atOnce = 8
	var wg sync.WaitGroup
	errs := make([]error, atOnce)
	for worker := range atOnce {
		wg.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += atOnce {
				_, errs[worker] = f.Provider.StartOrchestration(f.Ctx(), kit.StartOf(fmt.Sprintf("%s%04d", prefix, i)))
			}
		})
	}
	wg.Wait()
	f.Must(errors.Join(errs...))
}

func listOfNone(f *kit.Fixture) {
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	if len(page.Instances) > 0 || page.NextCursor != "" {
		f.T.Errorf("listed %+v", page)
	}
}

func newestFirst(f *kit.Fixture) {
	var want []string
	for n := range 8 {
		id := fmt.Sprint("i", n)
		f.Start(id)
		want = append([]string{id}, want...)
		f.Advance(10 * time.Millisecond)
	}
	f.WantEqual("list", f.List(provider.ListQuery{}), want)
	f.WantEqual("in pages of 3", f.List(provider.ListQuery{Limit: 3}), want)
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{Limit: 1})
	f.Must(err)
	f.WantEqual("the newest", listed(page.Instances[0]), listed(f.Instance("i7")))
}

// listed returns the part of an instance that a list must contain. An index does not have to contain the StartID.
func listed(in provider.Instance) provider.Instance {
	in.StartID = ""
	return in
}

func pagingOverMany(f *kit.Fixture) {
	startMany(f, "i", 1050)
	for limit, want := range map[int]int{1000: 2, 100: 11, 350: 3} {
		seen := map[string]bool{}
		pages := f.Pages(provider.ListQuery{Limit: limit})
		for _, page := range pages {
			for _, in := range page {
				if seen[in.InstanceID] {
					f.T.Errorf("limit %d: %q is listed twice", limit, in.InstanceID)
				}
				seen[in.InstanceID] = true
			}
		}
		if len(seen) != 1050 || len(pages) != want {
			f.T.Errorf("limit %d: %d instances on %d pages, want 1050 on %d", limit, len(seen), len(pages), want)
		}
	}
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	if len(page.Instances) != 100 {
		f.T.Errorf("%d instances without a limit, want 100", len(page.Instances))
	}
}

func filterByStatus(f *kit.Fixture) {
	f.Start("pending")
	f.Start("running").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Start("completed").Commit(kit.TurnStarted(), kit.Ended(`1`))
	f.Start("failed").Commit(kit.TurnStarted(), kit.FailedEnd())
	for status, want := range map[provider.RuntimeStatus]string{
		provider.StatusPending: "pending", provider.StatusRunning: "running", provider.StatusCompleted: "completed",
		provider.StatusFailed: "failed",
	} {
		f.WantEqual(string(status), f.List(provider.ListQuery{Status: status}), []string{want})
	}
}

func filterByName(f *kit.Fixture) {
	f.Start("a")
	other := kit.StartOf("b")
	other.Name = kit.Refund
	_, err := f.Provider.StartOrchestration(f.Ctx(), other)
	f.Must(err)
	f.WantEqual(kit.Order, f.List(provider.ListQuery{Name: kit.Order}), []string{"a"})
	f.WantEqual(kit.Refund, f.List(provider.ListQuery{Name: kit.Refund}), []string{"b"})
	f.WantEqual("neither", f.List(provider.ListQuery{Name: "ord"}), []string(nil))
}

func filterByTime(f *kit.Fixture) {
	const young = "young"
	f.Start("old")
	f.Advance(50 * time.Millisecond)
	between := f.Now()
	f.Advance(50 * time.Millisecond)
	f.Start(young)
	f.WantEqual("started after a time", f.List(provider.ListQuery{StartedAfter: between}), []string{young})
	f.WantEqual("started after a time in another zone", f.List(provider.ListQuery{
		StartedAfter: between.In(time.FixedZone("", 5*3600)),
	}), []string{young})
	f.WantEqual("started after an earlier time", f.List(provider.ListQuery{StartedAfter: between.Add(-time.Hour)}),
		[]string{young, "old"})
	f.WantEqual("future start time", f.List(provider.ListQuery{StartedAfter: between.Add(time.Hour)}), []string(nil))
}

func filtersAndPaging(f *kit.Fixture) {
	for n := range 40 {
		e := f.Start(fmt.Sprintf("i%02d", n))
		if n%2 == 0 {
			e.Commit(kit.TurnStarted(), kit.Ended(`1`))
		}
	}
	all := provider.ListQuery{Status: provider.StatusCompleted, Name: kit.Order, StartedAfter: f.Now().Add(-time.Hour)}
	want := f.List(all)
	if len(want) != 20 {
		f.T.Errorf("%d instances, want 20", len(want))
	}
	for _, limit := range []int{1, 3, 7, 20} {
		all.Limit = limit
		f.WantEqual(fmt.Sprint("in pages of ", limit), f.List(all), want)
	}
}

func wantFieldError(f *kit.Fixture, what, field string, err error) {
	f.T.Helper()
	if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != field {
		f.T.Errorf("%s: error %v, want a FieldError of %q", what, err, field)
	}
}

func foreignCursor(f *kit.Fixture) {
	startMany(f, "i", 3)
	q := provider.ListQuery{Limit: 1, Name: kit.Order}
	page, err := f.Provider.ListInstances(f.Ctx(), q)
	f.Must(err)
	for name, other := range map[string]provider.ListQuery{
		"no filter": {}, "another name": {Name: kit.Refund}, "one more status": {
			Name:   kit.Order,
			Status: provider.StatusPending,
		},
		"one more time": {Name: kit.Order, StartedAfter: f.Now().Add(-time.Hour)}, "one more end time": {
			Name:          kit.Order,
			StartedBefore: f.Now().Add(time.Hour),
		},
		"one more version": {Name: kit.Order, Version: kit.V1}, "one more parent": {
			Name:   kit.Order,
			Parent: "p",
		}, "one more tag": {Name: kit.Order, Tags: map[string]string{"k": "v"}},
	} {
		other.Cursor = page.NextCursor
		_, err := f.Provider.ListInstances(f.Ctx(), other)
		wantFieldError(f, name, "cursor", err)
	}
	q.Cursor, q.Limit = page.NextCursor, 2 // the page size can change within a list
	rest, err := f.Provider.ListInstances(f.Ctx(), q)
	f.Must(err)
	if len(rest.Instances) != 2 {
		f.T.Errorf("%d instances on the rest, want 2", len(rest.Instances))
	}
}

func noCursor(f *kit.Fixture) {
	for _, cursor := range []string{"x", "bm90IG91cnM", "e30", "bnVsbA", "{}", " ", "\x00", "W10"} {
		_, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{Cursor: cursor})
		wantFieldError(f, fmt.Sprintf("%q", cursor), "cursor", err)
	}
}

func limits(f *kit.Fixture) {
	f.Start("a")
	for limit, ok := range map[int]bool{-1: false, 0: true, 1: true, 1000: true, 1001: false, 1 << 40: false} {
		_, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{Limit: limit})
		if ok {
			f.Must(err)
		} else {
			wantFieldError(f, "limit "+strconv.Itoa(limit), "limit", err)
		}
	}
}

func startsWhilePaging(f *kit.Fixture) {
	startMany(f, "old", 10)
	f.Advance(10 * time.Millisecond)
	q := provider.ListQuery{Limit: 4}
	seen := map[string]bool{}
	for n := 0; ; n++ {
		page, err := f.Provider.ListInstances(f.Ctx(), q)
		f.Must(err)
		for _, in := range page.Instances {
			if seen[in.InstanceID] {
				f.T.Errorf("%q is listed twice", in.InstanceID)
			}
			seen[in.InstanceID] = true
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
		f.Start(fmt.Sprint("new", n))
	}
	if len(seen) != 10 {
		f.T.Errorf("%d instances, want the 10 that were there", len(seen))
	}
}

func pendingInstances(f *kit.Fixture) {
	f.Start("stuck")
	f.Start("running").Commit(kit.TurnStarted())
	f.Start("over").Commit(kit.TurnStarted(), kit.Ended(`1`))
	f.Advance(50 * time.Millisecond)
	before := f.Now()
	f.Advance(50 * time.Millisecond)
	f.Start("new")
	var got []provider.Instance
	for in, err := range f.Provider.PendingInstances(f.Ctx(), before) {
		f.Must(err)
		got = append(got, in...)
	}
	for i := range got {
		got[i] = listed(got[i])
	}
	f.WantEqual("pending", got, []provider.Instance{listed(f.Instance("stuck"))})
	n := 0
	for _, err := range f.Provider.PendingInstances(f.Ctx(), f.Now().Add(time.Second)) {
		f.Must(err)
		n++
		break
	}
	if n != 1 {
		f.T.Errorf("%d instances before the loop was left", n)
	}
}

func attentionCounted(f *kit.Fixture) {
	attention := func() provider.AttentionCounts {
		f.T.Helper()
		a, err := f.Provider.CountAttention(f.Ctx())
		f.Must(err)
		return a
	}
	f.Start("well").Commit(kit.TurnStarted())
	f.WantEqual("counts of a healthy hub", attention(), provider.AttentionCounts{})

	f.ReportBuilds("b1")
	for _, id := range []string{"blocked-1", "blocked-2"} {
		f.Start(id).Commit(kit.Parked("b1"))
	}
	f.StartWithoutWake("deleting")
	stopDeletion(f, "deleting", kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	stuck := f.Start("stuck")
	f.WantEqual("counts immediately", attention(), provider.AttentionCounts{Blocked: 2})

	f.Advance(3 * time.Minute)
	f.Start("new")
	for _, err := range f.Provider.PendingInstances(f.Ctx(), f.Now().Add(-2*time.Minute)) {
		f.Must(err)
	}
	f.WantEqual("counts after three minutes", attention(), provider.AttentionCounts{
		Blocked: 2, Deleting: 1, OldestPending: f.Instance("stuck").CreatedAt,
	})

	stuck.Commit(kit.TurnStarted())
	f.DeleteInstance("deleting")
	f.WantEqual("later", attention(), provider.AttentionCounts{Blocked: 2})
}

// interruptionsNoted checks that external requests to end or pause an instance are recorded for the holder of its
// messages (R20).
func interruptionsNoted(f *kit.Fixture) {
	none := []provider.Message{
		{Kind: provider.MessageWake},
		{Kind: provider.MessageEventRaised, Name: "e", EventID: "e1"},
		{
			Kind: provider.MessageCancel, StartID: "s",
			Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 3},
		},
		{Kind: provider.MessageExecutionResumed, EventID: history.PauseIDPrefix + "1"},
	}
	noted := []provider.Message{
		{Kind: provider.MessageCancel, Reason: "requested"},
		{Kind: provider.MessageTerminate},
		{Kind: provider.MessageCancelActivity, ExecutionID: "x", ActivityID: 3},
		{Kind: provider.MessageExecutionSuspended, EventID: history.PauseIDPrefix + "2"},
	}
	for i, m := range append(none, noted...) {
		m.InstanceID = fmt.Sprint("a", i)
		before := f.StoredNow().Add(-time.Millisecond)
		f.Enqueue(m)
		at, err := f.Provider.ReadInterruption(f.Ctx(), m.InstanceID)
		if f.Must(err); at.IsZero() != (i < len(none)) ||
			!at.IsZero() && (at.Before(before) || at.After(f.StoredNow())) {
			f.T.Errorf("%s: interruption stored at %v, want between %v and %v", m.Kind, at, before, f.StoredNow())
		}
	}
}
