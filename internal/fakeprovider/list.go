package fakeprovider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/provider"
)

// ListInstances implements provider.Instances. A cursor consists of the filter and the ID of the last instance of the
// page.
func (p *Provider) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Page{}, err
	}
	defer p.mu.Unlock()
	filter := fmt.Sprintf("%s,%s,%s,%s,%v,%d,%d:", q.Status, q.Name, q.Version, q.Parent, q.Tags, q.StartedAfter.Unix(), q.StartedBefore.Unix())
	last, known := strings.CutPrefix(q.Cursor, filter)
	if q.Cursor != "" && !known {
		return provider.Page{}, &provider.FieldError{Field: "cursor", Problem: "belongs to a list with another filter"}
	}
	found := p.selected(q)
	if i := slices.IndexFunc(found, func(in provider.Instance) bool { return in.InstanceID == last }); i >= 0 {
		found = found[i+1:]
	}
	limit := cmp.Or(q.Limit, 100)
	if len(found) <= limit {
		return provider.Page{Instances: found}, nil
	}
	return provider.Page{Instances: found[:limit], NextCursor: filter + found[limit-1].InstanceID}, nil
}

// selected is newest first; of the same moment, the id that sorts first.
func (p *Provider) selected(q provider.ListQuery) []provider.Instance {
	var found []provider.Instance
	for _, in := range p.instances {
		if q.Selects(&in) {
			found = append(found, in)
		}
	}
	slices.SortFunc(found, func(a, b provider.Instance) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.InstanceID, b.InstanceID))
	})
	return found
}
