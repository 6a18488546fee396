package memhub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/provider"
)

// jobs stores bulk jobs (provider.Jobs).
type jobs struct {
	*base

	instances *instances
	stored    []provider.Job
}

// PutJob implements provider.Jobs.
func (st *jobs) PutJob(ctx context.Context, j *provider.Job) error {
	return st.call(ctx, func() error {
		i := slices.IndexFunc(st.stored, func(other provider.Job) bool { return other.ID == j.ID })
		switch {
		case i < 0 && j.Revision == 0:
			j.Revision++
			st.stored = slices.Insert(st.stored, 0, *j)
		case i >= 0 && st.stored[i].Revision == j.Revision:
			j.Revision++
			st.stored[i] = *j
		default:
			return fmt.Errorf("fake: job %s: %w", j.ID, provider.ErrConflict)
		}
		return nil
	})
}

// ReadJob implements provider.Jobs.
func (st *jobs) ReadJob(ctx context.Context, id string) (provider.Job, error) {
	jobs, err := st.ListJobs(ctx)
	if err != nil {
		return provider.Job{}, err
	}
	for _, j := range jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return provider.Job{}, fmt.Errorf("fake: job %s: %w", id, provider.ErrNotFound)
}

// ListJobs implements provider.Jobs.
func (st *jobs) ListJobs(ctx context.Context) ([]provider.Job, error) {
	return callFor(ctx, st.base, func() ([]provider.Job, error) {
		newestFirst := func(a, b provider.Job) int { return strings.Compare(b.ID, a.ID) }
		return slices.SortedFunc(slices.Values(st.stored), newestFirst), nil
	})
}

// MatchInstances implements provider.Jobs. Its cursor is the position in the list of all instances.
func (st *jobs) MatchInstances(
	ctx context.Context, f provider.Filter, from string, most int,
) (found []provider.Target, next string, err error) {
	if err := st.begin(ctx); err != nil {
		return nil, "", err
	}
	defer st.mu.Unlock()
	at, err := strconv.Atoi(cmp.Or(from, "0"))
	if err != nil {
		return nil, "", &provider.FieldError{Field: fieldCursor, Problem: "does not belong to this list"}
	}
	all := st.instances.selected(&provider.ListQuery{
		Name: f.Orchestration, Version: f.Version, Parent: f.ParentID, Tags: f.Tags, StartedAfter: f.StartedAfter,
	})
	for i := at; i < len(all); i++ {
		in := &all[i]
		if !selects(&f, in) {
			continue
		}
		found = append(found, provider.Target{InstanceID: in.InstanceID, CreatedAt: in.CreatedAt})
		if len(found) == most {
			return found, strconv.Itoa(i + 1), nil
		}
	}
	return found, "", nil
}

func selects(f *provider.Filter, in *provider.Instance) bool {
	return in.CreatedAt.Before(f.StartedBefore) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, in.Status)) &&
		(f.UpdatedBefore.IsZero() || in.UpdatedAt.Before(f.UpdatedBefore))
}
