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

// This example writes an order and starts its orchestration in one transaction. The second attempt fails because the
// order exists. In a real program the hub is from dynamo.Open and the table is a DynamoDB client.
func ExampleClient_PrepareStart() {
	ctx := context.Background()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil", func(_ *perdure.OrchestrationContext, order string) (string, error) {
		return "packed " + order, nil
	})
	hub, table, stop := hubAndTable(r)
	defer stop()

	take := func(order string) error {
		start, err := hub.PrepareStart(ctx, "fulfil", order, client.WithInstanceID("fulfil-"+order),
			client.WithIdempotencyKey(order))
		if errors.Is(err, client.ErrAlreadyStarted) {
			return fmt.Errorf("%s is taken", order)
		}
		if err != nil {
			return err
		}
		put := &types.Put{
			TableName:           aws.String("orders"),
			Item:                map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: order}},
			ConditionExpression: aws.String("attribute_not_exists(id)"),
		}
		_, err = table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: put}),
		})
		if err != nil {
			return errors.Join(start.StartError(err), err)
		}
		return start.Wake(ctx) // if the process dies before this call, the sweeper starts the instance
	}

	fmt.Println(take("o-1"), "–", take("o-1"))
	status, err := hub.Wait(ctx, "fulfil-o-1")
	fmt.Println(status.Status, string(status.Output), err)
	// Output:
	// <nil> – o-1 is taken
	// Completed "packed o-1" <nil>
}

// hubAndTable returns a running in-memory hub and its DynamoDB with a table of orders.
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
