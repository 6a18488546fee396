package segments

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ReadSegment reads one segment. It returns an empty segment if the segment cannot be read.
func (st *Store) ReadSegment(ctx context.Context, executionID string, sequence int64) (provider.Segment, error) {
	parts, err := st.table.QueryAll(ctx, "", segmentQuery(executionID, sequence, provider.Strong))
	if err != nil {
		return provider.Segment{}, err
	}
	return DecodeComplete(sequence, parts), nil
}

// ReadLastSegment reads the last segment of an execution. It returns an empty segment if the segment cannot be read.
func (st *Store) ReadLastSegment(ctx context.Context, executionID string) (provider.Segment, error) {
	parts, err := st.lastParts(ctx, executionID)
	if err != nil || len(parts) == 0 {
		return provider.Segment{}, err
	}
	sequence, _, err := table.ParseSegmentSK(table.GetString(parts[0], table.AttrSK))
	if err != nil {
		return provider.Segment{}, nil //nolint:nilerr // the segment is damaged
	}
	return DecodeComplete(sequence, parts), nil
}

// Exists reports whether an execution exists and is not deleted.
func (st *Store) Exists(ctx context.Context, executionID string) (bool, error) {
	start, err := st.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	return len(start) > 0 && !table.IsStub(start), err
}

// ReadOrchestration reads the execution that the item's messages name. It does not read the instance first, because
// that execution is nearly always the current one.
func (st *Store) ReadOrchestration(
	ctx context.Context, it *provider.OrchestrationItem, c provider.Consistency,
) (*provider.Orchestration, error) {
	named := ""
	for i := range it.Messages {
		if id := it.Messages[i].ExecutionID; id != "" {
			named = id
		}
	}
	if named != "" {
		return st.ReadCurrent(ctx, it.InstanceID, named, c)
	}
	in, err := st.instances.ReadWith(ctx, it.InstanceID, c)
	if err != nil {
		return nil, err
	}
	return st.ReadCurrent(ctx, it.InstanceID, in.ExecutionID, c)
}

// ReadCurrent reads an execution. If it has continued as new or was never created, ReadCurrent reads the instance's
// current execution. A strongly consistent read returns errCorrupt if the current execution does not exist or has
// continued as another one.
func (st *Store) ReadCurrent(
	ctx context.Context, instanceID, executionID string, c provider.Consistency,
) (*provider.Orchestration, error) {
	for try := 1; ; {
		o, err := st.ReadExecution(ctx, instanceID, executionID, c)
		lost := errors.Is(err, provider.ErrNotFound)
		if !lost && (err != nil || o.Last().Kind != history.OrchestrationContinuedAsNew) {
			return o, err
		}
		it, err := st.instances.Get(ctx, instanceID, provider.Strong)
		if err != nil {
			return nil, err
		}
		current := table.GetString(it, table.AttrExecution)
		switch {
		case current != executionID:
			executionID, try = current, 1
		case instances.IsDeleting(it) || c != provider.Strong:
			return nil, wrapError(instanceID, executionID, provider.ErrNotFound)
		case try == table.MaxReadTries:
			return nil, errIncomplete(instanceID, executionID, lost)
		default:
			try++
		}
	}
}

// errIncomplete returns the error for an instance whose item and history are not from the same moment. A table that was
// copied item by item can contain only a part of the transaction that started the instance or continued it as new.
func errIncomplete(instanceID, executionID string, lost bool) error {
	why := "has continued as new, but the instance does not refer to the next execution"
	if lost {
		why = "is the current one, but has no items in the table"
	}
	return fmt.Errorf("dynamo: instance %q: execution %s: %w: the execution %s", instanceID, executionID,
		provider.ErrCorrupt, why)
}

// ReadExecution reads a history. If an eventually consistent read is torn, it reads again with strong consistency.
func (st *Store) ReadExecution(
	ctx context.Context, instanceID, executionID string, c provider.Consistency,
) (*provider.Orchestration, error) {
	return st.ReadExecutionWithNotes(ctx, instanceID, executionID, c, nil)
}

// ReadExecutionWithNotes is like ReadExecution. In the same query, it also reads the keys of the execution's dispatch
// records and cursors, with the reconciliations that wrote them (R9).
func (st *Store) ReadExecutionWithNotes(
	ctx context.Context, instanceID, executionID string, c provider.Consistency, notes *[]table.Item,
) (*provider.Orchestration, error) {
	for try := 1; ; try++ {
		l := executionReader{
			p:           st,
			instanceID:  instanceID,
			executionID: executionID,
			consistency: c,
			rollupFrom:  st.rollupSize,
			notes:       notes,
		}
		if try == table.MaxReadTries {
			l.rollupFrom = 0 // the segments themselves take precedence
		}
		l.holding.ExecutionID = executionID
		err := l.read(ctx)
		_, torn := errors.AsType[*table.TornError](err)
		switch {
		case torn && c == provider.Strong && try == table.MaxReadTries:
			return nil, wrapError(instanceID, executionID, fmt.Errorf("%w: %w", provider.ErrCorrupt, err))
		case torn:
			c = provider.Strong
			continue
		case err != nil:
			return nil, wrapError(instanceID, executionID, err)
		case len(l.segments) == 0 || instanceID != table.GetString(l.start, table.AttrInstance):
			return nil, wrapError(instanceID, executionID, provider.ErrNotFound)
		}
		if notes == nil { // a reconciliation has only the permissions of its caller
			st.writeRollups(ctx, instanceID, executionID, l.rollupCandidates())
		}
		last := l.segments[len(l.segments)-1]
		return &provider.Orchestration{
			InstanceID: instanceID,
			Verified:   c == provider.Strong,
			Segments:   l.segments,
			Previous:   table.GetString(l.start, table.AttrPrevious),
			Head:       provider.Head{ExecutionID: executionID, Segment: last.Sequence, Watermark: last.Watermark},
		}, nil
	}
}

