package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider/dynamo"
)

// An order is saved and its orchestration started, or neither: here the table of orders refuses an order that it has. In a real program the hub is
// dynamo.Open's, and the table a client of DynamoDB.
func ExampleClient_StartItem() {
	ctx := context.Background()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil", func(_ *perdure.OrchestrationContext, order string) (string, error) { return "packed " + order, nil })
	hub, table, stop := hubAndTable(r)
	defer stop()

	take := func(order string) error {
		start, err := hub.StartItem(ctx, "fulfil", order, client.WithInstanceID("fulfil-"+order), client.WithIdempotencyKey(order))
		if errors.Is(err, client.ErrAlreadyStarted) {
			return fmt.Errorf("%s is taken", order)
		}
		if err != nil {
			return err
		}
		put := &types.Put{
			TableName: aws.String("orders"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: order}},
			ConditionExpression: aws.String("attribute_not_exists(id)"),
		}
		_, err = table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(dynamo.Writes(start), types.TransactWriteItem{Put: put})})
		if err != nil {
			return errors.Join(start.Refusal(err), err)
		}
		return start.Begin(ctx) // where the process dies before, the hub's watch begins it
	}

	fmt.Println(take("o-1"), "–", take("o-1"))
	status, err := hub.Wait(ctx, "fulfil-o-1")
	fmt.Println(status.Status, string(status.Output), err)
	// Output:
	// <nil> – o-1 is taken
	// Completed "packed o-1" <nil>
}

// hubAndTable is a hub whose functions run, and the DynamoDB that it is in, with a table of orders.
func hubAndTable(r *perdure.Registry) (hub *client.Client, table dynamo.TableAPI, stop func()) {
	h, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		panic(err)
	}
	h.Cloud.Table.Add(simaws.TableConfig{Name: "orders", PartitionKey: "id"})
	ctx, end := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Cloud.Serve(ctx)
	}()
	return client.New(h.Provider), h.Cloud.Table, func() {
		end()
		<-served
		h.Close()
	}
}
