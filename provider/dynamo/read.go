package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// strongTries: a strongly consistent query can still see half of a transaction, for moments; after so many the items are missing.
const strongTries = 3

// ReadOrchestration reads the execution that the item's messages name, which is the instance's current one nearly always, and
// saves a look at the instance.
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

// readCurrent reads an execution, or, where it has continued as another or never came to be, the instance's current one.
func (p *Provider) readCurrent(ctx context.Context, instanceID, executionID string, c provider.Consistency) (*provider.Orchestration, error) {
	for {
		o, err := p.readExecution(ctx, instanceID, executionID, c)
		lost := errors.Is(err, provider.ErrNotFound)
		if !lost && (err != nil || o.Last().Kind != history.OrchestrationContinuedAsNew) {
			return o, err
		}
		in, err := p.readInstance(ctx, instanceID, provider.Strong)
		if err != nil {
			return nil, err
		}
		if in.ExecutionID == executionID {
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		executionID = in.ExecutionID
	}
}

// readExecution reads a history. An eventual read that finds it torn becomes a strong one.
func (p *Provider) readExecution(ctx context.Context, instanceID, executionID string, c provider.Consistency) (*provider.Orchestration, error) {
	for try := 1; ; try++ {
		segments, start, err := p.loadSegments(ctx, instanceID, executionID, c)
		_, torn := errors.AsType[*tornError](err)
		switch {
		case torn && c == provider.Strong && try == strongTries:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w: %w", instanceID, executionID, provider.ErrCorrupt, err)
		case torn:
			c = provider.Strong
			continue
		case err != nil:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
		case len(segments) == 0 || instanceID != getString(start, attrInstance):
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		last := segments[len(segments)-1]
		return &provider.Orchestration{
			InstanceID: instanceID, Verified: c == provider.Strong, Segments: segments, Previous: getString(start, attrPrevious),
			Head: provider.Head{ExecutionID: executionID, Segment: last.Sequence, Watermark: last.Watermark},
		}, nil
	}
}

// loadSegments reads the segments of an execution, a page after the other, and the item that it begins with. Of what is large it holds
// but so much (provider.Loading). There are none where the execution was deleted.
func (p *Provider) loadSegments(ctx context.Context, instanceID, executionID string, c provider.Consistency) (segments []provider.Segment, start item, err error) {
	in := segmentsQuery(p.hub.Table, executionID, c)
	loading := provider.Loading{ExecutionID: executionID}
	cut := cutter{}
	for page, err := range p.query(ctx, instanceID, in) {
		if err != nil {
			return nil, nil, err
		}
		cut.add(page, in.ExclusiveStartKey == nil)
		if start == nil && len(cut.items) > 0 {
			start = header(cut.items[0])
		}
		err = cut.decode(nil, func(s provider.Segment) bool {
			loading.Add(&s)
			segments = append(segments, s)
			return true
		})
		if errors.Is(err, errStub) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return segments, start, nil
}

// header is a segment's first item without its events.
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
		TableName: &table, ConsistentRead: aws.Bool(bool(c)),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: item{":pk": str(executionPK(executionID)), ":sk": str(skSegments)},
	}
}

// query pages through a query: a page ends at 1 MB.
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

// queryPage reads one page, and makes in ask for the next: from no key, when there is none.
func (p *Provider) queryPage(ctx context.Context, instanceID string, in *dynamodb.QueryInput) ([]item, error) {
	out, err := p.queryOnce(ctx, instanceID, in)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// queryOnce is queryPage with all that the answer says.
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

// ReadHistory reads the events of an execution, strongly consistent, page by page: it holds no more than a page and a segment. Documents are
// read in the place of references as they are come to.
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
				err := p.show(ctx, instanceID, &e)
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// show puts documents in the place of references, in an event of its own: what was read must not grow by what was shown of it.
func (p *Provider) show(ctx context.Context, instanceID string, e *history.Event) error {
	e.CarriedEvents, e.Inputs = slices.Clone(e.CarriedEvents), slices.Clone(e.Inputs)
	return provider.Show(ctx, p, instanceID, e)
}

// ListExecutions goes back from the current execution, each naming the one that it continues, to the oldest that is not erased.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		it, err := p.getInstance(ctx, instanceID, provider.Strong)
		current := getString(it, attrExecution)
		for id := current; err == nil && id != ""; {
			var x provider.Execution
			at := id
			if x, id, err = p.readStart(ctx, instanceID, at); errors.Is(err, errStub) && at != current {
				return // erased meanwhile
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

// readStart reads an execution's first segment, and which execution came before.
func (p *Provider) readStart(ctx context.Context, instanceID, executionID string) (x provider.Execution, previous string, err error) {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :parts")
	in.ExpressionAttributeValues[":sk"], in.ExpressionAttributeValues[":parts"] = str(segmentSK(0, 0)), str(segmentSK(0, 999))
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

// ReadEnd reads the last segment alone, backwards from the end.
func (p *Provider) ReadEnd(ctx context.Context, executionID string) (history.Event, error) {
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

// lastParts reads the items of the last segment, in key order.
func (p *Provider) lastParts(ctx context.Context, executionID string) ([]item, error) {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
	var parts []item
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return nil, err
		}
		parts = append(parts, page...)
		if n := len(parts); n > 0 && isStub(parts[n-1]) {
			return nil, nil // deleted
		} else if n > 0 && getNumber(parts[n-1], attrParts) > 0 {
			break // the first part: the segment is whole
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
		return history.Event{}, &tornError{fmt.Sprintf("item %s says %d parts, of which %d are there", getString(parts[0], attrSK), n, len(parts))}
	}
	s, err := decodeSegment(sequence, parts)
	if err != nil {
		return history.Event{}, err
	}
	if n := len(s.Events); n > 0 && s.Events[n-1].Kind.Terminal() {
		return s.Events[n-1], nil
	}
	return history.Event{}, fmt.Errorf("has not ended: %w", provider.ErrNotFound)
}
