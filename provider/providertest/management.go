package providertest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// Lists of instances.
func management() group {
	return group{"management", []testCase{
		{name: "ListOfNone", run: listOfNone},
		{name: "ListsAreNewestFirst", run: newestFirst},
		{name: "PagingOver1050Instances", run: pagingOverMany, long: true},
		{name: "FilterByStatus", run: filterByStatus},
		{name: "FilterByName", run: filterByName},
		{name: "FilterByStartedAfter", run: filterByTime},
		{name: "FiltersAreExactAtTheirEdges", run: listFilters},
		{name: "FiltersGoTogetherWithPaging", run: filtersAndPaging},
		{name: "ACursorOfAnotherFilterIsRefused", run: foreignCursor},
		{name: "WhatIsNoCursorIsRefused", run: noCursor},
		{name: "LimitsAreBounded", run: limits},
		{name: "NewInstancesDoNotMoveThePages", run: startsWhilePaging},
		{name: "PendingInstances", run: pendingInstances},
		{name: "ARequestFromOutsideIsNoted", run: interruptionsNoted},
		{name: "WhatNeedsAttentionIsCounted", run: attentionCounted, needs: []Capability{VirtualTime, Faults}},
	}}
}

// startMany starts instances concurrently. Their IDs consist of the prefix and a number.
func (f *fixture) startMany(prefix string, n int) {
	f.t.Helper()
	const atOnce = 8
	var wg sync.WaitGroup
	errs := make([]error, atOnce)
	for worker := range atOnce {
		wg.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += atOnce {
				_, errs[worker] = f.p.StartOrchestration(f.ctx(), startOf(fmt.Sprintf("%s%04d", prefix, i)))
			}
		})
	}
	wg.Wait()
	f.must(errors.Join(errs...))
}

// pages lists all pages of a query, and checks their sizes and their order.
func (f *fixture) pages(q provider.ListQuery) (pages [][]provider.Instance) {
	f.t.Helper()
	var last time.Time
	for {
		page, err := f.p.ListInstances(f.ctx(), q)
		f.must(err)
		if short := selectsAll(q) && page.NextCursor != "" && len(page.Instances) < q.Limit; short || len(page.Instances) > q.Limit {
			f.t.Errorf("page %d has %d instances, want %d", len(pages)+1, len(page.Instances), q.Limit)
		}
		for _, in := range page.Instances {
			if !last.IsZero() && in.CreatedAt.After(last) {
				f.t.Errorf("%q is newer than the previous one", in.InstanceID)
			}
			last = in.CreatedAt
		}
		pages = append(pages, page.Instances)
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(pages) > 1000 {
			return pages
		}
	}
}

// selectsAll reports whether a query has no filter except times, with which a page may be short.
func selectsAll(q provider.ListQuery) bool {
	return q.Status == "" && q.Name == "" && q.Version == "" && q.Parent == "" && len(q.Tags) == 0
}

// list returns the IDs of all pages.
func (f *fixture) list(q provider.ListQuery) (ids []string) {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	for _, page := range f.pages(q) {
		for _, in := range page {
			ids = append(ids, in.InstanceID)
		}
	}
	return ids
}

func listOfNone(f *fixture) {
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{})
	f.must(err)
	if len(page.Instances) > 0 || page.NextCursor != "" {
		f.t.Errorf("listed %+v", page)
	}
}

func newestFirst(f *fixture) {
	var want []string
	for n := range 8 {
		id := fmt.Sprint("i", n)
		f.start(id)
		want = append([]string{id}, want...)
		f.Advance(10 * time.Millisecond)
	}
	f.wantEqual("list", f.list(provider.ListQuery{}), want)
	f.wantEqual("in pages of 3", f.list(provider.ListQuery{Limit: 3}), want)
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{Limit: 1})
	f.must(err)
	f.wantEqual("the newest", f.listed(page.Instances[0]), f.listed(f.instance("i7")))
}

// listed returns the part of an instance that a list must contain. An index need not contain the StartID.
func (f *fixture) listed(in provider.Instance) provider.Instance {
	in.StartID = ""
	return in
}

