package optional

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Jobs tests that jobs find the instances of a filter, and that concurrent writes of a job conflict (R22).
func Jobs() kit.Group {
	return kit.Group{Name: "jobs", Optional: provider.CapabilityBulkJobs, Cases: []kit.Case{
		{Name: "JobIsReadAsWritten", Run: jobRoundTrip},
		{Name: "OnlyOneOfTwoWritersSucceeds", Run: jobWriters},
		{Name: "RepeatedWriteIsSuccess", Run: jobWriteLost, Needs: []kit.Capability{kit.Faults}},
		{Name: "NewestIsListedFirst", Run: jobsListed},
		{Name: "BatchOfLongestIDsFits", Run: jobOfLongIDs},
		{Name: "FilterSelectsExactly", Run: filterEdges},
		{Name: "FiltersByParentAndVersion", Run: filterFamily},
		{Name: "MatchContinuesWhereLastEnded", Run: matchInSteps},
		{Name: "EmptyTimeRangeEndsMatch", Run: matchNothing},
		{Name: "ForeignCursorIsRejected", Run: matchCursorRefused},
		{Name: "OnlyMatchingIncarnationIsDeleted", Run: deleteIncarnation},
	}}
}

// job returns a running job.
func job(f *kit.Fixture, id string) *provider.Job {
	return &provider.Job{
		ID: id, Operation: provider.OperationPurge, Filter: provider.Filter{
			Orchestration: kit.Order, Statuses: []provider.RuntimeStatus{provider.StatusCompleted},
			Tags: map[string]string{"a": "<b>"},
		},
		State: provider.JobRunning, CreatedAt: f.StoredNow(), UpdatedAt: f.StoredNow(),
	}
}

