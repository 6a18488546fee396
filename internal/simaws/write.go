package simaws

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// write is the write of an item in a PutItem, UpdateItem, DeleteItem or transaction.
type write struct {
	table     *Table
	action    action
	key       key
	mask      uint64
	scope     scope
	condition *condition
	update    *update
	returnOld bool // in the error of a failed condition

	// Results of evaluate.
	row      *row
	next     item
	size     int
	previous int
}

type action int

const (
	actionPut action = iota
	actionUpdate
	actionDelete
	actionCheck
)

// request contains the parameters that all writes have.
type request struct {
	table     *string
	condition *string
	update    *string
	names     map[string]string
	values    item
	onFailure ddbtypes.ReturnValuesOnConditionCheckFailure
}

// prepare checks a write without reading the table. it is the whole item of a put, or the key of another write.
func (t *Table) prepare(a action, it item, r request) (write, error) {
	w := write{action: a, scope: scope{names: r.names, values: r.values}}
	w.returnOld = r.onFailure == ddbtypes.ReturnValuesOnConditionCheckFailureAllOld

	var err error
	if t, err = t.named(r.table); err != nil {
		return w, err
	}

	w.table = t
	if w.condition, err = t.expressions.condition(r.condition); err != nil {
		return w, err
	}

	if w.update, err = t.expressions.update(r.update); err != nil {
		return w, err
	}

	if err := w.scope.check(w.update.placeholders(), w.condition.placeholders()); err != nil {
		return w, err
	}

	if w.update != nil {
		if err := w.update.check(&w.scope, t); err != nil {
			return w, err
		}
	}

	err = w.prepareItem(it)

	return w, err
}

func (w *write) prepareItem(it item) error {
	var err error
	if w.action == actionPut {
		err = w.preparePut(it)
	} else {
		w.key, err = w.table.exactKey(it)
		if w.action == actionUpdate {
			w.next = it
		}
	}

	w.mask = w.table.shardOf(w.key.partition)

	return err
}

func (w *write) preparePut(it item) error {
	var err error
	if w.size, err = sizeOf(it); err != nil {
		return err
	}

	if w.key, err = w.table.keyOf(it); err != nil {
		return err
	}

	if w.size > maxItemSize {
		return invalid("Item size has exceeded the maximum allowed size")
	}

	for _, ix := range w.table.indexes {
		if err := ix.check(it); err != nil {
			return err
		}
	}

	w.next, err = isolate(it)

	return err
}

// evaluate finds the row, evaluates the condition and computes the next item. Shards must be locked.
func (w *write) evaluate() (ok bool, err error) {
	if w.row = w.table.row(w.key, w.mask); w.row != nil {
		w.scope.item = w.row.item
		w.previous = w.row.size
	}

	if w.condition != nil {
		if ok, err = w.condition.root.eval(&w.scope); !ok || err != nil {
			return false, err
		}
	}

	switch w.action {
	case actionUpdate:
		return true, w.evaluateUpdate()
	case actionDelete:
		w.next = nil
	case actionCheck:
		w.next, w.size = w.scope.item, w.previous
	case actionPut:
	}

	return true, nil
}

func (w *write) evaluateUpdate() error {
	s := w.scope
	if s.item == nil {
		s.item = w.next // only the key
	}

	if w.update == nil {
		w.next = maps.Clone(s.item)
	} else {
		next, err := w.update.apply(&s)
		if err != nil {
			return err
		}

		w.next = next
	}

	var err error
	if w.size, err = sizeOf(w.next); err != nil {
		return err
	}

	if w.size > maxItemSize {
		return invalid("Item size to update has exceeded the maximum allowed size")
	}

	for _, ix := range w.table.indexes {
		if err := ix.check(w.next); err != nil {
			return err
		}
	}

	return nil
}

// apply stores the item that evaluate computed. Shards must be locked.
func (w *write) apply() {
	if w.action == actionCheck || (w.next == nil && w.row == nil) {
		return
	}

	old := w.scope.item
	w.table.past.note(w.key, old)

	partitions := w.table.shardByMask(w.mask).partitions

	switch {
	case w.next == nil:
		p := partitions[w.key.partition]
		if p.remove(w.key.sort, ""); len(p.chunks) == 0 {
			delete(partitions, w.key.partition)
		}
	case w.row != nil:
		w.row.item, w.row.size = w.next, w.size
	default:
		p := partitions[w.key.partition]
		if p == nil {
			p = &rows{}
			partitions[w.key.partition] = p
		}

		p.insert(&row{sort: w.key.sort, item: w.next, size: w.size})
	}

	for _, ix := range w.table.indexes {
		ix.write(w.key, old, w.next, w.size)
	}
}

