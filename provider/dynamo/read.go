package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ReadOrchestration reads the execution that the item's messages name. It does not read the instance first, because
// that execution is nearly always the current one.
func (p *Provider) ReadOrchestration(ctx context.Context, it *provider.OrchestrationItem, c provider.Consistency) (*provider.Orchestration, error) {
	named := ""
	for i := range it.Messages {
		if id := it.Messages[i].ExecutionID; id != "" {
			named = id
		}
	}
	if named != "" {
		return p.readCurrent(ctx, it.InstanceID, named, c)
	}
	in, err := p.instances.ReadWith(ctx, it.InstanceID, c)
	if err != nil {
		return nil, err
	}
	return p.readCurrent(ctx, it.InstanceID, in.ExecutionID, c)
}

// readCurrent reads an execution. If it has continued as new or was never created, readCurrent reads the instance's
// current execution. A strongly consistent read returns ErrCorrupt if the current execution does not exist or has
// continued as another one.
func (p *Provider) readCurrent(ctx context.Context, instanceID, executionID string, c provider.Consistency) (*provider.Orchestration, error) {
	for try := 1; ; {
		o, err := p.readExecution(ctx, instanceID, executionID, c)
		lost := errors.Is(err, provider.ErrNotFound)
		if !lost && (err != nil || o.Last().Kind != history.OrchestrationContinuedAsNew) {
			return o, err
		}
		it, err := p.instances.Get(ctx, instanceID, provider.Strong)
		if err != nil {
			return nil, err
		}
		current := table.GetString(it, table.AttrExecution)
		switch {
		case current != executionID:
			executionID, try = current, 1
		case instances.IsDeleting(it) || c != provider.Strong:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		case try == table.MaxReadTries:
			return nil, notWhole(instanceID, executionID, lost)
		default:
			try++
		}
	}
}

// notWhole returns the error for an instance whose item and history are not from the same moment, as in a table that
// was copied item by item: it contains only a part of the transaction that started the instance or continued it as new.
func notWhole(instanceID, executionID string, lost bool) error {
	why := "has continued as new, but the instance does not refer to the next execution"
	if lost {
		why = "is the current one, but has no items in the table"
	}
	return fmt.Errorf("dynamo: instance %q: execution %s: %w: the execution %s", instanceID, executionID,
		provider.ErrCorrupt, why)
}

// readExecution reads a history. If an eventually consistent read is torn, it reads again with strong consistency.
func (p *Provider) readExecution(ctx context.Context, instanceID, executionID string, c provider.Consistency) (*provider.Orchestration, error) {
	return p.readExecutionWith(ctx, instanceID, executionID, c, nil)
}

