package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/localcloud"
)

// orderTable is a table of the caller, separate from the table of the hub.
type orderTable struct {
	*testing.T
	*dynamodb.Client

	table string
}

func openOrders(t *testing.T) orderTable {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := orderTable{t, dynamodb.NewFromConfig(cfg), t.Name()}
	localcloud.CreateTable(t, o.Client, &dynamodb.CreateTableInput{
		TableName: &o.table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	return o
}

// prepare prepares the start of an order's orchestration.
func (o orderTable) prepare(instance string, opts ...client.StartOption) provider.PreparedStart {
	o.Helper()
	start, err := hub.client.PrepareStart(o.Context(), "hello", instance,
		append(opts, client.WithInstanceID(instance))...)
	if err != nil {
		o.Fatal(err)
	}
	return start
}

func orderKey(order string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: order}}
}

// save writes a new order and a start in one transaction.
func (o orderTable) save(order string, start provider.PreparedStart) error {
	put := types.Put{
		TableName: &o.table, Item: orderKey(order), ConditionExpression: aws.String("attribute_not_exists(id)"),
	}
	_, err := o.TransactWriteItems(o.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: &put}),
	})
	return err
}

// wantOrder fails the test unless the table has the order, or does not have it.
func (o orderTable) wantOrder(order string, want bool) {
	o.Helper()
	out, err := o.GetItem(o.Context(), &dynamodb.GetItemInput{
		TableName: &o.table, Key: orderKey(order), ConsistentRead: aws.Bool(true),
	})
	if err != nil || (len(out.Item) > 0) != want {
		o.Errorf("order %s: got %v, error %v, want the order to exist: %v", order, out, err, want)
	}
}

// wantGreeting fails the test unless the orchestration of the order completes.
func (o orderTable) wantGreeting(instance string) {
	o.Helper()
	s, err := hub.client.Wait(o.Context(), instance)
	if err != nil {
		o.Fatal(err)
	}
	if got, err := client.Result[string](s); err != nil || got != "hello, "+instance {
		o.Errorf("%s: got %s with %q, error %v", instance, s.Status, got, err)
	}
	valid(o.T, hub.client, instance)
}

// One transaction saves an order in the table of the caller and starts its orchestration, which the functions run. A
// rejected order starts nothing, and a rejected start saves no order.
func TestPrepareStart_transaction_isAtomic(t *testing.T) {
	o := openOrders(t)
	mine := client.WithIdempotencyKey("key-1")
	again, other := o.prepare(id(t, 1), mine), o.prepare(id(t, 2))
	start := o.prepare(id(t, 1), mine)
	if err := o.save("o-1", start); err != nil {
		t.Fatal(err)
	}
	if err := start.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := o.save("o-2", again); !errors.Is(again.StartError(err), client.ErrAlreadyStarted) {
		t.Errorf("repeated start: got error %v, StartError %v", err, again.StartError(err))
	}
	o.wantOrder("o-2", false)
	if err := o.save("o-1", other); err == nil || other.StartError(err) != nil {
		t.Errorf("order with the same ID: got error %v, StartError %v", err, other.StartError(err))
	}
	o.wantOrder("o-1", true)
	o.wantGreeting(id(t, 1))
	if _, err := hub.client.Status(t.Context(), id(t, 2)); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("orchestration of a rejected order: got error %v", err)
	}
}

// The program crashes after its transaction. The timer of the delayed start was sent before the transaction.
func TestPrepareStart_programCrashesAfterTransaction_orchestrationStarts(t *testing.T) {
	o := openOrders(t)
	if err := o.save("o-1", o.prepare(id(t, 1), client.WithDelay(2*time.Second))); err != nil {
		t.Fatal(err)
	}
	o.wantOrder("o-1", true)
	o.wantGreeting(id(t, 1))
}
