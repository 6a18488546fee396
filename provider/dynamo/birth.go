package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// birth is an instance to create, with the beginning of its history.
type birth struct {
	provider.Instance

	input    history.Payload
	past     *provider.RestartSource // copied events of a restart, or nil
	brings   []history.Event         // inputs for the first turn
	doubtful time.Time               // PossibleDuplicateSentAt of the start message
	consumed provider.Position       // the start message
	trace    history.TraceParent
	stored   bool // payloads of its first execution are stored
	look     bool // read the ID before the write
}

// isKnown reports whether other data already refers to the execution: stored payloads, which a sweep checks, or the
// timer of a delayed start, which is sent first and names the execution.
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

// bringsAt returns the inputs of the start with their times.
func (b *birth) bringsAt() []history.Event {
	for i := range b.brings {
		b.brings[i].Time = b.CreatedAt
	}
	return b.brings
}

// mayFollow reports whether the existing item is a tombstone that the start may replace.
func mayFollow(old table.Item, b *birth) bool {
	return instances.IsTombstone(old) && !instances.MustNotStart(old, b.StartID) && !mayHaveTaken(old, b)
}

// create writes both items and returns the first segment. If the same start created the instance before, it returns
// that instance and no segment. If another instance has the ID, it returns that instance and ErrAlreadyExists.
func (p *Provider) create(ctx context.Context, b birth) (provider.Instance, *provider.Segment, error) {
	in := b.Instance
	it, err := instances.Encode(in)
	if err != nil {
		return provider.Instance{}, nil, err
	}
	n := newborn{p: p, in: &in, first: b.segment(), put: &types.Put{Item: it}}
	table.RequireAbsent(n.put)

	write := n.segmentFirst
	if b.isKnown() {
		write = n.bothAtOnce
	}
	if b.look {
		write = n.unlessTaken(write)
	}
	for err = write(ctx); err != nil; err = n.bothAtOnce(ctx) {
		old, refused := table.FailedItem(err, 0)
		switch {
		case !refused:
			return provider.Instance{}, nil, err
		case mayFollow(old, &b):
			instances.ReplaceTombstone(n.put, old)
			n.first.Watermark = later(b.consumed, instances.WatermarkOf(old))
		default:
			n.takeBack(ctx, old)
			in, err = b.refusal(old)
			return in, nil, err
		}
	}
	return in, &n.first, nil
}

// refusal returns the result of a write that failed because of the existing item old. If the same start created the
// instance before, it returns that instance. Otherwise it returns an error, and the existing instance if there is one.
func (b *birth) refusal(old table.Item) (there provider.Instance, err error) {
	own := table.GetString(old, table.AttrStartID) == b.StartID
	if own && !instances.IsDeleting(old) {
		return instances.Decode(old)
	}
	why := provider.ErrAlreadyExists
	if own || instances.IsDeletedStart(old, b.StartID) || mayHaveTaken(old, b) {
		why = provider.ErrPurged
	}
	there = instances.HolderOf(old)
	return there, fmt.Errorf("dynamo: %w", provider.NewAlreadyExistsError(b.InstanceID, &there, why))
}

// newborn is an instance that is being written. Only its own methods change it.
type newborn struct {
	p     *Provider
	in    *provider.Instance
	put   *types.Put // of the instance
	first provider.Segment
	// nonce is the nonce of the first segment if the segment was written before the instance.
	nonce string
}

// segmentFirst writes the first segment and then the instance, so that an instance always has its history. Until then
// the segment belongs to no instance. Both writes together cost half as much as a transaction. segmentFirst uses a
// transaction if the segment has several items, or if another try of this start has the same execution ID: a try for
// the same message, or in the same millisecond.
func (n *newborn) segmentFirst(ctx context.Context) error {
	parts, err := segments.EncodeStart(n.in.InstanceID, n.in.ExecutionID, "", n.first)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", n.in.InstanceID, err)
	}
	if len(parts) > 1 {
		return n.bothAtOnce(ctx)
	}

	nonce := table.GetString(parts[0], table.AttrNonce)
	err = n.p.segments.PutSegment(ctx, n.in.InstanceID, parts)
	old, taken := table.FailedItem(err, 0)
	switch {
	case taken && table.GetString(old, table.AttrNonce) != nonce: // otherwise the response to an earlier try was lost
		return n.bothAtOnce(ctx)
	case err != nil && !taken:
		return err
	}
	n.nonce = nonce

	return n.p.table.Put(ctx, n.in.InstanceID, &dynamodb.PutItemInput{
		TableName: n.put.TableName, Item: n.put.Item, ConditionExpression: n.put.ConditionExpression,
		ReturnValuesOnConditionCheckFailure: n.put.ReturnValuesOnConditionCheckFailure,
	})
}

// unlessTaken reads the ID before it calls write. If the ID is in use, the result is the same as that of a failed
// write.
func (n *newborn) unlessTaken(write func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		old, err := n.p.instances.GetRaw(ctx, n.in.InstanceID, provider.Strong)
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
	return n.p.table.Transact(ctx, n.in.InstanceID, writes)
}

// deleteIfCancelled replaces the first segment of an instance that was not created, because old has its ID, by a stub, which
// expires. It is best effort: if it fails, an unused item remains.
func (n *newborn) takeBack(ctx context.Context, old table.Item) {
	// The response to the write of the instance may have been lost. The instance then exists, and may have continued as
	// new.
	mine := table.GetString(old, table.AttrExecution) == n.in.ExecutionID || table.GetString(old, table.AttrOldest) == n.in.ExecutionID
	if n.nonce == "" || mine {
		return
	}
	_ = n.p.table.Put(ctx, n.in.InstanceID, &dynamodb.PutItemInput{
		Item: segments.Stub(n.in.ExecutionID, 0, n.p.now()), ConditionExpression: aws.String("#nonce = :nonce"),
		ExpressionAttributeNames: map[string]string{"#nonce": table.AttrNonce}, ExpressionAttributeValues: table.Item{":nonce": table.Str(n.nonce)},
	})
}

// birthWrites returns the writes that create an instance: first its item, and then its first segment.
func (p *Provider) birthWrites(put *types.Put, in *provider.Instance, first provider.Segment) ([]types.TransactWriteItem, error) {
	parts, err := segments.EncodeStart(in.InstanceID, in.ExecutionID, "", first)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	return append([]types.TransactWriteItem{{Put: put}}, table.Puts(parts)...), nil
}

// later returns the watermark at a start: that of the last incarnation of the ID, or the position of the start message
// (R3).
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
