package segments

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Commit creates h#<sequence> on condition that it does not exist. This condition is the lock of the whole engine. If
// several processes ran a turn on this head, only one of them commits its segment (I1). Package turns of dispatch
// selects the events, and handles ErrConflict and ErrTooLarge.
func (st *Store) Commit(ctx context.Context, t *provider.Turn, s provider.Segment) error {
	nonce := rand.Text()
	items, err := Encode(t.Head.ExecutionID, nonce, s)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", t.InstanceID, err)
	}
	cancels, err := cancels.EncodeTurn(t)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: cancel record: %w", t.InstanceID, err)
	}

	// one transaction, so that a cancel decision is visible exactly when it is in the history
	items = append(items, cancels...)
	if t.Next == nil {
		err = st.PutSegment(ctx, t.InstanceID, items)
	} else {
		err = st.commitWithNext(ctx, t, items)
	}
	if err == nil {
		return nil
	}

	old, refused := table.FailedItem(err, 0)
	switch {
	case !refused && !table.ConditionFailed(err):
		return err
	case refused && table.GetString(old, table.AttrNonce) == nonce:
		return nil // this turn's own segment, if the response to an earlier try was lost (R7)
	default:
		return fmt.Errorf(
			"dynamo: instance %q: segment %d of execution %s: %w", t.InstanceID, s.Sequence, t.Head.ExecutionID,
			provider.ErrConflict,
		)
	}
}

// PutSegment writes a segment's items: with PutItem if there is one, otherwise in a transaction.
func (st *Store) PutSegment(ctx context.Context, instanceID string, items []table.Item) error {
	if len(items) == 1 {
		in := &dynamodb.PutItemInput{
			Item: items[0], ConditionExpression: aws.String(table.NotExists),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		return st.table.Put(ctx, instanceID, in)
	}
	writes := table.Puts(items)
	table.RequireAbsent(writes[0].Put)
	return st.table.Transact(ctx, instanceID, writes)
}

// maxItems is the maximum number of items that commitWithNext writes for two segments and a cancel record, besides the
// instance. It is the number of parts of the largest segment, so that they have about 3 MB together. DynamoDB limits a
// transaction to 4 MB and 100 items. A commit of one segment needs no such check, because the limits of a segment and a
// cancel record together are less.
const maxItems = table.SegmentLimit/table.PartLimit + 1

// commitWithNext writes in one transaction: an execution's last segment with its cancel record, the first segment of
// the next execution, and the instance's current execution. An instance therefore always has exactly one current
// execution (R3).
func (st *Store) commitWithNext(ctx context.Context, t *provider.Turn, items []table.Item) error {
	next, err := EncodeStart(t.InstanceID, t.Next.ExecutionID, t.Head.ExecutionID, t.Next.Segment(t.Watermark))
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: next execution: %w", t.InstanceID, err)
	}
	if len(items)+len(next) > maxItems {
		return fmt.Errorf("dynamo: instance %q: %w: the end of the execution and the state for the next one are "+
			"together too large", t.InstanceID, provider.ErrTooLarge)
	}

	writes := table.Puts(append(items, next...))
	table.RequireAbsent(writes[0].Put)

	_, after := t.Summaries()
	u := instances.Projection{InstanceID: t.InstanceID}
	u.Set(&after)
	u.Status = provider.StatusRunning
	writes = append(writes, types.TransactWriteItem{Update: st.instances.NextExecutionUpdate(t, u)})

	return st.table.Transact(ctx, t.InstanceID, writes)
}
