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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// strongTries is the number of tries of a torn read. A strongly consistent query can see half of a transaction for a
// moment. After these tries the items are missing.
const strongTries = 3

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
	in, err := p.readInstance(ctx, it.InstanceID, c)
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
		it, err := p.getInstance(ctx, instanceID, provider.Strong)
		if err != nil {
			return nil, err
		}
		current := getString(it, attrExecution)
		switch {
		case current != executionID:
			executionID, try = current, 1
		case isDeleting(it) || c != provider.Strong:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		case try == strongTries:
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
func (p *Provider) readExecutionWith(ctx context.Context, instanceID, executionID string, c provider.Consistency, notes *[]item) (*provider.Orchestration, error) {
	for try := 1; ; try++ {
		l := load{p: p, instanceID: instanceID, executionID: executionID, consistency: c, rolled: p.rolled, notes: notes}
		if try == strongTries {
			l.rolled = 0 // the segments themselves take precedence
		}
		l.holding.ExecutionID = executionID
		err := l.read(ctx)
		_, torn := errors.AsType[*tornError](err)
		switch {
		case torn && c == provider.Strong && try == strongTries:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w: %w", instanceID, executionID, provider.ErrCorrupt, err)
		case torn:
			c = provider.Strong
			continue
		case err != nil:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
		case len(l.segments) == 0 || instanceID != getString(l.start, attrInstance):
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		if notes == nil { // a reconciliation has only the permissions of its caller
			p.rollUp(ctx, instanceID, executionID, l.worthRolling())
		}
		last := l.segments[len(l.segments)-1]
		return &provider.Orchestration{
			InstanceID: instanceID, Verified: c == provider.Strong, Segments: l.segments, Previous: getString(l.start, attrPrevious),
			Head: provider.Head{ExecutionID: executionID, Segment: last.Sequence, Watermark: last.Watermark},
		}, nil
	}
}

// withoutNotes moves items that are no segments out of a page.
func withoutNotes(page []item, notes *[]item) []item {
	if notes == nil {
		return page
	}
	return slices.DeleteFunc(page, func(it item) bool {
		isNote := strings.HasPrefix(getString(it, attrSK), skCursors)
		if isNote {
			*notes = append(*notes, item{attrPK: it[attrPK], attrSK: it[attrSK], attrTakenBy: str(getString(it, attrTakenBy))})
		}
		return isNote
	})
}

// header returns a segment's first item without its events.
func header(it item) item {
	h := maps.Clone(it)
	delete(h, attrEvents)
	delete(h, attrZstd)
	return h
}

// queryAll reads all pages of a query.
func (p *Provider) queryAll(ctx context.Context, instanceID string, in *dynamodb.QueryInput) (items []item, err error) {
	for page, err := range p.query(ctx, instanceID, in) {
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
	}
	return items, nil
}

func segmentsQuery(table, executionID string, c provider.Consistency) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(c == provider.Strong),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: item{valuePK: str(executionPK(executionID)), valueSK: str(skSegments)},
	}
}

// query yields the pages of a query, of up to 1 MB each.
func (p *Provider) query(ctx context.Context, instanceID string, in *dynamodb.QueryInput) iter.Seq2[[]item, error] {
	return func(yield func([]item, error) bool) {
		for {
			items, err := p.queryPage(ctx, instanceID, in)
			if !yield(items, err) || err != nil || in.ExclusiveStartKey == nil {
				return
			}
		}
	}
}

// queryPage reads one page, and sets in's start key to that of the next page, or to nil at the end.
func (p *Provider) queryPage(ctx context.Context, instanceID string, in *dynamodb.QueryInput) ([]item, error) {
	out, err := p.queryOnce(ctx, instanceID, in)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// queryOnce is queryPage, and returns the whole response.
func (p *Provider) queryOnce(ctx context.Context, instanceID string, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	var out *dynamodb.QueryOutput
	err := call(ctx, "DynamoDB.Query", instanceID, func() (err error) {
		out, err = p.table.Query(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
		in.ExclusiveStartKey = nil
	}
	return out, nil
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
		it, err := p.getInstance(ctx, instanceID, provider.Strong)
		current := getString(it, attrExecution)
		for id := current; err == nil && id != ""; {
			var x provider.Execution
			at := id
			if x, id, err = p.readStart(ctx, instanceID, at); errors.Is(err, errStub) && at != current {
				return // erased in the meantime
			}
			if err == nil && !yield(x, nil) || at == getString(it, attrOldest) {
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
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :parts")
	in.ExpressionAttributeValues[":sk"] = str(segmentSK(0, 0))
	in.ExpressionAttributeValues[":parts"] = str(segmentSK(0, 999))
	items, err := p.queryAll(ctx, instanceID, in)
	if err != nil {
		return x, "", err
	}
	segments, err := decodeSegments(unlessDeleted(items))
	if err == nil && len(segments) == 0 {
		err = provider.ErrNotFound
	}
	if len(items) > 0 && isStub(items[0]) {
		err = fmt.Errorf("%w: %w", err, errStub)
	}
	if err != nil {
		return x, "", fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
	}
	start := &segments[0].Events[0]
	return provider.Execution{ExecutionID: executionID, Number: start.Number, StartedAt: start.Time}, getString(items[0], attrPrevious), nil
}

// ReadTerminalEvent reads only the last segment, with a backward query.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	for try := 1; ; try++ {
		parts, err := p.lastParts(ctx, executionID)
		if err != nil {
			return history.Event{}, err
		}
		end, err := lastEvent(parts)
		if _, torn := errors.AsType[*tornError](err); torn && try < strongTries {
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
func (p *Provider) lastParts(ctx context.Context, executionID string) ([]item, error) {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(1)

	var parts []item
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return nil, err
		}
		parts = append(parts, page...)
		if n := len(parts); n > 0 && isStub(parts[n-1]) {
			return nil, nil // deleted
		} else if n > 0 && getNumber(parts[n-1], attrParts) > 0 {
			break // the first part, so the segment is complete
		}
	}
	slices.Reverse(parts)
	return parts, nil
}

func lastEvent(parts []item) (history.Event, error) {
	if len(parts) == 0 {
		return history.Event{}, provider.ErrNotFound
	}
	sequence, _, err := parseSegmentSK(getString(parts[0], attrSK))
	if err != nil {
		return history.Event{}, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	}
	if n := getNumber(parts[0], attrParts); n != int64(len(parts)) {
		return history.Event{}, &tornError{fmt.Sprintf("item %s has %d parts, but %d exist",
			getString(parts[0], attrSK), n, len(parts))}
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
