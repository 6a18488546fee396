package providertest

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
)

// Jobs process the instances of a filter in the background. Concurrent writes of a job conflict (R22).
func jobs() group {
	return group{"jobs", []testCase{
		{name: "AJobComesBackAsItWas", run: jobReadBack},
		{name: "OfTwoWritersOneWins", run: jobWriters},
		{name: "ItsOwnWriteAgainIsSuccess", run: jobWriteLost, needs: []Capability{Faults}},
		{name: "TheNewestIsListedFirst", run: jobsListed},
		{name: "ABatchOfTheLongestIDsFits", run: jobOfLongIDs},
		{name: "AFilterSelectsExactly", run: filterEdges},
		{name: "FiltersByParentAndVersion", run: filterFamily},
		{name: "AMatchGoesOnWhereTheLastEnded", run: matchInSteps},
		{name: "TimesThatLeaveNothingAreTheEnd", run: matchNothing},
		{name: "AForeignCursorIsRefused", run: matchCursorRefused},
		{name: "ALifeIsDeletedAndNoOther", run: deleteLife},
	}}
}

// job returns a running job.
func (f *fixture) job(id string) *provider.Job {
	return &provider.Job{
		ID: id, Operation: provider.OperationPurge, Filter: provider.Filter{Orchestration: order, Statuses: []provider.RuntimeStatus{provider.StatusCompleted}, Tags: map[string]string{"a": "<b>"}},
		State: provider.JobRunning, CreatedAt: f.now(), UpdatedAt: f.now(),
	}
}

func jobReadBack(f *fixture) {
	_, err := f.p.ReadJob(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
	j := f.job("a")
	f.must(f.p.PutJob(f.ctx(), j))
	j.Force, j.Message, j.Matched, j.Done, j.Skipped, j.Failed, j.Errors = true, "why", 7, 3, 2, 1, []string{"<no> \u2028"}
	j.Batch, j.Next, j.MatchingDone = []provider.Target{{InstanceID: "<i>", CreatedAt: f.now(), Tries: 2}}, "next", true
	f.must(f.p.PutJob(f.ctx(), j))
	got, err := f.p.ReadJob(f.ctx(), "a")
	f.must(err)
	f.wantEqual("job", got, j)
	f.wantEqual("revision", got.Revision, j.Revision)
	got.State = provider.JobCompleted
	f.must(f.p.PutJob(f.ctx(), &got))
	got, err = f.p.ReadJob(f.ctx(), "a")
	f.must(err)
	f.wantEqual("over", got.Ended(), true)
}

func jobWriters(f *fixture) {
	j := f.job("a")
	f.must(f.p.PutJob(f.ctx(), j))
	other := f.job("a")
	other.Operation = provider.OperationCancel
	f.wantIs(f.p.PutJob(f.ctx(), other), provider.ErrConflict)
	const writers = 8
	var won atomic.Int64
	var writing sync.WaitGroup
	for n := range writers {
		writing.Go(func() {
			mine := *j
			mine.Matched = int64(n) + 1
			switch err := f.p.PutJob(f.ctx(), &mine); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, provider.ErrConflict):
				f.t.Error(err)
			}
		})
	}
	writing.Wait()
	f.wantEqual("writers that succeeded", won.Load(), 1)
	f.wantIs(f.p.PutJob(f.ctx(), j), provider.ErrConflict)
	got, err := f.p.ReadJob(f.ctx(), "a")
	f.must(err)
	f.wantEqual("revision", got.Revision, j.Revision+1)
}

func jobWriteLost(f *fixture) {
	j := f.job("a")
	for range 2 { // once when it is created, and once when it is written again
		f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
		j.Matched++
		f.must(f.p.PutJob(f.ctx(), j))
		f.Fail(Fault{})
	}
	got, err := f.p.ReadJob(f.ctx(), "a")
	f.must(err)
	f.wantEqual("job", got, j)
	f.wantEqual("revision", got.Revision, j.Revision)
}

