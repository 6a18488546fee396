package segments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// workItemCacheBytes limits the cache of segments with activities that are retried or completed externally. A hundred
// thousand activities of one segment can be retried or completed in an hour.
const workItemCacheBytes = 16 << 20

// ReadWorkItem reads the segment from the cache of this process, or from the table if the cache does not contain it.
func (ws *WorkItems) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	w, err := ws.Find(ctx, instanceID, executionID, segment, activityID)
	if errors.Is(err, table.ErrDeleted) {
		err = fmt.Errorf("%w: %w", provider.ErrNotFound, err)
	}
	return w, err
}

// Find returns the work item of an activity's first attempt, from the segment that scheduled it. It
// returns ErrNotFound if the segment does not schedule the activity, and ErrDeleted if the segment was deleted.
func (ws *WorkItems) Find(
	ctx context.Context, instanceID, executionID string, sequence, activityID int64,
) (provider.WorkItem, error) {
	// A segment never changes, but an eventually consistent read may not return it yet.
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		items, err := ws.readItems(ctx, instanceID, executionID, sequence, activityID, c)
		if _, torn := errors.AsType[*table.TornError](err); torn && c == provider.Eventual {
			continue
		} else if torn {
			err = fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		}
		if err != nil {
			return provider.WorkItem{}, wrapError(instanceID, executionID, err)
		}
		if w, ok := items[activityID]; ok {
			return w, nil
		}
	}
	return provider.WorkItem{}, wrapError(
		instanceID, executionID, fmt.Errorf("activity #%d: %w", activityID, provider.ErrNotFound),
	)
}

// cachedItems is the cached part of a segment: the work items of its activities between two IDs.
type cachedItems struct {
	first, last int64
	items       map[int64]provider.WorkItem
}

// readItems returns work items of a segment by activity ID. These are the work item of the given activity and the work
// items that are cached with it.
func (ws *WorkItems) readItems(
	ctx context.Context, instanceID, executionID string, sequence, activityID int64, c provider.Consistency,
) (map[int64]provider.WorkItem, error) {
	key := fmt.Sprintf("%s %d", executionID, sequence)
	if known, ok := ws.cache.Get(key); ok && known.first <= activityID && activityID <= known.last {
		return known.items, nil
	}
	parts, err := ws.table.QueryAll(ctx, instanceID, segmentQuery(executionID, sequence, c))
	if err != nil {
		return nil, err
	}

	var scheduling *provider.Segment
	cut := decoder{Items: parts, Next: sequence, Last: true}
	err = cut.decode(nil, func(s provider.Segment) bool { scheduling = &s; return false })
	if err != nil || scheduling == nil {
		return nil, err
	}

	origin := outputs.Origin{InstanceID: instanceID, ExecutionID: executionID}
	out := outputs.Of(origin, *scheduling, nil)
	found, bytes := selectCached(out.WorkItems, activityID)
	ws.cache.Add(key, found, bytes)
	return found.items, nil
}

// selectCached returns the work items of a segment to cache. If all of them are too large, it returns the work items
// from the given activity on. Activities end roughly in the order in which they were scheduled.
func selectCached(all []provider.WorkItem, activityID int64) (found cachedItems, bytes int) {
	found = cachedItems{last: activityrecords.MaxActivityID, items: map[int64]provider.WorkItem{}}
	most, isPart := workItemCacheBytes, sizeOf(all) > workItemCacheBytes
	if isPart {
		found.first, most = activityID, workItemCacheBytes/2 // so that another execution can use the other half
	}
	for i := range all {
		w := all[i]
		switch {
		case w.ActivityID < found.first:
			continue
		case bytes > most:
			found.last = w.ActivityID - 1
			return found, bytes
		case isPart:
			w.Input = slices.Clone(w.Input) // otherwise the whole segment is cached
		}
		bytes += len(w.Input) + workItemBytes
		found.items[w.ActivityID] = w
	}
	return found, bytes
}

func sizeOf(all []provider.WorkItem) (bytes int) {
	for i := range all {
		bytes += len(all[i].Input) + workItemBytes
	}
	return bytes
}

// workItemBytes is the approximate size of a work item without its input.
const workItemBytes = 512
