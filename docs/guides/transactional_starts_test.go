package guides_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider/dynamo"
)

// Transactor is implemented by *dynamodb.Client.
type Transactor interface {
	TransactWriteItems(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// SaveOrder saves an order and starts its orchestration in one transaction. A repeated call changes nothing.
func SaveOrder(ctx context.Context, hub *client.Client, table Transactor, orders string, id string, o Order) error {
	start, err := hub.PrepareStart(ctx, "fulfil", o, client.WithIdempotencyKey(id))
	if errors.Is(err, client.ErrAlreadyStarted) {
		return nil // the order was saved before
	}
	if err != nil {
		return err
	}

	order := types.Put{
		TableName: &orders,
		Item: map[string]types.AttributeValue{
			"id":       &types.AttributeValueMemberS{Value: id},
			"instance": &types.AttributeValueMemberS{Value: start.InstanceID()},
		},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	}
	_, err = table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: &order}),
	})
	if refused := start.StartError(err); errors.Is(refused, client.ErrAlreadyStarted) {
		return nil // a concurrent call saved it
	}
	if err != nil {
		return err
	}

	if err := start.Wake(ctx); err != nil {
		slog.WarnContext(ctx, "order saved, its orchestration starts a few minutes late", "order", id, "error", err)
	}
	return nil
}

func TestSaveOrder_repeated_startsOnce(t *testing.T) {
	env := perduretest.New(t, Registry(), perduretest.WithTable("orders", "id", ""))
	tables := perduretest.TableClient(env)
	for range 2 {
		if err := SaveOrder(t.Context(), env.Client(), tables, "orders", "o-1", Order{Cents: 900}); err != nil {
			t.Fatal(err)
		}
	}
	env.Advance(time.Minute)
	if calls := env.Calls("charge"); len(calls) != 1 {
		t.Errorf("charged %d times", len(calls))
	}
}

func TestSaveOrder_saved_hasInstanceID(t *testing.T) {
	env := perduretest.New(t, Registry(), perduretest.WithTable("orders", "id", ""))
	tables := perduretest.TableClient(env)
	for range 2 {
		if err := SaveOrder(t.Context(), env.Client(), tables, "orders", "o-1", Order{Cents: 900}); err != nil {
			t.Fatal(err)
		}
	}
	env.Advance(time.Minute)

	order, err := tables.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("orders"),
		Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "o-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := order.Item["instance"].(*types.AttributeValueMemberS).Value
	if s, err := env.Client().Status(t.Context(), id); err != nil || string(s.CustomStatus) != `"paid"` {
		t.Errorf("the order's orchestration is %s, %v", s.CustomStatus, err)
	}
}
