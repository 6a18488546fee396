package starts

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

// newInstance is an instance to create, with the beginning of its history.
type newInstance struct {
	provider.Instance

	input          history.Payload
	restart        *provider.RestartSource // copied events of a restart, or nil
	inputs         []history.Event         // inputs for the first turn
	mayBeCopySince time.Time               // PossibleDuplicateSentAt of the start message
	position       provider.Position       // the start message
	trace          history.TraceParent
	stored         bool // payloads of its first execution are stored
	readFirst      bool // read the ID before the write
}

// isReferenced reports whether other data already refers to the execution. This is true for stored payloads, which a
// sweep checks, and for the timer of a delayed start, which is sent first and names the execution.
func (b *newInstance) isReferenced() bool { return b.stored || b.StartAt.After(b.CreatedAt) }

// segment returns the first segment of the history.
func (b *newInstance) segment() provider.Segment {
	if b.restart != nil {
		return provider.Segment{Watermark: b.position, Events: b.restart.InitialEvents(&b.Instance, b.trace)}
	}
	return provider.Segment{Watermark: b.position, Events: []history.Event{{
		ID:          1,
		Kind:        history.OrchestrationStarted,
		Time:        b.CreatedAt,
		Name:        b.Name,
		Version:     b.Version,
		Input:       b.input,
		StartID:     b.StartID,
		Number:      b.ExecutionNumber,
		Tags:        b.Tags,
		Parent:      b.Parent,
		StartAt:     timeOrNil(b.StartAt),
		RequestedBy: b.RequestedBy,
		Inputs:      b.timedInputs(),
		TraceParent: b.trace,
	}}}
}

// timedInputs returns the inputs of the start with their times.
func (b *newInstance) timedInputs() []history.Event {
	for i := range b.inputs {
		b.inputs[i].Time = b.CreatedAt
	}
	return b.inputs
}

// mayReplace reports whether the existing item is a tombstone that the start may replace.
func mayReplace(old table.Item, b *newInstance) bool {
	return instances.IsTombstone(old) && !instances.MustNotStart(old, b.StartID) && !mayHaveConsumed(old, b)
}

// create writes both items and returns the first segment. If the same start created the instance before, it returns
// that instance and no segment. If another instance has the ID, it returns that instance and ErrAlreadyExists.
func (ss *Starts) create(ctx context.Context, b newInstance) (provider.Instance, *provider.Segment, error) {
	in := b.Instance
	it, err := instances.Encode(in)
	if err != nil {
		return provider.Instance{}, nil, err
	}
	n := creation{starts: ss, in: &in, first: b.segment(), put: &types.Put{Item: it}}
	table.RequireAbsent(n.put)

	write := n.writeSegmentFirst
	if b.isReferenced() {
		write = n.writeTogether
	}
	if b.readFirst {
		write = n.unlessInUse(write)
	}
	for err = write(ctx); err != nil; err = n.writeTogether(ctx) {
		old, refused := table.FailedItem(err, 0)
		switch {
		case !refused:
			return provider.Instance{}, nil, err
		case mayReplace(old, &b):
			instances.ReplaceTombstone(n.put, old)
			n.first.Watermark = laterPosition(b.position, instances.WatermarkOf(old))
		default:
			n.releaseSegment(ctx, old)
			in, err = b.rejection(old)
			return in, nil, err
		}
	}
	return in, &n.first, nil
}

// rejection returns the result of a write that failed because of the existing item old. If the same start created the
// instance before, it returns that instance. Otherwise it returns an error, and the existing instance if there is one.
func (b *newInstance) rejection(old table.Item) (there provider.Instance, err error) {
	own := table.GetString(old, table.AttrStartID) == b.StartID
	if own && !instances.IsDeleting(old) {
		return instances.Decode(old)
	}
	why := provider.ErrAlreadyExists
	if own || instances.IsDeletedStart(old, b.StartID) || mayHaveConsumed(old, b) {
		why = provider.ErrPurged
	}
	there = instances.HolderOf(old)
	return there, fmt.Errorf("dynamo: %w", provider.NewAlreadyExistsError(b.InstanceID, &there, why))
}

// creation is an instance that is being written. Only its own methods change it.
type creation struct {
	starts *Starts
	in     *provider.Instance
	put    *types.Put // of the instance
	first  provider.Segment
	// nonce is the nonce of the first segment if the segment was written before the instance.
	nonce string
}