func pagingOverMany(f *fixture) {
	f.startMany("i", 1050)
	for limit, want := range map[int]int{1000: 2, 100: 11, 350: 3} {
		seen := map[string]bool{}
		pages := f.pages(provider.ListQuery{Limit: limit})
		for _, page := range pages {
			for _, in := range page {
				if seen[in.InstanceID] {
					f.t.Errorf("limit %d: %q is listed twice", limit, in.InstanceID)
				}
				seen[in.InstanceID] = true
			}
		}
		if len(seen) != 1050 || len(pages) != want {
			f.t.Errorf("limit %d: %d instances on %d pages, want 1050 on %d", limit, len(seen), len(pages), want)
		}
	}
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{})
	f.must(err)
	if len(page.Instances) != 100 {
		f.t.Errorf("%d instances without a limit, want 100", len(page.Instances))
	}
}

func filterByStatus(f *fixture) {
	f.start("pending")
	f.start("running").commit(turnStarted(), activity(Queue))
	f.start("completed").commit(turnStarted(), ended(`1`))
	f.start("failed").commit(turnStarted(), failedEnd())
	for status, want := range map[provider.RuntimeStatus]string{
		provider.StatusPending: "pending", provider.StatusRunning: "running", provider.StatusCompleted: "completed", provider.StatusFailed: "failed",
	} {
		f.wantEqual(string(status), f.list(provider.ListQuery{Status: status}), []string{want})
	}
}

func filterByName(f *fixture) {
	f.start("a")
	other := startOf("b")
	other.Name = refund
	_, err := f.p.StartOrchestration(f.ctx(), other)
	f.must(err)
	f.wantEqual(order, f.list(provider.ListQuery{Name: order}), []string{"a"})
	f.wantEqual(refund, f.list(provider.ListQuery{Name: refund}), []string{"b"})
	f.wantEqual("neither", f.list(provider.ListQuery{Name: "ord"}), []string(nil))
}

func filterByTime(f *fixture) {
	const young = "young"
	f.start("old")
	f.Advance(50 * time.Millisecond)
	between := f.Now()
	f.Advance(50 * time.Millisecond)
	f.start(young)
	f.wantEqual("after", f.list(provider.ListQuery{StartedAfter: between}), []string{young})
	f.wantEqual("after, in another zone", f.list(provider.ListQuery{StartedAfter: between.In(time.FixedZone("", 5*3600))}), []string{young})
	f.wantEqual("from an earlier time", f.list(provider.ListQuery{StartedAfter: between.Add(-time.Hour)}),
		[]string{young, "old"})
	f.wantEqual("in the future", f.list(provider.ListQuery{StartedAfter: between.Add(time.Hour)}), []string(nil))
}

func filtersAndPaging(f *fixture) {
	for n := range 40 {
		e := f.start(fmt.Sprintf("i%02d", n))
		if n%2 == 0 {
			e.commit(turnStarted(), ended(`1`))
		}
	}
	all := provider.ListQuery{Status: provider.StatusCompleted, Name: order, StartedAfter: f.Now().Add(-time.Hour)}
	want := f.list(all)
	if len(want) != 20 {
		f.t.Errorf("%d instances, want 20", len(want))
	}
	for _, limit := range []int{1, 3, 7, 20} {
		all.Limit = limit
		f.wantEqual(fmt.Sprint("in pages of ", limit), f.list(all), want)
	}
}

func (f *fixture) wantFieldError(what, field string, err error) {
	f.t.Helper()
	if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != field {
		f.t.Errorf("%s: error %v, want a FieldError of %q", what, err, field)
	}
}

func foreignCursor(f *fixture) {
	f.startMany("i", 3)
	q := provider.ListQuery{Limit: 1, Name: order}
	page, err := f.p.ListInstances(f.ctx(), q)
	f.must(err)
	for name, other := range map[string]provider.ListQuery{
		"no filter": {}, "another name": {Name: refund}, "one more status": {
			Name:   order,
			Status: provider.StatusPending,
		},
		"one more time": {Name: order, StartedAfter: f.Now().Add(-time.Hour)}, "one more end time": {
			Name:          order,
			StartedBefore: f.Now().Add(time.Hour),
		},
		"one more version": {Name: order, Version: v1}, "one more parent": {
			Name:   order,
			Parent: "p",
		}, "one more tag": {Name: order, Tags: map[string]string{"k": "v"}},
	} {
		other.Cursor = page.NextCursor
		_, err := f.p.ListInstances(f.ctx(), other)
		f.wantFieldError(name, "cursor", err)
	}
	q.Cursor, q.Limit = page.NextCursor, 2 // another size is the same list
	rest, err := f.p.ListInstances(f.ctx(), q)
	f.must(err)
	if len(rest.Instances) != 2 {
		f.t.Errorf("%d instances on the rest, want 2", len(rest.Instances))
	}
}

