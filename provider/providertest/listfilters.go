package providertest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// kin starts instances with different IDs, parents, versions and tags. The IDs of the parents have a common prefix or
// need JSON escapes.
func (f *fixture) kin() (all []provider.Instance) {
	f.t.Helper()
	parents := []string{"p", "p", `p"`, "p<&>", "pp"}
	for n, parent := range parents {
		id := fmt.Sprint("i-", n)
		m := startMessageOf(id, "start of "+id)
		m.Parent = &history.Parent{InstanceID: parent, ExecutionID: "px", EventID: 5}
		m.Tags = map[string]string{"n": strconv.Itoa(n % 2), "all": "", `q"`: `","n":"1`}
		if n == 4 {
			m.Version = v1 + "0"
		}
		f.create(m)
		all = append(all, f.instance(id))
		f.Advance(5 * time.Millisecond)
	}
	return all
}

// selection contains the filters that lists and jobs have in common.
type selection struct {
	what   string
	filter provider.Filter
	want   []string
}

func selections(all []provider.Instance) []selection {
	id := func(n ...int) (ids []string) {
		for _, i := range n {
			ids = append(ids, all[i].InstanceID)
		}
		return ids
	}
	return []selection{
		{what: "a parent", filter: provider.Filter{ParentID: "p"}, want: id(0, 1)},
		{what: "a parent with a quote", filter: provider.Filter{ParentID: `p"`}, want: id(2)},
		{what: "a parent with what HTML escapes", filter: provider.Filter{ParentID: "p<&>"}, want: id(3)},
		{what: "another parent", filter: provider.Filter{ParentID: "px"}},
		{what: "a version", filter: provider.Filter{Version: v1}, want: id(0, 1, 2, 3)},
		{what: "another version", filter: provider.Filter{Version: v1 + "0"}, want: id(4)},
		{what: "a tag", filter: provider.Filter{Tags: map[string]string{"n": "1"}}, want: id(1, 3)},
		{what: "two tags", filter: provider.Filter{Tags: map[string]string{"n": "0", "all": ""}}, want: id(0, 2, 4)},
		{what: "a tag of another value", filter: provider.Filter{Tags: map[string]string{"all": "0"}}},
		{what: "a tag that is not there", filter: provider.Filter{Tags: map[string]string{"other": ""}}},
		{what: "before", filter: provider.Filter{StartedBefore: all[2].CreatedAt}, want: id(0, 1)},
		{what: "a moment later", filter: provider.Filter{StartedBefore: all[2].CreatedAt.Add(time.Millisecond)}, want: id(0, 1, 2)},
		{what: "between", filter: provider.Filter{StartedAfter: all[1].CreatedAt, StartedBefore: all[3].CreatedAt}, want: id(1, 2)},
		{what: "no time between", filter: provider.Filter{StartedAfter: all[3].CreatedAt, StartedBefore: all[1].CreatedAt}},
		{what: "all at once", filter: provider.Filter{
			Orchestration: refund, Version: v1, ParentID: "p", Tags: map[string]string{"n": "1"}, StartedAfter: all[0].CreatedAt, StartedBefore: all[4].CreatedAt,
		}, want: id(1)},
	}
}

func listFilters(f *fixture) {
	for _, c := range selections(f.kin()) {
		q := provider.ListQuery{
			Name: c.filter.Orchestration, Version: c.filter.Version, Parent: c.filter.ParentID, Tags: c.filter.Tags, StartedAfter: c.filter.StartedAfter, StartedBefore: c.filter.StartedBefore,
		}
		for _, limit := range []int{1, 2, 100} {
			q.Limit = limit
			found := f.list(q)
			slices.Sort(found)
			f.wantEqual(fmt.Sprintf("%s, in pages of %d", c.what, limit), found, c.want)
		}
	}
}

// filterFamily compares the filters of jobs with the same instances.
func filterFamily(f *fixture) {
	all := f.kin()
	end := f.now().Add(time.Hour)
	for _, c := range selections(all) {
		if c.filter.StartedBefore.IsZero() {
			c.filter.StartedBefore = end
		}
		f.wantEqual(c.what, f.matched(c.filter, 100), c.want)
	}
}