// splitNotes removes the items that are not segments from a page, and appends them to notes.
func splitNotes(page []table.Item, notes *[]table.Item) []table.Item {
	if notes == nil {
		return page
	}
	return slices.DeleteFunc(page, func(it table.Item) bool {
		isNote := strings.HasPrefix(table.GetString(it, table.AttrSK), table.SKCursors)
		if isNote {
			note := table.KeyOf(it)
			note[table.AttrTakenBy] = table.Str(table.GetString(it, table.AttrTakenBy))
			*notes = append(*notes, note)
		}
		return isNote
	})
}

// withoutEvents returns a segment's first item without its events.
func withoutEvents(it table.Item) table.Item {
	h := maps.Clone(it)
	delete(h, table.AttrEvents)
	delete(h, table.AttrZstd)
	return h
}

// showDocuments replaces references by documents in a copy of the event, because the memory of the cached history must
// not grow.
func (st *Store) showDocuments(ctx context.Context, instanceID string, e *history.Event) error {
	e.CarriedEvents = slices.Clone(e.CarriedEvents)
	e.Inputs = slices.Clone(e.Inputs)
	return documents.Resolve(ctx, st.documents, instanceID, e)
}

// ListExecutions starts with the current execution. Each execution names the previous one, and the list ends at the
// oldest execution that is not erased.
func (st *Store) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		it, err := st.instances.Get(ctx, instanceID, provider.Strong)
		current := table.GetString(it, table.AttrExecution)
		for id := current; err == nil && id != ""; {
			var x provider.Execution
			at := id
			if x, id, err = st.readStart(ctx, instanceID, at); errors.Is(err, table.ErrDeleted) && at != current {
				return // erased in the meantime
			}
			if err == nil && !yield(x, nil) || at == table.GetString(it, table.AttrOldest) {
				return
			}
		}
		if err != nil {
			yield(provider.Execution{}, err)
		}
	}
}

// readStart reads an execution's first segment, and returns the previous execution.
func (st *Store) readStart(
	ctx context.Context, instanceID, executionID string,
) (x provider.Execution, previous string, err error) {
	items, err := st.table.QueryAll(ctx, instanceID, segmentQuery(executionID, 0, provider.Strong))
	if err != nil {
		return x, "", err
	}
	segments, err := decodeAll(items)
	switch {
	case errors.Is(err, table.ErrDeleted):
		err = fmt.Errorf("%w: %w", provider.ErrNotFound, err)
	case err == nil && len(segments) == 0:
		err = provider.ErrNotFound
	}
	if err != nil {
		return x, "", wrapError(instanceID, executionID, err)
	}
	start := &segments[0].Events[0]
	x = provider.Execution{ExecutionID: executionID, Number: start.Number, StartedAt: start.Time}
	return x, table.GetString(items[0], table.AttrPrevious), nil
}

// ReadTerminalEvent reads only the last segment, with a backward query.
func (st *Store) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	for try := 1; ; try++ {
		parts, err := st.lastParts(ctx, executionID)
		if err != nil {
			return history.Event{}, err
		}
		end, err := lastEvent(parts)
		if _, torn := errors.AsType[*table.TornError](err); torn && try < table.MaxReadTries {
			continue
		} else if torn {
			err = fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		}
		if err != nil {
			return history.Event{}, fmt.Errorf("dynamo: execution %s: %w", executionID, err)
		}
		return end, nil
	}
}

// lastParts reads the items of the last segment, sorted by key.
func (st *Store) lastParts(ctx context.Context, executionID string) ([]table.Item, error) {
	in := table.SegmentsQuery(executionID, provider.Strong)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(1)

	var parts []table.Item
	for page, err := range st.table.Query(ctx, "", in) {
		if err != nil {
			return nil, err
		}
		parts = append(parts, page...)
		if n := len(parts); n > 0 && table.IsStub(parts[n-1]) {
			return nil, nil // deleted
		} else if n > 0 && table.GetNumber(parts[n-1], table.AttrParts) > 0 {
			break // the first part, so the segment is complete
		}
	}
	slices.Reverse(parts)
	return parts, nil
}

func lastEvent(parts []table.Item) (history.Event, error) {
	if len(parts) == 0 {
		return history.Event{}, provider.ErrNotFound
	}
	sequence, _, err := table.ParseSegmentSK(table.GetString(parts[0], table.AttrSK))
	if err != nil {
		return history.Event{}, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	}
	if n := table.GetNumber(parts[0], table.AttrParts); n != int64(len(parts)) {
		return history.Event{}, table.NewTornError("item %s has %d parts, but %d exist",
			table.GetString(parts[0], table.AttrSK), n, len(parts))
	}

	doc, err := Document(sequence, parts)
	if err != nil {
		return history.Event{}, err
	}
	last, found, err := history.DecodeLast(doc)
	switch {
	case err == nil && !found:
		return last, errCorrupt(sequence, parts, errNoEvents)
	case err != nil:
		return last, errCorrupt(sequence, parts, err)
	case last.Kind.Terminal():
		return last, nil
	}
	return history.Event{}, fmt.Errorf("not ended: %w", provider.ErrNotFound)
}

// StartedBefore reports whether an execution started before a time. It is false if the start is unknown.
func StartedBefore(executionID string, t time.Time) bool {
	at := provider.ExecutionStartedAt(executionID)
	return !at.IsZero() && at.Before(t)
}
