package segments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ReadDocument reads a document from the segment that contains it. It caches the segment, because segments never
// change, and consecutive calls usually read documents of the same segment.
func (ds *Documents) ReadDocument(
	ctx context.Context, instanceID string, ref history.Reference,
) (json.RawMessage, error) {
	at, err := history.ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	events, err := ds.segmentEvents(ctx, instanceID, at)
	if err != nil {
		return nil, err
	}
	doc, found := at.DocumentIn(events)
	if !found {
		ds.cache.Remove(segmentKey(at))
		return nil, fmt.Errorf("dynamo: instance %q: %w: no document at %s", instanceID, provider.ErrCorrupt, ref.Ref)
	}
	if err := ref.Check(doc); err != nil {
		ds.cache.Remove(segmentKey(at)) // the segment can be restored
		return nil, fmt.Errorf("dynamo: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	return doc, nil
}

// segmentEvents reads the events of one segment. If an eventually consistent read does not return the whole segment, it
// reads again with strong consistency.
func (ds *Documents) segmentEvents(
	ctx context.Context, instanceID string, at history.DataLocation,
) ([]history.Event, error) {
	key := segmentKey(at)
	if events, ok := ds.cache.Get(key); ok {
		return events, nil
	}
	for try, c := 1, provider.Eventual; ; try, c = try+1, provider.Strong {
		s, size, err := ds.read(ctx, at.ExecutionID, at.Segment, c)
		_, torn := errors.AsType[*table.TornError](err)
		switch {
		case torn && try > table.MaxReadTries:
			return nil, wrapError(instanceID, at.ExecutionID, fmt.Errorf("%w: %w", provider.ErrCorrupt, err))
		case torn, errors.Is(err, provider.ErrNotFound) && c == provider.Eventual:
			continue
		case err != nil:
			return nil, fmt.Errorf(
				"dynamo: instance %q: segment %d of execution %s: %w", instanceID, at.Segment, at.ExecutionID, err,
			)
		}
		ds.cache.Add(key, s.Events, min(size, documentCacheBytes))
		return s.Events, nil
	}
}

// read reads one segment, and returns the size of its events.
func (ds *Documents) read(
	ctx context.Context, executionID string, sequence int64, c provider.Consistency,
) (s provider.Segment, size int, err error) {
	items, err := ds.table.QueryAll(ctx, "", segmentQuery(executionID, sequence, c))
	switch {
	case err != nil:
		return s, 0, err
	case len(items) == 0 || table.IsStub(items[0]):
		return s, 0, provider.ErrNotFound
	}
	if n := table.GetNumber(items[0], table.AttrParts); n != int64(len(items)) {
		return s, 0, table.NewTornError(
			"item %s has %d parts, but %d exist", table.GetString(items[0], table.AttrSK), n, len(items),
		)
	}
	doc, err := Document(sequence, items)
	if err != nil {
		return s, 0, err
	}
	s, err = decode(sequence, items)
	return s, len(doc), err
}

// documentCacheBytes is the size of the cache of segments from which documents were read.
const documentCacheBytes = 16 << 20

func segmentKey(at history.DataLocation) string {
	return at.ExecutionID + " " + table.SegmentSK(at.Segment, 0)
}
