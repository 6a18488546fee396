package dynamo

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// birth is an instance that is to be created, and what its history begins with.
type birth struct {
	provider.Instance

	input    history.Payload
	past     *provider.RestartSource // that it takes over; nil: none
	brings   []history.Event         // for the first turn
	doubtful time.Time               // of its message, as in provider.InboxMessage
	consumed provider.Position       // the message that asks for it
	trace    history.TraceParent
	stored   bool // payloads of its first execution are
	look     bool // before it is written
}

// isKnown reports whether anything goes by the first segment alone: the sweep of stored payloads, and the timer of a delayed start, which is sent
// before and names the execution.
func (b *birth) isKnown() bool { return b.stored || b.StartAt.After(b.CreatedAt) }

// segment returns the first segment of the history.
func (b *birth) segment() provider.Segment {
	if b.past != nil {
		return provider.Segment{Watermark: b.consumed, Events: b.past.InitialEvents(&b.Instance, b.trace)}
	}
	return provider.Segment{Watermark: b.consumed, Events: []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: b.CreatedAt, Name: b.Name, Version: b.Version, Input: b.input,
		StartID: b.StartID, Number: b.ExecutionNumber, Tags: b.Tags, Parent: b.Parent, StartAt: timeOrNil(b.StartAt), RequestedBy: b.RequestedBy,
		Inputs: b.bringsAt(), TraceParent: b.trace,
	}}}
}

// bringsAt dates what the start brings.
func (b *birth) bringsAt() []history.Event {
	for i := range b.brings {
		b.brings[i].Time = b.CreatedAt
	}
	return b.brings
}

// mayFollow reports whether what is there is a tombstone that a start may follow.
func mayFollow(old item, b *birth) bool {
	return isTombstone(old) && !mayNeverStart(old, b.StartID) && !mayHaveTaken(old, b)
}

// create writes both items, and returns the first segment. If the same start created the instance before, it returns
// that instance and no segment; where another has the id, that instance, and ErrAlreadyExists.
func (p *Provider) create(ctx context.Context, b birth) (provider.Instance, *provider.Segment, error) {
	in := b.Instance
	it, err := instanceItem(in)
	if err != nil {
		return provider.Instance{}, nil, err
	}
	n := newborn{p: p, in: &in, first: b.segment(), put: &types.Put{TableName: &p.hub.Table, Item: it}}
	create(n.put)

	write := n.segmentFirst
	if b.isKnown() {
		write = n.bothAtOnce
	}
	if b.look {
		write = n.unlessTaken(write)
	}
	for err = write(ctx); err != nil; err = n.bothAtOnce(ctx) {
		old, refused := refusedItem(err, 0)
		switch {
		case !refused:
			return provider.Instance{}, nil, err
		case mayFollow(old, &b):
			succeedTombstone(n.put, old)
			n.first.Watermark = later(b.consumed, watermarkOf(old))
		default:
			n.takeBack(ctx, old)
			in, err = b.refusal(old)
			return in, nil, err
		}
	}
	return in, &n.first, nil
}

// refusal returns what has the id of an instance that could not be created: itself, where the same start created it before; else it is an error, with
// that instance, as far as there is one.
func (b *birth) refusal(old item) (there provider.Instance, err error) {
	own := getString(old, attrStartID) == b.StartID
	if own && !isDeleting(old) {
		return decodeInstance(old)
	}
	why := provider.ErrAlreadyExists
	if own || wasALife(old, b.StartID) || mayHaveTaken(old, b) {
		why = provider.ErrPurged
	}
	there = holderOf(old)
	return there, fmt.Errorf("dynamo: %w", provider.NewAlreadyExistsError(b.InstanceID, &there, why))
}

// holderOf returns the instance that has an id; it is zero for a tombstone, and for an item that cannot be read, which
// whoever reads the instance is told.
func holderOf(it item) provider.Instance {
	if isTombstone(it) {
		return provider.Instance{}
	}
	in, err := decodeInstance(it)
	if err != nil {
		return provider.Instance{}
	}
	return in
}

// newborn is an instance on its way into the table. Only its own methods change it.
type newborn struct {
	p     *Provider
	in    *provider.Instance
	put   *types.Put // of the instance
	first provider.Segment
	// nonce is that of the first segment, where it was written before the instance.
	nonce string
}

