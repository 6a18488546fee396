package differential_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]ddbtypes.AttributeValue

func str(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

func num(n string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: n} }

// tableCall is a call to a table. Its function returns the comparable parts of the response as text.
type tableCall struct {
	name string
	run  func(ctx context.Context, t tableAPI, pk string) string
}

// operation is a write of one item, either alone or in a transaction.
type operation struct {
	action    string // put, update, delete or check
	sk        string
	fields    item // fields of a put
	update    string
	condition string
	values    item
}

func (o operation) String() string {
	return fmt.Sprintf("%s %s %s %q if %q %s", o.action, o.sk, show(o.fields), o.update, o.condition, show(o.values))
}

// optional returns nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}

	return &s
}

func (o operation) key(pk string) item { return item{"pk": str(pk), "sk": str(o.sk)} }

func (o operation) whole(pk string) item {
	it := o.key(pk)
	maps.Copy(it, o.fields)

	return it
}

const (
	allOld   = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
	capacity = ddbtypes.ReturnConsumedCapacityTotal
)

// alone returns the operation as a separate call.
func (o operation) alone() tableCall {
	return tableCall{o.String(), func(ctx context.Context, t tableAPI, pk string) string {
		name := aws.String(realTable())

		switch o.action {
		case "put":
			out, err := t.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: name, Item: o.whole(pk), ConditionExpression: optional(o.condition),
				ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: allOld,
				ReturnValues: ddbtypes.ReturnValueAllOld, ReturnConsumedCapacity: capacity,
			})
			if err != nil {
				return failure(err)
			}

			return show(out.Attributes) + units(*out.ConsumedCapacity)
		case "update":
			out, err := t.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: name, Key: o.key(pk), UpdateExpression: optional(o.update),
				ConditionExpression: optional(o.condition), ExpressionAttributeValues: o.values,
				ReturnValuesOnConditionCheckFailure: allOld, ReturnValues: ddbtypes.ReturnValueAllNew,
				ReturnConsumedCapacity: capacity,
			})
			if err != nil {
				return failure(err)
			}

			return show(out.Attributes) + units(*out.ConsumedCapacity)
		default:
			out, err := t.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: name, Key: o.key(pk), ConditionExpression: optional(o.condition),
				ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: allOld,
				ReturnValues: ddbtypes.ReturnValueAllOld, ReturnConsumedCapacity: capacity,
			})
			if err != nil {
				return failure(err)
			}

			return show(out.Attributes) + units(*out.ConsumedCapacity)
		}
	}}
}

// inTransaction returns the operation as an item of a transaction.
func (o operation) inTransaction(pk string) ddbtypes.TransactWriteItem {
	name, condition := aws.String(realTable()), optional(o.condition)

	switch o.action {
	case "put":
		return ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{
			TableName: name, Item: o.whole(pk), ConditionExpression: condition, ExpressionAttributeValues: o.values,
			ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case "update":
		return ddbtypes.TransactWriteItem{Update: &ddbtypes.Update{
			TableName: name, Key: o.key(pk), UpdateExpression: &o.update, ConditionExpression: condition,
			ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case "delete":
		return ddbtypes.TransactWriteItem{Delete: &ddbtypes.Delete{
			TableName: name, Key: o.key(pk), ConditionExpression: condition, ExpressionAttributeValues: o.values,
			ReturnValuesOnConditionCheckFailure: allOld,
		}}
	default:
		return ddbtypes.TransactWriteItem{ConditionCheck: &ddbtypes.ConditionCheck{
			TableName: name, Key: o.key(pk), ConditionExpression: condition, ExpressionAttributeValues: o.values,
			ReturnValuesOnConditionCheckFailure: allOld,
		}}
	}
}

// transaction returns a transaction of operations, with a token unless the token is empty.
func transaction(token string, operations ...operation) tableCall {
	names := make([]string, len(operations))
	for i, o := range operations {
		names[i] = o.String()
	}

	return tableCall{
		"transaction " + token + " [" + strings.Join(names, "; ") + "]",
		func(ctx context.Context, t tableAPI, pk string) string {
			in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: capacity}
			if token != "" {
				in.ClientRequestToken = aws.String(token + pk[max(0, len(pk)-20):])
			}

			for _, o := range operations {
				in.TransactItems = append(in.TransactItems, o.inTransaction(pk))
			}

			out, err := t.TransactWriteItems(ctx, in)
			if err != nil {
				return failure(err)
			}

			return "done " + units(out.ConsumedCapacity...)
		},
	}
}

// failure returns the comparable parts of an error: code, reasons and items.
func failure(err error) string {
	text := code(err)

	if failed, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); ok {
		text += " " + show(failed.Item)
	}

	if cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err); ok {
		for _, r := range cancelled.CancellationReasons {
			text += " " + aws.ToString(r.Code) + show(r.Item)
		}
	}

	return text
}

// read gets an item.
func read(sk string, consistent bool) tableCall {
	return tableCall{"get " + sk, func(ctx context.Context, t tableAPI, pk string) string {
		out, err := t.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(realTable()), Key: item{"pk": str(pk), "sk": str(sk)}, ConsistentRead: &consistent,
			ReturnConsumedCapacity: capacity,
		})
		if err != nil {
			return failure(err)
		}

		return show(out.Item) + units(*out.ConsumedCapacity)
	}}
}

// question is a query, read page by page. The value ":pk" is replaced by the partition of the test.
type question struct {
	condition string
	filter    string
	values    item
	index     bool
	backward  bool
	limit     int32
	strong    bool
}

func (q question) call() tableCall {
	return tableCall{fmt.Sprintf("query %+v", q), func(ctx context.Context, t tableAPI, pk string) string {
		values := item{":pk": str(pk)}
		maps.Copy(values, q.values)

		in := &dynamodb.QueryInput{
			TableName: aws.String(realTable()), KeyConditionExpression: optional(q.condition),
			FilterExpression: optional(q.filter), ExpressionAttributeValues: values,
			ScanIndexForward: aws.Bool(!q.backward),
			ConsistentRead:   &q.strong, ReturnConsumedCapacity: capacity,
		}
		if q.index {
			in.IndexName = aws.String(index)
		}

		if q.limit > 0 {
			in.Limit = &q.limit
		}

		return pages(ctx, t, in)
	}}
}

// pages reads at most ten pages.
func pages(ctx context.Context, t tableAPI, in *dynamodb.QueryInput) string {
	text := ""

	for range 10 {
		out, err := t.Query(ctx, in)
		if err != nil {
			return text + failure(err)
		}

		for _, it := range out.Items {
			text += show(it)
		}

		text += fmt.Sprintf(" %d of %d, %s, then %s\n", out.Count, out.ScannedCount, units(*out.ConsumedCapacity),
			show(out.LastEvaluatedKey))

		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}

	return text
}

func realClient() tableAPI { return dynamodb.NewFromConfig(config()) }
