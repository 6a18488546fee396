package guides_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider/dynamo"
)

// Transactor is what TakeOrder needs of the client of DynamoDB.
type Transactor interface {
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// TakeOrder saves an order and starts its orchestration, or does neither. A repeated order changes nothing.
func TakeOrder(ctx context.Context, hub *client.Client, table Transactor, orders string, id string, o Order) error {
	start, err := hub.StartItem(ctx, "fulfil", o, client.WithIdempotencyKey(id))
	if errors.Is(err, client.ErrAlreadyStarted) {
		return nil // the order is there, and so is its orchestration
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
		TransactItems: append(dynamo.Writes(start), types.TransactWriteItem{Put: &order}),
	})
	if refused := start.Refusal(err); errors.Is(refused, client.ErrAlreadyStarted) {
		return nil // somebody took the same order meanwhile
	}
	if err != nil {
		return err
	}

	if err := start.Begin(ctx); err != nil {
		slog.WarnContext(ctx, "the order is saved, and begins some minutes late", "order", id, "error", err)
	}
	return nil
}

// shop is a program whose table takes orders. In memory there is one table: an order is an item of its own there.
type shop struct {
	Transactor

	saved []string
}

// TransactWriteItems gives an order the keys of the table.
func (s *shop) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	order := *in.TransactItems[len(in.TransactItems)-1].Put
	order.Item["pk"] = order.Item["id"]
	order.Item["sk"] = order.Item["id"]
	order.ConditionExpression = aws.String("attribute_not_exists(pk)")
	in.TransactItems[len(in.TransactItems)-1].Put = &order
	out, err := s.Transactor.TransactWriteItems(ctx, in, opts...)
	if err == nil {
		s.saved = append(s.saved, order.Item["id"].(*types.AttributeValueMemberS).Value)
	}
	return out, err
}

func TestAnOrderIsTakenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := simhub.New(simhub.Options{Registry: Registry()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hub, table := client.New(h.Provider), &shop{Transactor: h.Cloud.Table}

		for range 2 {
			if err := TakeOrder(t.Context(), hub, table, "perdure", "o-1", Order{Cents: 900}); err != nil {
				t.Fatal(err)
			}
		}
		h.ServeFor(t.Context(), time.Minute)
		running := 0
		for s, err := range hub.List(t.Context(), client.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			if running++; string(s.CustomStatus) != `"paid"` {
				t.Errorf("the order's orchestration is %+v", s)
			}
		}
		if len(table.saved) != 1 || running != 1 {
			t.Errorf("saved %v, with %d instances", table.saved, running)
		}
	})
}