// readExecutionWith is readExecution, and also reads the keys of the execution's dispatch records and cursors in the
// same query, with the reconciliations that wrote them (R9).
func (p *Provider) readExecutionWith(ctx context.Context, instanceID, executionID string, c provider.Consistency, notes *[]table.Item) (*provider.Orchestration, error) {
	for try := 1; ; try++ {
		l := load{p: p, instanceID: instanceID, executionID: executionID, consistency: c, rolled: p.rolled, notes: notes}
		if try == table.MaxReadTries {
			l.rolled = 0 // the segments themselves take precedence
		}
		l.holding.ExecutionID = executionID
		err := l.read(ctx)
		_, torn := errors.AsType[*table.TornError](err)
		switch {
		case torn && c == provider.Strong && try == table.MaxReadTries:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w: %w", instanceID, executionID, provider.ErrCorrupt, err)
		case torn:
			c = provider.Strong
			continue
		case err != nil:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
		case len(l.segments) == 0 || instanceID != table.GetString(l.start, table.AttrInstance):
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		if notes == nil { // a reconciliation has only the permissions of its caller
			p.rollUp(ctx, instanceID, executionID, l.worthRolling())
		}
		last := l.segments[len(l.segments)-1]
		return &provider.Orchestration{
			InstanceID: instanceID, Verified: c == provider.Strong, Segments: l.segments, Previous: table.GetString(l.start, table.AttrPrevious),
			Head: provider.Head{ExecutionID: executionID, Segment: last.Sequence, Watermark: last.Watermark},
		}, nil
	}
}

// withoutNotes moves items that are no segments out of a page.
func withoutNotes(page []table.Item, notes *[]table.Item) []table.Item {
	if notes == nil {
		return page
	}
	return slices.DeleteFunc(page, func(it table.Item) bool {
		isNote := strings.HasPrefix(table.GetString(it, table.AttrSK), table.SKCursors)
		if isNote {
			*notes = append(*notes, table.Item{table.AttrPK: it[table.AttrPK], table.AttrSK: it[table.AttrSK], attrTakenBy: table.Str(table.GetString(it, attrTakenBy))})
		}
		return isNote
	})
}

// header returns a segment's first item without its events.
func header(it table.Item) table.Item {
	h := maps.Clone(it)
	delete(h, table.AttrEvents)
	delete(h, table.AttrZstd)
	return h
}

// ReadHistory reads the events of an execution page by page, with strong consistency. It holds at most one page and one
// segment in memory. It reads a document when it reaches the reference to it.
func (p *Provider) ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for s, err := range p.streamSegments(ctx, instanceID, executionID) {
			if err != nil {
				yield(history.Event{}, err)
				return
			}
			for i := range s.Events {
				if s.Events[i].ID <= after {
					continue
				}
				e := s.Events[i]
				err := p.showDocuments(ctx, instanceID, &e)
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// showDocuments replaces references by documents in a copy of the event, because the memory of the cached history must
// not grow.
func (p *Provider) showDocuments(ctx context.Context, instanceID string, e *history.Event) error {
	e.CarriedEvents = slices.Clone(e.CarriedEvents)
	e.Inputs = slices.Clone(e.Inputs)
	return provider.ResolveReferences(ctx, p, instanceID, e)
}

// ListExecutions starts with the current execution. Each execution names the previous one, and the list ends at the
// oldest execution that is not erased.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		it, err := p.instances.Get(ctx, instanceID, provider.Strong)
		current := table.GetString(it, table.AttrExecution)
		for id := current; err == nil && id != ""; {
			var x provider.Execution
			at := id
			if x, id, err = p.readStart(ctx, instanceID, at); errors.Is(err, table.ErrDeleted) && at != current {
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
func (p *Provider) readStart(ctx context.Context, instanceID, executionID string) (x provider.Execution, previous string, err error) {
	in := table.SegmentsQuery(executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :parts")
	in.ExpressionAttributeValues[":sk"] = table.Str(table.SegmentSK(0, 0))
	in.ExpressionAttributeValues[":parts"] = table.Str(table.SegmentSK(0, 999))
	items, err := p.table.QueryAll(ctx, instanceID, in)
	if err != nil {
		return x, "", err
	}
	segments, err := decodeSegments(table.UnlessDeleted(items))
	if err == nil && len(segments) == 0 {
		err = provider.ErrNotFound
	}
	if len(items) > 0 && table.IsStub(items[0]) {
		err = fmt.Errorf("%w: %w", err, table.ErrDeleted)
	}
	if err != nil {
		return x, "", fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
	}
	start := &segments[0].Events[0]
	return provider.Execution{ExecutionID: executionID, Number: start.Number, StartedAt: start.Time}, table.GetString(items[0], table.AttrPrevious), nil
}

// ReadTerminalEvent reads only the last segment, with a backward query.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	for try := 1; ; try++ {
		parts, err := p.lastParts(ctx, executionID)
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
func (p *Provider) lastParts(ctx context.Context, executionID string) ([]table.Item, error) {
	in := table.SegmentsQuery(executionID, provider.Strong)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(1)

	var parts []table.Item
	for page, err := range p.table.Query(ctx, "", in) {
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

	doc, err := segmentDocument(sequence, parts)
	if err != nil {
		return history.Event{}, err
	}
	last, found, err := history.DecodeLast(doc)
	switch {
	case err == nil && !found:
		return last, corruptSegment(sequence, parts, errNoEvents)
	case err != nil:
		return last, corruptSegment(sequence, parts, err)
	case last.Kind.Terminal():
		return last, nil
	}
	return history.Event{}, fmt.Errorf("not ended: %w", provider.ErrNotFound)
}
