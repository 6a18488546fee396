package kit

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// ReportBuilds stores builds in order. The last argument is then the last build that reported.
func (f *Fixture) ReportBuilds(builds ...string) {
	f.T.Helper()
	for _, id := range builds {
		if slices.Contains(f.reported, id) {
			f.Advance(provider.BuildReportInterval) // otherwise the provider may ignore the report
		}
		f.reported = append(f.reported, id)
		f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{ID: id, Orchestrations: map[string][]string{Order: {V1}}}))
		f.Advance(10 * time.Millisecond) // times are stored in milliseconds
	}
}

// WantBlocked fails if the instances that were blocked by an earlier build are not exactly these.
func (f *Fixture) WantBlocked(want ...string) {
	f.T.Helper()
	got := []string{}
	for in, err := range f.Provider.BlockedInstances(f.Ctx()) {
		f.Must(err)
		for i := range in {
			got = append(got, in[i].InstanceID)
		}
	}
	f.WantEqual("blocked in another build", got, append([]string{}, want...))
}

// DeleteInstance deletes an instance, even if it has not ended.
func (f *Fixture) DeleteInstance(id string) {
	f.T.Helper()
	f.Must(f.Provider.DeleteInstance(f.Ctx(), id, true))
}

// StartRelated starts instances with different IDs, parents, versions and tags. The IDs of the parents have a common
// prefix or need JSON escapes.
func (f *Fixture) StartRelated() (all []provider.Instance) {
	f.T.Helper()
	parents := []string{"p", "p", `p"`, "p<&>", "pp"}
	for n, parent := range parents {
		id := fmt.Sprint("i-", n)
		m := StartMessageOf(id, "start of "+id)
		m.Parent = &history.Parent{InstanceID: parent, ExecutionID: "px", EventID: 5}
		m.Tags = map[string]string{"n": strconv.Itoa(n % 2), "all": "", `q"`: `","n":"1`}
		if n == 4 {
			m.Version = V1 + "0"
		}
		f.Create(m)
		all = append(all, f.Instance(id))
		f.Advance(5 * time.Millisecond)
	}
	return all
}

// Selection contains the filters that both lists and jobs have.
type Selection struct {
	What   string
	Filter provider.Filter
	Want   []string
}

// Selections returns filters and the instances of StartRelated that they select.
func Selections(all []provider.Instance) []Selection {
	id := func(n ...int) (ids []string) {
		for _, i := range n {
			ids = append(ids, all[i].InstanceID)
		}
		return ids
	}
	return []Selection{
		{What: "a parent", Filter: provider.Filter{ParentID: "p"}, Want: id(0, 1)},
		{What: "a parent with a quote", Filter: provider.Filter{ParentID: `p"`}, Want: id(2)},
		{What: "a parent with characters that HTML escapes", Filter: provider.Filter{ParentID: "p<&>"}, Want: id(3)},
		{What: "another parent", Filter: provider.Filter{ParentID: "px"}},
		{What: "a version", Filter: provider.Filter{Version: V1}, Want: id(0, 1, 2, 3)},
		{What: "another version", Filter: provider.Filter{Version: V1 + "0"}, Want: id(4)},
		{What: "a tag", Filter: provider.Filter{Tags: map[string]string{"n": "1"}}, Want: id(1, 3)},
		{What: "two tags", Filter: provider.Filter{Tags: map[string]string{"n": "0", "all": ""}}, Want: id(0, 2, 4)},
		{What: "a tag of another value", Filter: provider.Filter{Tags: map[string]string{"all": "0"}}},
		{What: "a tag that is not there", Filter: provider.Filter{Tags: map[string]string{"other": ""}}},
		{What: "before", Filter: provider.Filter{StartedBefore: all[2].CreatedAt}, Want: id(0, 1)},
		{
			What: "a moment later", Filter: provider.Filter{StartedBefore: all[2].CreatedAt.Add(time.Millisecond)},
			Want: id(0, 1, 2),
		},
		{
			What: "between", Filter: provider.Filter{StartedAfter: all[1].CreatedAt, StartedBefore: all[3].CreatedAt},
			Want: id(1, 2),
		},
		{
			What:   "no time between",
			Filter: provider.Filter{StartedAfter: all[3].CreatedAt, StartedBefore: all[1].CreatedAt},
		},
		{What: "all at once", Filter: provider.Filter{
			Orchestration: Refund, Version: V1, ParentID: "p", Tags: map[string]string{
				"n": "1",
			}, StartedAfter: all[0].CreatedAt, StartedBefore: all[4].CreatedAt,
		}, Want: id(1)},
	}
}

// Pages lists all pages of a query, and checks their sizes and their order.
func (f *Fixture) Pages(q provider.ListQuery) (pages [][]provider.Instance) {
	f.T.Helper()
	var last time.Time
	for {
		page, err := f.Provider.ListInstances(f.Ctx(), q)
		f.Must(err)
		if short := selectsAll(q) && page.NextCursor != "" && len(page.Instances) < q.Limit; short ||
			len(page.Instances) > q.Limit {
			f.T.Errorf("page %d has %d instances, want %d", len(pages)+1, len(page.Instances), q.Limit)
		}
		for _, in := range page.Instances {
			if !last.IsZero() && in.CreatedAt.After(last) {
				f.T.Errorf("%q is newer than the previous one", in.InstanceID)
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

// List returns the IDs of all pages.
func (f *Fixture) List(q provider.ListQuery) (ids []string) {
	f.T.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	for _, page := range f.Pages(q) {
		for _, in := range page {
			ids = append(ids, in.InstanceID)
		}
	}
	return ids
}