// single runs a write outside a transaction. The old item is nil if there was none.
func (w *write) single() (old item, used consumed, err error) {
	w.table.lock(w.mask)
	defer w.table.unlock(w.mask)

	ok, err := w.evaluate()
	if err != nil {
		return nil, consumed{}, err
	}

	old = w.scope.item

	if !ok {
		w.table.cloud.usage.writes.Add(writeUnits(max(w.previous, w.size)))

		if !w.returnOld {
			old = nil
		}

		return nil, consumed{}, conditionFailed(clone(old))
	}

	used = w.consumed(1)
	w.table.cloud.usage.writes.Add(used.total())
	w.apply()

	return old, used, nil
}

// PutItem stores a whole item. ReturnValues may be NONE or ALL_OLD.
//
//nolint:dupl // as DeleteItem, in types of the SDK that share nothing
func (t *Table) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	return do(ctx, t.cloud, opPutItem, in, func() (*dynamodb.PutItemOutput, error) {
		if in.Expected != nil || in.ConditionalOperator != "" {
			return nil, unsupported("Expected of PutItem")
		}

		w, err := t.prepare(actionPut, in.Item, request{
			in.TableName, in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
			in.ReturnValuesOnConditionCheckFailure,
		})
		if err != nil {
			return nil, err
		}

		old, used, err := w.single()
		if err != nil {
			return nil, err
		}

		attributes, err := returnOld(in.ReturnValues, old)
		out := &dynamodb.PutItemOutput{Attributes: attributes}
		out.ConsumedCapacity = t.report(in.ReturnConsumedCapacity, used)

		return out, err
	})
}

// DeleteItem removes an item. ReturnValues may be NONE or ALL_OLD.
//
//nolint:dupl // as PutItem, in types of the SDK that share nothing
func (t *Table) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	return do(ctx, t.cloud, opDeleteItem, in, func() (*dynamodb.DeleteItemOutput, error) {
		if in.Expected != nil || in.ConditionalOperator != "" {
			return nil, unsupported("Expected of DeleteItem")
		}

		w, err := t.prepare(actionDelete, in.Key, request{
			in.TableName, in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
			in.ReturnValuesOnConditionCheckFailure,
		})
		if err != nil {
			return nil, err
		}

		old, used, err := w.single()
		if err != nil {
			return nil, err
		}

		attributes, err := returnOld(in.ReturnValues, old)
		out := &dynamodb.DeleteItemOutput{Attributes: attributes}
		out.ConsumedCapacity = t.report(in.ReturnConsumedCapacity, used)

		return out, err
	})
}

// UpdateItem changes attributes of an item. It creates the item if it does not exist.
func (t *Table) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return do(ctx, t.cloud, opUpdateItem, in, func() (*dynamodb.UpdateItemOutput, error) {
		if in.Expected != nil || in.ConditionalOperator != "" || in.AttributeUpdates != nil {
			return nil, unsupported("Expected and AttributeUpdates of UpdateItem")
		}

		w, err := t.prepare(actionUpdate, in.Key, request{
			in.TableName, in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure,
		})
		if err != nil {
			return nil, err
		}

		old, used, err := w.single()
		if err != nil {
			return nil, err
		}

		out := &dynamodb.UpdateItemOutput{Attributes: w.returned(in.ReturnValues, old)}
		out.ConsumedCapacity = t.report(in.ReturnConsumedCapacity, used)

		return out, nil
	})
}

// returned returns the attributes in the response of an update.
func (w *write) returned(values ddbtypes.ReturnValue, old item) item {
	switch values {
	case ddbtypes.ReturnValueAllOld:
		return clone(old)
	case ddbtypes.ReturnValueAllNew:
		return clone(w.next)
	case ddbtypes.ReturnValueUpdatedOld:
		return w.touched(old)
	case ddbtypes.ReturnValueUpdatedNew:
		return w.touched(w.next)
	case ddbtypes.ReturnValueNone:
	}

	return nil
}

// touched returns the attributes that the update names.
func (w *write) touched(it item) item {
	if w.update == nil {
		return nil
	}

	var out item

	for _, name := range w.update.paths(&w.scope) {
		if v := it[name]; v != nil {
			if out == nil {
				out = item{}
			}

			out[name] = v
		}
	}

	return out
}

func returnOld(values ddbtypes.ReturnValue, old item) (item, error) {
	switch values {
	case "", ddbtypes.ReturnValueNone:
		return nil, nil //nolint:nilnil // no attributes were requested
	case ddbtypes.ReturnValueAllOld:
		return clone(old), nil
	case ddbtypes.ReturnValueAllNew, ddbtypes.ReturnValueUpdatedNew, ddbtypes.ReturnValueUpdatedOld:
	}

	return nil, invalid("Return values set to invalid value")
}

// clone returns a copy of an item for a response.
func clone(it item) item { return maps.Clone(it) }
