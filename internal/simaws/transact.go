package simaws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// TransactWriteItems writes up to 100 items, all or none. For ten minutes, a repeated ClientRequestToken returns
// success without writing. Calls without a token are not remembered; the SDK's client generates a token for each call.
func (t *Table) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, t.cloud, opTransactWriteItems, in, func() (*dynamodb.TransactWriteItemsOutput, error) {
		writes, mask, err := t.prepareAll(in.TransactItems)
		if err != nil {
			return nil, err
		}

		t.lock(mask)
		defer t.unlock(mask)

		used, err := t.transact(in, writes)
		if err != nil {
			return nil, err
		}

		out := &dynamodb.TransactWriteItemsOutput{}
		if report := t.report(in.ReturnConsumedCapacity, used); report != nil {
			out.ConsumedCapacity = []ddbtypes.ConsumedCapacity{*report}
		}

		return out, nil
	})
}

// transact runs a transaction under the locks of all its items.
func (t *Table) transact(in *dynamodb.TransactWriteItemsInput, writes []write) (consumed, error) {
	if in.ClientRequestToken != nil {
		known, err := t.tokens.known(*in.ClientRequestToken, in.TransactItems, t.cloud.nanos())
		if err != nil {
			return consumed{}, err
		}

		if known {
			return t.replayed(writes), nil
		}
	}

	used, err := t.evaluateAll(writes)
	if err != nil {
		return used, err
	}

	for i := range writes {
		t.apply(&writes[i])
	}

	if in.ClientRequestToken != nil {
		t.tokens.add(*in.ClientRequestToken, in.TransactItems, t.cloud.nanos())
	}

	return used, nil
}

// prepareAll checks the items and returns the mask of their shards.
func (t *Table) prepareAll(items []ddbtypes.TransactWriteItem) ([]write, uint64, error) {
	if len(items) == 0 || len(items) > maxTransactionItems {
		return nil, 0, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "+
			"Member must have length between 1 and %d", maxTransactionItems)
	}

	writes := make([]write, len(items))
	mask, size := uint64(0), 0

	for i := range items {
		w, err := t.prepareTransact(&items[i])
		if err != nil {
			return nil, 0, err
		}

		for j := range i {
			if writes[j].key == w.key {
				return nil, 0, invalid("Transaction request cannot include multiple operations on one item")
			}
		}

		writes[i] = w
		mask |= w.mask
		size += w.size
	}

	if size > maxTransactionSize {
		return nil, 0, invalid("Aggregate size of the items in the transaction cannot exceed 4 MB")
	}

	return writes, mask, nil
}

func (t *Table) prepareTransact(it *ddbtypes.TransactWriteItem) (write, error) {
	given := 0

	for _, is := range []bool{it.Put != nil, it.Update != nil, it.Delete != nil, it.ConditionCheck != nil} {
		if is {
			given++
		}
	}

	if given != 1 {
		return write{}, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}

	switch {
	case it.Put != nil:
		p := it.Put

		return t.prepare(actionPut, p.Item, request{
			p.TableName, p.ConditionExpression, nil, p.ExpressionAttributeNames, p.ExpressionAttributeValues,
			p.ReturnValuesOnConditionCheckFailure,
		})
	case it.Update != nil:
		u := it.Update
		if u.UpdateExpression == nil {
			return write{}, invalid("The expression can not be empty; UpdateExpression")
		}

		return t.prepare(actionUpdate, u.Key, request{
			u.TableName, u.ConditionExpression, u.UpdateExpression, u.ExpressionAttributeNames,
			u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure,
		})
	case it.Delete != nil:
		d := it.Delete

		return t.prepare(actionDelete, d.Key, request{
			d.TableName, d.ConditionExpression, nil, d.ExpressionAttributeNames, d.ExpressionAttributeValues,
			d.ReturnValuesOnConditionCheckFailure,
		})
	default:
		c := it.ConditionCheck
		if c.ConditionExpression == nil {
			return write{}, invalid("The expression can not be empty; ConditionExpression")
		}

		return t.prepare(actionCheck, c.Key, request{
			c.TableName, c.ConditionExpression, nil, c.ExpressionAttributeNames, c.ExpressionAttributeValues,
			c.ReturnValuesOnConditionCheckFailure,
		})
	}
}

// evaluateAll decides a transaction, and bills it either way.
func (t *Table) evaluateAll(writes []write) (consumed, error) {
	var reasons []ddbtypes.CancellationReason

	used := consumed{indexes: make([]int64, len(t.indexes))}
	size := 0

	for i := range writes {
		w := &writes[i]

		ok, err := t.evaluate(w)
		if !ok || err != nil {
			if reasons == nil {
				reasons = noReasons(len(writes))
			}

			reasons[i] = w.reason(err)
		}

		if ok && err == nil {
			used.add(w.consumed(2)) //nolint:mnd // a transaction prepares and commits
		} else {
			used.table += 2 * writeUnits(max(w.previous, w.size)) //nolint:mnd // also when it is cancelled
		}

		size += w.size
	}

	t.cloud.usage.writes.Add(used.total())

	switch {
	case reasons != nil:
		return consumed{}, cancelled(reasons)
	case size > maxTransactionSize:
		return consumed{}, invalid("Aggregate size of the items in the transaction cannot exceed 4 MB")
	}

	return used, nil
}

func (c *consumed) add(other consumed) {
	c.table += other.table
	for i, units := range other.indexes {
		c.indexes[i] += units
	}
}

func noReasons(n int) []ddbtypes.CancellationReason {
	reasons := make([]ddbtypes.CancellationReason, n)
	for i := range reasons {
		reasons[i].Code = aws.String(reasonNone)
	}

	return reasons
}

// reason is why this item cancels its transaction: a condition that does not hold, or an error of its update.
func (w *write) reason(err error) ddbtypes.CancellationReason {
	if err != nil {
		if api, ok := errors.AsType[smithy.APIError](err); ok {
			return ddbtypes.CancellationReason{
				Code: aws.String(reasonValidation), Message: aws.String(api.ErrorMessage()),
			}
		}
	}

	r := ddbtypes.CancellationReason{
		Code: aws.String(reasonConditionFailed), Message: aws.String("The conditional request failed"),
	}
	if w.returnOld {
		r.Item = clone(w.scope.item)
	}

	return r
}

// replayed is what the repetition of a transaction costs: reading its items.
func (t *Table) replayed(writes []write) consumed {
	c := consumed{}

	for i := range writes {
		size := 0
		if r := t.row(writes[i].key, writes[i].mask); r != nil {
			size = r.size
		}

		c.table += halfReads(size, true) // a transactional read is two units of 4 KB
	}

	t.cloud.usage.halfReads.Add(2 * c.table) //nolint:mnd // units into halves

	return c
}