// segmentFirst writes the first segment, and then the instance: of an instance that is there, its history is. The segment is nobody's until
// then. Both take half of what a transaction does. It is one where the segment takes several items, or where another try of this start has the
// execution's id: of the same message, or in the same millisecond.
func (n *newborn) segmentFirst(ctx context.Context) error {
	parts, err := encodeStart(n.in.InstanceID, n.in.ExecutionID, "", n.first)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", n.in.InstanceID, err)
	}
	if len(parts) > 1 {
		return n.bothAtOnce(ctx)
	}

	nonce := getString(parts[0], attrNonce)
	err = n.p.putSegment(ctx, n.in.InstanceID, parts)
	old, taken := refusedItem(err, 0)
	switch {
	case taken && getString(old, attrNonce) != nonce: // else the response to an earlier try was lost
		return n.bothAtOnce(ctx)
	case err != nil && !taken:
		return err
	}
	n.nonce = nonce

	return call(ctx, "DynamoDB.PutItem", n.in.InstanceID, func() error {
		_, err := n.p.table.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: n.put.TableName, Item: n.put.Item, ConditionExpression: n.put.ConditionExpression,
			ReturnValuesOnConditionCheckFailure: n.put.ReturnValuesOnConditionCheckFailure,
		})
		return err
	})
}

// unlessTaken looks at the id before it writes: what it finds there is as the refusal of the write would have been.
func (n *newborn) unlessTaken(write func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		old, err := n.p.rawInstance(ctx, n.in.InstanceID, provider.Strong)
		switch {
		case err != nil:
			return err
		case len(old) > 0:
			return &types.ConditionalCheckFailedException{Item: old}
		default:
			return write(ctx)
		}
	}
}

// bothAtOnce writes the instance and its first segment in one transaction.
func (n *newborn) bothAtOnce(ctx context.Context) error {
	writes, err := n.p.birthWrites(n.put, n.in, n.first)
	if err != nil {
		return err
	}
	return n.p.transact(ctx, n.in.InstanceID, writes)
}

// takeBack replaces the first segment of an instance that is not to be, since there is an old one, by a stub, which is deleted in time. Nothing
// depends on it: where it fails, an item is left that nothing refers to.
func (n *newborn) takeBack(ctx context.Context, old item) {
	// The response to the write of the instance may have been lost: it is there then, and may have continued as new by now.
	mine := getString(old, attrExecution) == n.in.ExecutionID || getString(old, attrOldest) == n.in.ExecutionID
	if n.nonce == "" || mine {
		return
	}
	_ = call(ctx, "DynamoDB.PutItem", n.in.InstanceID, func() error {
		_, err := n.p.table.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &n.p.hub.Table, Item: n.p.stub(n.in.ExecutionID, 0), ConditionExpression: aws.String("#nonce = :nonce"),
			ExpressionAttributeNames: map[string]string{"#nonce": attrNonce}, ExpressionAttributeValues: item{":nonce": str(n.nonce)},
		})
		return err
	})
}

// birthWrites returns the writes that create an instance: of its item, which comes first, and of its first segment.
func (p *Provider) birthWrites(put *types.Put, in *provider.Instance, first provider.Segment) ([]types.TransactWriteItem, error) {
	parts, err := encodeStart(in.InstanceID, in.ExecutionID, "", first)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	return append([]types.TransactWriteItem{{Put: put}}, p.puts(parts)...), nil
}

// later returns how far the inbox is consumed at a start: by the last life of the id, or by the message that starts the
// next (R3).
func later(own, before provider.Position) provider.Position {
	if own == (provider.Position{}) || before.Covers(own) {
		return before
	}
	return own
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// encodeStart makes the items of an execution's first segment, with the instance it belongs to and the execution that
// it continues.
func encodeStart(instanceID, executionID, previous string, s provider.Segment) ([]item, error) {
	parts, err := encodeSegment(executionID, rand.Text(), s)
	if err != nil {
		return nil, err
	}
	parts[0][attrInstance] = str(instanceID)
	if previous != "" {
		parts[0][attrPrevious] = str(previous)
	}
	if oldest := provider.OldestReferencedExecution(&s.Events[0]); oldest != "" {
		parts[0][attrRefs] = str(oldest)
	}
	return parts, nil
}
