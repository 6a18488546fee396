package memhub

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// fieldCursor is the name of a field in errors.
const fieldCursor = "cursor"

// The limits of pages.
const (
	defaultPage = 100
	maxPage     = 1000
)

// ListInstances implements provider.Instances. A cursor consists of the query, and the time and the ID of the last
// instance of the page.
func (st *instances) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	if err := st.begin(ctx); err != nil {
		return provider.Page{}, err
	}
	defer st.mu.Unlock()
	if q.Limit < 0 || q.Limit > maxPage {
		problem := fmt.Sprintf("must be from 1 to %d", maxPage)
		return provider.Page{}, &provider.FieldError{Field: "limit", Problem: problem}
	}
	filter := fmt.Sprintf("%s,%s,%s,%s,%v,%d,%d", q.Status, q.Name, q.Version, q.Parent, q.Tags,
		q.StartedAfter.UnixMilli(), q.StartedBefore.UnixMilli())
	found := st.selected(&q)
	if q.Cursor != "" {
		at, id, err := parseCursor(q.Cursor, filter)
		if err != nil {
			return provider.Page{}, err
		}
		last := provider.Instance{InstanceID: id, CreatedAt: at, UpdatedAt: at}
		found = slices.DeleteFunc(found, func(in provider.Instance) bool { return newestFirst(&q)(in, last) <= 0 })
	}
	limit := cmp.Or(q.Limit, defaultPage)
	if len(found) <= limit {
		return provider.Page{Instances: found}, nil
	}
	last := &found[limit-1]
	next := fmt.Sprintf("%q %d %s", filter, sortTime(&q, last).UnixNano(), last.InstanceID)
	return provider.Page{Instances: found[:limit], NextCursor: base64.RawURLEncoding.EncodeToString([]byte(next))}, nil
}

// parseCursor returns the position in a cursor of a list with the filter.
func parseCursor(cursor, filter string) (at time.Time, instanceID string, err error) {
	text, _ := base64.RawURLEncoding.Strict().DecodeString(cursor)
	quoted, err := strconv.QuotedPrefix(string(text))
	rest, hasPosition := strings.CutPrefix(strings.TrimPrefix(string(text), quoted), " ")
	nanos, id, hasID := strings.Cut(rest, " ")
	n, bad := strconv.ParseInt(nanos, 10, 64)
	switch {
	case err != nil || strings.ContainsAny(cursor, "\r\n") || !hasPosition || !hasID || bad != nil || id == "":
		return at, "", &provider.FieldError{Field: fieldCursor, Problem: "does not belong to a list of instances"}
	case quoted != strconv.Quote(filter):
		return at, "", &provider.FieldError{Field: fieldCursor, Problem: "belongs to a list with another filter"}
	}
	return time.Unix(0, n).UTC(), id, nil
}

// sortTime returns the time by which a list is sorted.
func sortTime(q *provider.ListQuery, in *provider.Instance) time.Time {
	switch q.Status {
	case provider.StatusBlocked, provider.StatusPaused, provider.StatusDeleting:
		return in.UpdatedAt
	default:
		return in.CreatedAt
	}
}

// newestFirst returns the order of a list.
func newestFirst(q *provider.ListQuery) func(a, b provider.Instance) int {
	return func(a, b provider.Instance) int {
		return cmp.Or(sortTime(q, &b).Compare(sortTime(q, &a)), strings.Compare(a.InstanceID, b.InstanceID))
	}
}

// selected returns the instances that a query selects, in the form in which lists contain them.
func (st *instances) selected(q *provider.ListQuery) []provider.Instance {
	var found []provider.Instance
	for _, id := range st.byID {
		if id.instance != nil && q.Selects(&id.instance.Instance) {
			in := id.instance.Instance
			in.Notes = nil
			found = append(found, in)
		}
	}
	slices.SortFunc(found, newestFirst(q))
	return found
}