// writeSegmentFirst writes the first segment and then the instance, so that an instance always has its history. Before
// the second write, the segment belongs to no instance. Both writes together cost half as much as a transaction.
// writeSegmentFirst uses a transaction if the segment has several items, or if another try of this start may have the
// same execution ID. Tries for the same message or in the same millisecond may have the same execution ID.
func (n *creation) writeSegmentFirst(ctx context.Context) error {
	parts, err := segments.EncodeStart(n.in.InstanceID, n.in.ExecutionID, "", n.first)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", n.in.InstanceID, err)
	}
	if len(parts) > 1 {
		return n.writeTogether(ctx)
	}

	nonce := table.GetString(parts[0], table.AttrNonce)
	err = n.starts.Segments.PutSegment(ctx, n.in.InstanceID, parts)
	old, taken := table.FailedItem(err, 0)
	switch {
	case taken && table.GetString(old, table.AttrNonce) != nonce: // otherwise the response to an earlier try was lost
		return n.writeTogether(ctx)
	case err != nil && !taken:
		return err
	}
	n.nonce = nonce

	return n.starts.Table.Put(ctx, n.in.InstanceID, &dynamodb.PutItemInput{
		Item: n.put.Item, ConditionExpression: n.put.ConditionExpression,
		ReturnValuesOnConditionCheckFailure: n.put.ReturnValuesOnConditionCheckFailure,
	})
}

// unlessInUse reads the ID before it calls write. If the ID is in use, the result is the same as that of a failed
// write.
func (n *creation) unlessInUse(write func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		old, err := n.starts.Instances.GetRaw(ctx, n.in.InstanceID, provider.Strong)
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

// writeTogether writes the instance and its first segment in one transaction.
func (n *creation) writeTogether(ctx context.Context) error {
	writes, err := n.starts.creationWrites(n.put, n.in, n.first)
	if err != nil {
		return err
	}
	return n.starts.Table.Transact(ctx, n.in.InstanceID, writes)
}

// releaseSegment replaces the first segment of an instance that was not created, because old has its ID, by a stub that
// expires. It is best effort. If it fails, an unused item remains.
func (n *creation) releaseSegment(ctx context.Context, old table.Item) {
	// The response to the write of the instance may have been lost. The instance then exists, and may have continued as
	// new.
	mine := table.GetString(old, table.AttrExecution) == n.in.ExecutionID ||
		table.GetString(old, table.AttrOldest) == n.in.ExecutionID
	if n.nonce == "" || mine {
		return
	}
	_ = n.starts.Table.Put(ctx, n.in.InstanceID, &dynamodb.PutItemInput{
		Item:                      segments.Stub(n.in.ExecutionID, 0, n.starts.now()),
		ConditionExpression:       aws.String("#nonce = :nonce"),
		ExpressionAttributeNames:  table.Names(table.AttrNonce),
		ExpressionAttributeValues: table.Item{":nonce": table.Str(n.nonce)},
	})
}

// creationWrites returns the writes that create an instance: its item, followed by its first segment.
func (ss *Starts) creationWrites(
	put *types.Put, in *provider.Instance, first provider.Segment,
) ([]types.TransactWriteItem, error) {
	parts, err := segments.EncodeStart(in.InstanceID, in.ExecutionID, "", first)
	if err != nil {
		return nil, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	return append([]types.TransactWriteItem{{Put: put}}, table.Puts(parts)...), nil
}

// laterPosition returns the watermark at a start: the later one of the last incarnation's watermark and the position of
// the start message (R3).
func laterPosition(own, before provider.Position) provider.Position {
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

// mayHaveConsumed reports whether a deleted incarnation of the ID may have consumed the message of a start. This is
// possible if the message contains an update and is redelivered. It is also possible if the message may be a copy and
// the incarnation was deleted after the send.
func mayHaveConsumed(old table.Item, b *newInstance) bool {
	if !instances.IsTombstone(old) {
		return false
	}
	again := len(b.inputs) > 0 && instances.WatermarkOf(old).Covers(b.position)
	return again ||
		!b.mayBeCopySince.IsZero() && len(instances.DeletedStarts(old)) > 0 &&
			b.mayBeCopySince.Before(instances.PurgedAt(old))
}
