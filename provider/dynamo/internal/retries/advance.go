package retries

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// advance makes the next attempts current, for failures of current attempts, in one transaction that also checks the
// head. A failure whose write is rejected was reported before, or does not concern the current attempt. The other
// failures are tried again.
func (c *request) advance(ctx context.Context, batch []int) error {
	for len(batch) > 0 {
		writes := make([]types.TransactWriteItem, 1, len(batch)+1)
		writes[0].ConditionCheck = c.headCondition()
		for _, i := range batch {
			u, err := c.advanceUpdate(&c.Failed[i])
			if err != nil {
				return err
			}
			writes = append(writes, types.TransactWriteItem{Update: u})
		}

		err := c.retries.Table.Transact(ctx, c.InstanceID, writes)
		if err == nil {
			for _, i := range batch {
				c.addNext(i, *c.Failed[i].RetryAt, false, c.Failed[i].Ended)
			}
			c.verified = true
			return nil
		}

		rest, known := c.withoutRefused(batch, err)
		if !known {
			return c.conflict(err)
		}
		batch = rest
	}
	return nil
}

// withoutRefused removes the failures from a batch that made its transaction fail, and sets their verdicts. known is
// false if there are none.
func (c *request) withoutRefused(batch []int, failed error) (rest []int, known bool) {
	if _, moved := table.FailedItem(failed, 0); moved || !table.ConditionFailed(failed) {
		return nil, false
	}
	for n, i := range batch {
		old, refused := table.FailedItem(failed, n+1)
		if !refused {
			rest = append(rest, i)
			continue
		}
		known = true
		o := &c.Failed[i]
		if table.GetString(old, activityrecords.AttrRun) != o.Run ||
			int(table.GetNumber(old, activityrecords.AttrAttempt)) != o.Attempt+1 {
			continue // it is not the current attempt
		}
		if r, err := activityrecords.Decode(old); err == nil {
			c.addNext(i, r.At, true, r.Ended)
		} else {
			c.addNext(i, *o.RetryAt, true, o.Ended)
		}
	}
	return rest, known
}

// headCondition returns the condition that the caller's head is the current head. It fails for a caller with a stale
// head and for a deleted instance.
func (c *request) headCondition() *types.ConditionCheck {
	return &types.ConditionCheck{
		Key:                 table.ExecutionKey(c.Head.ExecutionID, table.SegmentSK(c.Head.Segment+1, 0)),
		ConditionExpression: aws.String(table.NotExists),
		// The item is not returned, which distinguishes a failure of this condition from others.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureNone,
	}
}

// advanceUpdate returns the update that makes the attempt after a failure current. A later attempt may have no item,
// because in an earlier release the workers sent the next attempt.
func (c *request) advanceUpdate(o *provider.ActivityOutcome) (*types.Update, error) {
	why, err := activityrecords.EncodeFailure(o.Error)
	if err != nil {
		return nil, err
	}
	u := &types.Update{
		Key: table.AttemptKey(c.Head.ExecutionID, o.ActivityID),
		UpdateExpression: aws.String(
			"SET #attempt = :next, #run = :run, #at = :due, #failedAt = :now, #error = :error",
		),
		ConditionExpression: aws.String("attribute_not_exists(#attempt) OR #attempt = :failed"),
		ExpressionAttributeNames: table.Names(
			activityrecords.AttrAttempt, activityrecords.AttrRun, activityrecords.AttrAt, activityrecords.AttrFailedAt,
			activityrecords.AttrError,
		),
		ExpressionAttributeValues: table.Item{
			":failed": table.Num(int64(o.Attempt)),
			":next":   table.Num(int64(o.Attempt) + 1),
			":run":    table.Str(o.Run),
			":error":  table.Str(why),
			":due":    table.Str(table.FormatTime(*o.RetryAt)),
			":now":    table.Str(table.FormatTime(c.retries.now())),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if o.Ended != "" { // abandoned code can run forever, and a later attempt does not change that
		u.UpdateExpression = aws.String(*u.UpdateExpression + ", #ended = :ended")
		u.ExpressionAttributeNames["#ended"] = activityrecords.AttrEnded
		u.ExpressionAttributeValues[":ended"] = table.Str(o.Ended)
	}
	return u, nil
}

// conflict returns the error of a transaction: ErrConflict if a condition failed.
func (c *request) conflict(err error) error {
	if !table.ConditionFailed(err) {
		return err
	}
	return fmt.Errorf(
		"dynamo: instance %q: retries at segment %d of execution %s: %w", c.InstanceID, c.Head.Segment,
		c.Head.ExecutionID, provider.ErrConflict,
	)
}