func jobRoundTrip(f *kit.Fixture) {
	_, err := f.Provider.ReadJob(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
	j := job(f, "a")
	f.Must(f.Provider.PutJob(f.Ctx(), j))
	j.Force, j.Message, j.Matched, j.Done, j.Skipped, j.Failed, j.Errors = true, "why", 7, 3, 2, 1, []string{
		"<no> \u2028",
	}
	j.Batch, j.Next, j.MatchingDone = []provider.Target{
		{InstanceID: "<i>", CreatedAt: f.StoredNow(), Tries: 2},
	}, "next", true
	f.Must(f.Provider.PutJob(f.Ctx(), j))
	got, err := f.Provider.ReadJob(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("job", got, j)
	f.WantEqual("revision", got.Revision, j.Revision)
	got.State = provider.JobCompleted
	f.Must(f.Provider.PutJob(f.Ctx(), &got))
	got, err = f.Provider.ReadJob(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("over", got.Ended(), true)
}

func jobWriters(f *kit.Fixture) {
	j := job(f, "a")
	f.Must(f.Provider.PutJob(f.Ctx(), j))
	other := job(f, "a")
	other.Operation = provider.OperationCancel
	f.WantErrorIs(f.Provider.PutJob(f.Ctx(), other), provider.ErrConflict)
	const writers = 8
	var won atomic.Int64
	var writing sync.WaitGroup
	for n := range writers {
		writing.Go(func() {
			mine := *j
			mine.Matched = int64(n) + 1
			switch err := f.Provider.PutJob(f.Ctx(), &mine); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, provider.ErrConflict):
				f.T.Error(err)
			}
		})
	}
	writing.Wait()
	f.WantEqual("writers that succeeded", won.Load(), 1)
	f.WantErrorIs(f.Provider.PutJob(f.Ctx(), j), provider.ErrConflict)
	got, err := f.Provider.ReadJob(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("revision", got.Revision, j.Revision+1)
}

func jobWriteLost(f *kit.Fixture) {
	j := job(f, "a")
	for range 2 { // first create the job, then write it again
		f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
		j.Matched++
		f.Must(f.Provider.PutJob(f.Ctx(), j))
		f.Fail(kit.Fault{})
	}
	got, err := f.Provider.ReadJob(f.Ctx(), "a")
	f.Must(err)
	f.WantEqual("job", got, j)
	f.WantEqual("revision", got.Revision, j.Revision)
}

func jobsListed(f *kit.Fixture) {
	none, err := f.Provider.ListJobs(f.Ctx())
	f.Must(err)
	f.WantEqual("jobs", len(none), 0)
	for _, id := range []string{"01A", "01C", "01B"} {
		f.Must(f.Provider.PutJob(f.Ctx(), job(f, id)))
	}
	all, err := f.Provider.ListJobs(f.Ctx())
	f.Must(err)
	var ids []string
	for _, j := range all {
		ids = append(ids, j.ID)
	}
	f.WantEqual("jobs", ids, []string{"01C", "01B", "01A"})
}

func jobOfLongIDs(f *kit.Fixture) {
	for _, of := range []string{"a", "<", `"`, "\u2028", "\U0001F600"} {
		j := job(f, "job of "+of)
		for n := range 100 {
			id := strings.Repeat(of, provider.MaxInstanceIDBytes/len(of)-4) + fmt.Sprintf("%04d", n)
			j.Batch = append(j.Batch, provider.Target{InstanceID: id, CreatedAt: f.StoredNow()})
		}
		f.Must(f.Provider.PutJob(f.Ctx(), j))
		got, err := f.Provider.ReadJob(f.Ctx(), j.ID)
		f.Must(err)
		f.WantEqual("batch", got.Batch, j.Batch)
	}
}

// matched returns the sorted IDs that a filter selects. Each call returns up to most.
func matched(f *kit.Fixture, filter provider.Filter, most int) (ids []string) {
	f.T.Helper()
	for next := ""; ; {
		found, more, err := f.Provider.MatchInstances(f.Ctx(), filter, next, most)
		f.Must(err)
		if len(found) > most {
			f.T.Errorf("got %d matched instances, want at most %d", len(found), most)
		}
		for _, of := range found {
			ids = append(ids, of.InstanceID)
			if created := f.Instance(of.InstanceID).CreatedAt; !created.Equal(of.CreatedAt) {
				f.T.Errorf("instance %q was created at %v, matched with %v", of.InstanceID, created, of.CreatedAt)
			}
		}
		if next = more; next == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

func filterEdges(f *kit.Fixture) {
	var all []provider.Instance
	for n := range 4 {
		s := kit.StartOf(fmt.Sprint("i-", n))
		s.Tags = map[string]string{"n": strconv.Itoa(n % 2), "all": ""}
		in, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
		all = append(all, in)
		f.Advance(5 * time.Millisecond)
	}
	end((&kit.Execution{F: f, Instance: all[1], Head: provider.Head{ExecutionID: all[1].ExecutionID}, Next: 2}), 0)
	f.Advance(5 * time.Millisecond)
	end((&kit.Execution{F: f, Instance: all[2], Head: provider.Head{ExecutionID: all[2].ExecutionID}, Next: 2}), 0)
	ended := f.Instance("i-2").UpdatedAt
	end := f.StoredNow().Add(time.Hour)
	over := []provider.RuntimeStatus{provider.StatusCompleted, provider.StatusFailed}
	for _, c := range []struct {
		what   string
		filter provider.Filter
		want   []string
	}{
		{"all", provider.Filter{}, []string{"i-0", "i-1", "i-2", "i-3"}},
		{"a name", provider.Filter{Orchestration: kit.Order}, []string{"i-0", "i-1", "i-2", "i-3"}},
		{"another name", provider.Filter{Orchestration: kit.Order + "s"}, nil},
		{"statuses", provider.Filter{Statuses: over}, []string{"i-1", "i-2"}},
		{"a tag", provider.Filter{Tags: map[string]string{"n": "1"}}, []string{"i-1", "i-3"}},
		{"two tags", provider.Filter{Tags: map[string]string{"n": "1", "all": ""}}, []string{"i-1", "i-3"}},
		{"a tag that is not there", provider.Filter{Tags: map[string]string{"other": ""}}, nil},
		{"started then or later", provider.Filter{StartedAfter: all[2].CreatedAt}, []string{"i-2", "i-3"}},
		{
			"started a moment later",
			provider.Filter{StartedAfter: all[2].CreatedAt.Add(time.Millisecond)},
			[]string{"i-3"},
		},
		{"started before", provider.Filter{StartedBefore: all[2].CreatedAt}, []string{"i-0", "i-1"}},
		{
			"started in a millisecond",
			provider.Filter{StartedAfter: all[2].CreatedAt, StartedBefore: all[2].CreatedAt.Add(time.Millisecond)},
			[]string{"i-2"},
		},
		{"ended before", provider.Filter{Statuses: over, UpdatedBefore: ended}, []string{"i-1"}},
		{
			"ended a moment earlier",
			provider.Filter{Statuses: over, UpdatedBefore: ended.Add(time.Millisecond)},
			[]string{"i-1", "i-2"},
		},
		{
			"all at once",
			provider.Filter{
				Orchestration: kit.Order, Statuses: over, Tags: map[string]string{"n": "0"},
				StartedAfter: all[0].CreatedAt, UpdatedBefore: end,
			},
			[]string{"i-2"},
		},
	} {
		if c.filter.StartedBefore.IsZero() {
			c.filter.StartedBefore = end
		}
		f.WantEqual(c.what, matched(f, c.filter, 100), c.want)
	}
}

func matchInSteps(f *kit.Fixture) {
	var want []string
	for n := range 23 {
		want = append(want, fmt.Sprintf("i-%02d", n))
		f.Start(want[n])
	}
	filter := provider.Filter{StartedBefore: f.StoredNow().Add(time.Hour)}
	for _, most := range []int{1, 2, 7, 23, 24, 1000} {
		f.WantEqual(fmt.Sprint(most, " at a time"), matched(f, filter, most), want)
	}
	found, next, err := f.Provider.MatchInstances(f.Ctx(), filter, "", 5)
	f.Must(err)
	for _, of := range found { // an instance that was deleted in the meantime is not a failure
		f.Must(f.Provider.DeleteInstance(f.Ctx(), of.InstanceID, true))
	}
	again, _, err := f.Provider.MatchInstances(f.Ctx(), filter, next, 5)
	f.Must(err)
	for _, of := range again {
		if slices.ContainsFunc(found, func(o provider.Target) bool { return o.InstanceID == of.InstanceID }) {
			f.T.Errorf("instance %q was matched twice", of.InstanceID)
		}
	}
}

func matchNothing(f *kit.Fixture) {
	f.Start("a")
	now := f.StoredNow()
	for _, filter := range []provider.Filter{
		{StartedAfter: now.Add(time.Hour), StartedBefore: now},
		{StartedAfter: now.Add(time.Hour), StartedBefore: now.Add(time.Hour)},
		{StartedBefore: now.Add(-time.Hour)},
		{},
	} {
		found, next, err := f.Provider.MatchInstances(f.Ctx(), filter, "", 10)
		f.Must(err)
		f.WantEqual("found", len(found), 0)
		f.WantEqual("next", next, "")
	}
}

func matchCursorRefused(f *kit.Fixture) {
	_, _, err := f.Provider.MatchInstances(f.Ctx(), provider.Filter{StartedBefore: f.StoredNow()}, "no cursor", 10)
	if _, ok := errors.AsType[*provider.FieldError](err); !ok {
		f.T.Errorf("got error %v", err)
	}
}

func deleteIncarnation(f *kit.Fixture) {
	f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "missing", "unknown start", true))
	e := f.Start("a")
	f.WantErrorIs(f.Provider.DeleteIncarnation(f.Ctx(), "a", e.Instance.StartID, false), provider.ErrNotEnded)
	f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "a", "another start", true))
	f.WantStatus("a", provider.StatusPending)
	end(e, 0)
	f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "a", "another start", false))
	f.WantStatus("a", provider.StatusCompleted)
	for range 2 {
		f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "a", e.Instance.StartID, false))
		_, err := f.Provider.ReadInstance(f.Ctx(), "a")
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	s := kit.StartOf("a")
	s.StartID = "next incarnation"
	_, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "a", e.Instance.StartID, true))
	f.WantStatus("a", provider.StatusPending)
	f.Must(f.Provider.DeleteIncarnation(f.Ctx(), "a", s.StartID, true))
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
}

// filterFamily checks the filters of jobs on the instances of StartRelated.
func filterFamily(f *kit.Fixture) {
	all := f.StartRelated()
	end := f.StoredNow().Add(time.Hour)
	for _, c := range kit.Selections(all) {
		if c.Filter.StartedBefore.IsZero() {
			c.Filter.StartedBefore = end
		}
		f.WantEqual(c.What, matched(f, c.Filter, 100), c.Want)
	}
}
