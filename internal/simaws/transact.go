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
// success without writing. Calls without a token are not stored. The SDK's client generates a token for each call.
func (t *Table) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, t.cloud, opTransactWriteItems, in, func() (*dynamodb.TransactWriteItemsOutput, error) {
		ws, mask, err := t.prepareAll(in.TransactItems)
		if err != nil {
			return nil, err
		}

		t.lock(mask)
		defer t.unlock(mask)

		used, err := t.transact(in, ws)
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

// transact runs a transaction while all its items are locked.
func (t *Table) transact(in *dynamodb.TransactWriteItemsInput, ws writes) (consumed, error) {
	if in.ClientRequestToken != nil {
		known, err := t.tokens.known(*in.ClientRequestToken, in.TransactItems, t.cloud.nanos())
		if err != nil {
			return consumed{}, err
		}

		if known {
			return ws.replay(t.cloud), nil
		}
	}

	used, err := ws.evaluate(t.cloud, len(t.indexes))
	if err != nil {
		return used, err
	}

	for i := range ws {
		ws[i].apply()
	}

	if in.ClientRequestToken != nil {
		t.tokens.add(*in.ClientRequestToken, in.TransactItems, t.cloud.nanos())
	}

	return used, nil
}

// prepareAll checks the items and returns the mask of their shards.
func (t *Table) prepareAll(items []ddbtypes.TransactWriteItem) (writes, uint64, error) {
	if len(items) == 0 || len(items) > maxTransactionItems {
		return nil, 0, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "+
			"Member must have length between 1 and %d", maxTransactionItems)
	}

	ws := make(writes, len(items))
	mask, size := uint64(0), 0

	for i := range items {
		a, it, r, err := requestOf(&items[i])
		if err != nil {
			return nil, 0, err
		}

		w, err := t.prepare(a, it, r)
		if err != nil {
			return nil, 0, err
		}

		for j := range i {
			if ws[j].key == w.key {
				return nil, 0, invalid("Transaction request cannot include multiple operations on one item")
			}
		}

		ws[i] = w
		mask |= w.mask
		size += w.size
	}

	if size > maxTransactionSize {
		return nil, 0, invalid("Aggregate size of the items in the transaction cannot exceed 4 MB")
	}

	return ws, mask, nil
}

// requestOf returns the write of an item of a transaction.
func requestOf(it *ddbtypes.TransactWriteItem) (action, item, request, error) {
	given := 0

	for _, is := range []bool{it.Put != nil, it.Update != nil, it.Delete != nil, it.ConditionCheck != nil} {
		if is {
			given++
		}
	}

	if given != 1 {
		return 0, nil, request{}, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}

	switch {
	case it.Put != nil:
		p := it.Put

		return actionPut, p.Item, request{
			p.TableName, p.ConditionExpression, nil, p.ExpressionAttributeNames, p.ExpressionAttributeValues,
			p.ReturnValuesOnConditionCheckFailure,
		}, nil
	case it.Update != nil:
		u := it.Update
		if u.UpdateExpression == nil {
			return 0, nil, request{}, invalid("The expression can not be empty; UpdateExpression")
		}

		return actionUpdate, u.Key, request{
			u.TableName, u.ConditionExpression, u.UpdateExpression, u.ExpressionAttributeNames,
			u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure,
		}, nil
	case it.Delete != nil:
		d := it.Delete

		return actionDelete, d.Key, request{
			d.TableName, d.ConditionExpression, nil, d.ExpressionAttributeNames, d.ExpressionAttributeValues,
			d.ReturnValuesOnConditionCheckFailure,
		}, nil
	default:
		c := it.ConditionCheck
		if c.ConditionExpression == nil {
			return 0, nil, request{}, invalid("The expression can not be empty; ConditionExpression")
		}

		return actionCheck, c.Key, request{
			c.TableName, c.ConditionExpression, nil, c.ExpressionAttributeNames, c.ExpressionAttributeValues,
			c.ReturnValuesOnConditionCheckFailure,
		}, nil
	}
}

// writes are the writes of a transaction.
type writes []write

// evaluate checks the conditions of the transaction. It adds the cost even if the transaction is cancelled.
func (ws writes) evaluate(c *Cloud, indexes int) (consumed, error) {
	var reasons []ddbtypes.CancellationReason

	used := consumed{indexes: make([]int64, indexes)}
	size := 0

	for i := range ws {
		w := &ws[i]

		ok, err := w.evaluate()
		if !ok || err != nil {
			if reasons == nil {
				reasons = noReasons(len(ws))
			}

			reasons[i] = w.reason(err)
		}

		if ok && err == nil {
			used.add(w.consumed(2)) //nolint:mnd // a transaction prepares and commits
		} else {
			used.table += 2 * writeUnits(max(w.previous, w.size)) //nolint:mnd // even if it is cancelled
		}

		size += w.size
	}

	c.usage.writes.Add(used.total())

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

// reason returns the reason why this item cancels its transaction: a failed condition, or an error of its update.
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

// replay returns the cost of a repetition of the transaction: a read of its items.
func (ws writes) replay(c *Cloud) consumed {
	used := consumed{}

	for i := range ws {
		size := 0
		if r := ws[i].table.row(ws[i].key, ws[i].mask); r != nil {
			size = r.size
		}

		used.table += halfReads(size, true) // a transactional read costs two units per 4 KB
	}

	c.usage.halfReads.Add(2 * used.table) //nolint:mnd // units to half units

	return used
}
