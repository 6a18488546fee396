package instances

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func listFilters(f *kit.Fixture) {
	for _, c := range kit.Selections(f.StartRelated()) {
		q := provider.ListQuery{
			Name: c.Filter.Orchestration, Version: c.Filter.Version, Parent: c.Filter.ParentID, Tags: c.Filter.Tags,
			StartedAfter: c.Filter.StartedAfter, StartedBefore: c.Filter.StartedBefore,
		}
		for _, limit := range []int{1, 2, 100} {
			q.Limit = limit
			found := f.List(q)
			slices.Sort(found)
			f.WantEqual(fmt.Sprintf("%s, in pages of %d", c.What, limit), found, c.Want)
		}
	}
}
