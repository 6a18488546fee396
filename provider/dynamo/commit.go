package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

const notExists = "attribute_not_exists(" + attrPK + ")"

// AckOrchestrationItem commits a turn by creating its segment, and then sends the outputs of the segment.
func (p *Provider) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	if !t.LockedUntil.IsZero() && !p.now().Before(t.LockedUntil) {
		return nil, fmt.Errorf("dynamo: instance %q: segment %d was not committed: %w", t.InstanceID, t.Head.Segment+1,
			provider.ErrLockLost)
	}
	s := t.Segment()
	if err := p.commit(ctx, t, s); err != nil {
		return nil, err
	}
	refused, err := p.dispatch(ctx, t, s)
	if err != nil {
		return refused, fmt.Errorf("%w: %w", provider.ErrDispatchIncomplete, err)
	}
	return refused, nil
}

// commit creates h#<sequence> on condition that it does not exist. This condition is the lock of the whole engine: if
// several processes ran a turn on this head, one of them commits its segment (I1).
func (p *Provider) commit(ctx context.Context, t *provider.Turn, s provider.Segment) error {
	nonce := rand.Text()
	items, err := encodeSegment(t.Head.ExecutionID, nonce, s)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", t.InstanceID, err)
	}
	cancels, err := encodeDecided(t)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: cancel record: %w", t.InstanceID, err)
	}

	// one transaction, so that a cancel decision is visible exactly when it is in the history
	items = append(items, cancels...)
	if t.Next == nil {
		err = p.putSegment(ctx, t.InstanceID, items)
	} else {
		err = p.putBoth(ctx, t, items)
	}
	if err == nil {
		return nil
	}

	old, refused := refusedItem(err, 0)
	switch {
	case !refused && !conditionFailed(err):
		return err
	case refused && getString(old, attrNonce) == nonce:
		return nil // the segment is this turn's own: the response to an earlier try was lost (R7)
	default:
		return fmt.Errorf("dynamo: instance %q: segment %d of execution %s: %w", t.InstanceID, s.Sequence, t.Head.ExecutionID, provider.ErrConflict)
	}
}

// putSegment writes a segment's items: with PutItem if there is one, otherwise in a transaction.
func (p *Provider) putSegment(ctx context.Context, instanceID string, items []item) error {
	if len(items) == 1 {
		in := &dynamodb.PutItemInput{
			TableName: &p.hub.Table, Item: items[0], ConditionExpression: aws.String(notExists),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		return call(ctx, "DynamoDB.PutItem", instanceID, func() error {
			_, err := p.table.PutItem(ctx, in)
			return err
		})
	}
	writes := p.puts(items)
	create(writes[0].Put)
	return p.transact(ctx, instanceID, writes)
}

// putBoth writes an execution's last segment, the first segment of the next execution, and the instance's current
// execution in one transaction, so that an instance always has exactly one current execution (R3).
func (p *Provider) putBoth(ctx context.Context, t *provider.Turn, items []item) error {
	next, err := encodeStart(t.InstanceID, t.Next.ExecutionID, t.Head.ExecutionID, t.Next.Segment(t.Watermark))
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: next execution: %w", t.InstanceID, err)
	}
	if len(items)+len(next) > turnLimit/partLimit+1 { // 4 MB per transaction
		return fmt.Errorf("dynamo: instance %q: %w: the state for the next execution is too large", t.InstanceID,
			provider.ErrTooLarge)
	}

	writes := p.puts(append(items, next...))
	create(writes[0].Put)

	_, after := t.Summaries()
	u := projection{instanceID: t.InstanceID}
	u.set(&after)
	u.status = provider.StatusRunning
	writes = append(writes, types.TransactWriteItem{Update: p.beginSuccessor(t, u)})

	return p.transact(ctx, t.InstanceID, writes)
}

func (p *Provider) puts(items []item) []types.TransactWriteItem {
	writes := make([]types.TransactWriteItem, len(items))
	for n, it := range items {
		writes[n].Put = &types.Put{TableName: &p.hub.Table, Item: it}
	}
	return writes
}

// create adds the condition that the item does not exist to a put of a transaction.
func create(put *types.Put) {
	put.ConditionExpression = aws.String(notExists)
	put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
}

// transact writes a transaction.
//
// The SDK adds a ClientRequestToken to an input without one, so every try of this call has the same token. For ten
// minutes DynamoDB responds to a repetition of a completed transaction with success
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html). Each try is encoded
// again, and DynamoDB does not document whether another order of a map's entries makes it another request. A request
// that is rejected as a different one is repeated without the token. The conditions then report the existing items, as
// for a try by another process.
func (p *Provider) transact(ctx context.Context, instanceID string, writes []types.TransactWriteItem) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: writes}
	return call(ctx, "DynamoDB.TransactWriteItems", instanceID, func() error {
		_, err := p.table.TransactWriteItems(ctx, in)
		if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](err); ok {
			in.ClientRequestToken = nil
			_, err = p.table.TransactWriteItems(ctx, in)
		}
		return err
	})
}
