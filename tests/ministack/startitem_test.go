package ministack_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/localcloud"
)

// The data of the caller is in its own table, and the transaction uses the client of the SDK.
func TestPrepareStart_callersOwnTable_sharesTransaction(t *testing.T) {
	e := localcloud.NewEmulator()
	p := e.Hub(t, providertest.Config{Visibility: time.Minute}).Provider
	hub := client.New(p)
	orders := p.(*dynamo.Provider).Config().Table + "-orders"
	localcloud.CreateTable(t, e.Tables, &dynamodb.CreateTableInput{
		TableName: &orders, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	save := func(order string, start provider.PreparedStart) error {
		put := types.Put{
			TableName: &orders, Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: order}},
			ConditionExpression: aws.String("attribute_not_exists(id)"),
		}
		_, err := e.Tables.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: &put}),
		})
		return err
	}
	prepare := func(id string) provider.PreparedStart {
		start, err := hub.PrepareStart(t.Context(), "order", 1, client.WithInstanceID(id))
		if err != nil {
			t.Fatal(err)
		}
		return start
	}

	late, other := prepare("i-1"), prepare("i-2")
	if err := save("o-1", prepare("i-1")); err != nil {
		t.Fatal(err)
	}
	if s, err := hub.Status(t.Context(), "i-1"); err != nil || s.Status != client.StatusPending {
		t.Errorf("after the transaction: got %+v, error %v", s, err)
	}
	if err := save("o-2", late); !errors.Is(late.StartError(err), client.ErrAlreadyExists) {
		t.Errorf("%v: got StartError %v", err, late.StartError(err))
	}
	if err := save("o-1", other); err == nil || other.StartError(err) != nil {
		t.Errorf("%v: got StartError %v", err, other.StartError(err))
	}
	if _, err := hub.Status(t.Context(), "i-2"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("instance of a rejected order: got error %v", err)
	}
}