func noCursor(f *fixture) {
	for _, cursor := range []string{"x", "bm90IG91cnM", "e30", "bnVsbA", "{}", " ", "\x00", "W10"} {
		_, err := f.p.ListInstances(f.ctx(), provider.ListQuery{Cursor: cursor})
		f.wantFieldError(fmt.Sprintf("%q", cursor), "cursor", err)
	}
}

func limits(f *fixture) {
	f.start("a")
	for limit, ok := range map[int]bool{-1: false, 0: true, 1: true, 1000: true, 1001: false, 1 << 40: false} {
		_, err := f.p.ListInstances(f.ctx(), provider.ListQuery{Limit: limit})
		if ok {
			f.must(err)
		} else {
			f.wantFieldError("limit "+strconv.Itoa(limit), "limit", err)
		}
	}
}

func startsWhilePaging(f *fixture) {
	f.startMany("old", 10)
	f.Advance(10 * time.Millisecond)
	q := provider.ListQuery{Limit: 4}
	seen := map[string]bool{}
	for n := 0; ; n++ {
		page, err := f.p.ListInstances(f.ctx(), q)
		f.must(err)
		for _, in := range page.Instances {
			if seen[in.InstanceID] {
				f.t.Errorf("%q is listed twice", in.InstanceID)
			}
			seen[in.InstanceID] = true
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
		f.start(fmt.Sprint("new", n))
	}
	if len(seen) != 10 {
		f.t.Errorf("%d instances, want the 10 that were there", len(seen))
	}
}

func pendingInstances(f *fixture) {
	f.start("stuck")
	f.start("running").commit(turnStarted())
	f.start("over").commit(turnStarted(), ended(`1`))
	f.Advance(50 * time.Millisecond)
	before := f.Now()
	f.Advance(50 * time.Millisecond)
	f.start("new")
	var got []provider.Instance
	for in, err := range f.p.PendingInstances(f.ctx(), before) {
		f.must(err)
		got = append(got, in...)
	}
	for i := range got {
		got[i] = f.listed(got[i])
	}
	f.wantEqual("pending", got, []provider.Instance{f.listed(f.instance("stuck"))})
	n := 0
	for _, err := range f.p.PendingInstances(f.ctx(), f.Now().Add(time.Second)) {
		f.must(err)
		n++
		break
	}
	if n != 1 {
		f.t.Errorf("%d instances before the loop was left", n)
	}
}

func attentionCounted(f *fixture) {
	attention := func() provider.AttentionCounts {
		f.t.Helper()
		a, err := f.p.CountAttention(f.ctx())
		f.must(err)
		return a
	}
	f.start("well").commit(turnStarted())
	f.wantEqual("of a healthy hub", attention(), provider.AttentionCounts{})

	f.report("b1")
	for _, id := range []string{"blocked-1", "blocked-2"} {
		f.start(id).commit(parked("b1"))
	}
	f.quiet("deleting")
	f.stopDeletion("deleting", Fault{Operation: Update, Failure: Rejected, Times: 1})
	stuck := f.start("stuck")
	f.wantEqual("at once", attention(), provider.AttentionCounts{Blocked: 2})

	f.Advance(3 * time.Minute)
	f.start("new")
	for _, err := range f.p.PendingInstances(f.ctx(), f.Now().Add(-2*time.Minute)) {
		f.must(err)
	}
	f.wantEqual("after three minutes", attention(), provider.AttentionCounts{Blocked: 2, Deleting: 1, OldestPending: f.instance("stuck").CreatedAt})

	stuck.commit(turnStarted())
	f.remove("deleting")
	f.wantEqual("later", attention(), provider.AttentionCounts{Blocked: 2})
}