func jobsListed(f *fixture) {
	none, err := f.p.ListJobs(f.ctx())
	f.must(err)
	f.wantEqual("jobs", len(none), 0)
	for _, id := range []string{"01A", "01C", "01B"} {
		f.must(f.p.PutJob(f.ctx(), f.job(id)))
	}
	all, err := f.p.ListJobs(f.ctx())
	f.must(err)
	var ids []string
	for _, j := range all {
		ids = append(ids, j.ID)
	}
	f.wantEqual("jobs", ids, []string{"01C", "01B", "01A"})
}

func jobOfLongIDs(f *fixture) {
	for _, of := range []string{"a", "<", `"`, "\u2028", "\U0001F600"} {
		j := f.job("job of " + of)
		for n := range 100 {
			id := strings.Repeat(of, provider.MaxInstanceIDBytes/len(of)-4) + fmt.Sprintf("%04d", n)
			j.Batch = append(j.Batch, provider.Target{InstanceID: id, CreatedAt: f.now()})
		}
		f.must(f.p.PutJob(f.ctx(), j))
		got, err := f.p.ReadJob(f.ctx(), j.ID)
		f.must(err)
		f.wantEqual("batch", got.Batch, j.Batch)
	}
}

// matched returns the sorted IDs that a filter selects. Each call returns up to most.
func (f *fixture) matched(filter provider.Filter, most int) (ids []string) {
	f.t.Helper()
	for next := ""; ; {
		found, more, err := f.p.MatchInstances(f.ctx(), filter, next, most)
		f.must(err)
		if len(found) > most {
			f.t.Errorf("%d instances matched, want at most %d", len(found), most)
		}
		for _, of := range found {
			ids = append(ids, of.InstanceID)
			if created := f.instance(of.InstanceID).CreatedAt; !created.Equal(of.CreatedAt) {
				f.t.Errorf("instance %q was created at %v, matched with %v", of.InstanceID, created, of.CreatedAt)
			}
		}
		if next = more; next == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

func filterEdges(f *fixture) {
	var all []provider.Instance
	for n := range 4 {
		s := startOf(fmt.Sprint("i-", n))
		s.Tags = map[string]string{"n": strconv.Itoa(n % 2), "all": ""}
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		all = append(all, in)
		f.Advance(5 * time.Millisecond)
	}
	(&execution{f: f, instance: all[1], head: provider.Head{ExecutionID: all[1].ExecutionID}, next: 2}).end(0)
	f.Advance(5 * time.Millisecond)
	(&execution{f: f, instance: all[2], head: provider.Head{ExecutionID: all[2].ExecutionID}, next: 2}).end(0)
	ended := f.instance("i-2").UpdatedAt
	end := f.now().Add(time.Hour)
	over := []provider.RuntimeStatus{provider.StatusCompleted, provider.StatusFailed}
	for _, c := range []struct {
		what   string
		filter provider.Filter
		want   []string
	}{
		{"all", provider.Filter{}, []string{"i-0", "i-1", "i-2", "i-3"}},
		{"a name", provider.Filter{Orchestration: order}, []string{"i-0", "i-1", "i-2", "i-3"}},
		{"another name", provider.Filter{Orchestration: order + "s"}, nil},
		{"statuses", provider.Filter{Statuses: over}, []string{"i-1", "i-2"}},
		{"a tag", provider.Filter{Tags: map[string]string{"n": "1"}}, []string{"i-1", "i-3"}},
		{"two tags", provider.Filter{Tags: map[string]string{"n": "1", "all": ""}}, []string{"i-1", "i-3"}},
		{"a tag that is not there", provider.Filter{Tags: map[string]string{"other": ""}}, nil},
		{"started then or later", provider.Filter{StartedAfter: all[2].CreatedAt}, []string{"i-2", "i-3"}},
		{"started a moment later", provider.Filter{StartedAfter: all[2].CreatedAt.Add(time.Millisecond)}, []string{"i-3"}},
		{"started before", provider.Filter{StartedBefore: all[2].CreatedAt}, []string{"i-0", "i-1"}},
		{"started in a millisecond", provider.Filter{StartedAfter: all[2].CreatedAt, StartedBefore: all[2].CreatedAt.Add(time.Millisecond)}, []string{"i-2"}},
		{"ended before", provider.Filter{Statuses: over, UpdatedBefore: ended}, []string{"i-1"}},
		{"ended a moment earlier", provider.Filter{Statuses: over, UpdatedBefore: ended.Add(time.Millisecond)}, []string{"i-1", "i-2"}},
		{"all at once", provider.Filter{Orchestration: order, Statuses: over, Tags: map[string]string{"n": "0"}, StartedAfter: all[0].CreatedAt, UpdatedBefore: end}, []string{"i-2"}},
	} {
		if c.filter.StartedBefore.IsZero() {
			c.filter.StartedBefore = end
		}
		f.wantEqual(c.what, f.matched(c.filter, 100), c.want)
	}
}

func matchInSteps(f *fixture) {
	var want []string
	for n := range 23 {
		want = append(want, fmt.Sprintf("i-%02d", n))
		f.start(want[n])
	}
	filter := provider.Filter{StartedBefore: f.now().Add(time.Hour)}
	for _, most := range []int{1, 2, 7, 23, 24, 1000} {
		f.wantEqual(fmt.Sprint(most, " at a time"), f.matched(filter, most), want)
	}
	found, next, err := f.p.MatchInstances(f.ctx(), filter, "", 5)
	f.must(err)
	for _, of := range found { // an instance that was deleted in the meantime is no failure
		f.must(f.p.DeleteInstance(f.ctx(), of.InstanceID, true))
	}
	again, _, err := f.p.MatchInstances(f.ctx(), filter, next, 5)
	f.must(err)
	for _, of := range again {
		if slices.ContainsFunc(found, func(o provider.Target) bool { return o.InstanceID == of.InstanceID }) {
			f.t.Errorf("instance %q was matched twice", of.InstanceID)
		}
	}
}

func matchNothing(f *fixture) {
	f.start("a")
	now := f.now()
	for _, filter := range []provider.Filter{
		{StartedAfter: now.Add(time.Hour), StartedBefore: now},
		{StartedAfter: now.Add(time.Hour), StartedBefore: now.Add(time.Hour)},
		{StartedBefore: now.Add(-time.Hour)},
		{},
	} {
		found, next, err := f.p.MatchInstances(f.ctx(), filter, "", 10)
		f.must(err)
		f.wantEqual("found", len(found), 0)
		f.wantEqual("next", next, "")
	}
}

func matchCursorRefused(f *fixture) {
	_, _, err := f.p.MatchInstances(f.ctx(), provider.Filter{StartedBefore: f.now()}, "no cursor", 10)
	if _, ok := errors.AsType[*provider.FieldError](err); !ok {
		f.t.Errorf("error %v", err)
	}
}

func deleteLife(f *fixture) {
	f.must(f.p.DeleteIncarnation(f.ctx(), "nobody", "start of nobody", true))
	e := f.start("a")
	f.wantIs(f.p.DeleteIncarnation(f.ctx(), "a", e.instance.StartID, false), provider.ErrNotEnded)
	f.must(f.p.DeleteIncarnation(f.ctx(), "a", "another start", true))
	f.wantStatus("a", provider.StatusPending)
	e.end(0)
	f.must(f.p.DeleteIncarnation(f.ctx(), "a", "another start", false))
	f.wantStatus("a", provider.StatusCompleted)
	for range 2 {
		f.must(f.p.DeleteIncarnation(f.ctx(), "a", e.instance.StartID, false))
		_, err := f.p.ReadInstance(f.ctx(), "a")
		f.wantIs(err, provider.ErrNotFound)
	}
	s := startOf("a")
	s.StartID = "the next life"
	_, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	f.must(f.p.DeleteIncarnation(f.ctx(), "a", e.instance.StartID, true))
	f.wantStatus("a", provider.StatusPending)
	f.must(f.p.DeleteIncarnation(f.ctx(), "a", s.StartID, true))
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
}
