package simaws_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
)

// order returns a put of a new order into another table.
func order(id, status string) txItem {
	return txItem{Put: &ddbtypes.Put{
		TableName: aws.String("orders"), Item: item{"id": str(id), "status": str(status)},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	}}
}

// A transaction writes to all of its tables or to none. Items of different tables may have the same key.
func TestTransactWriteItems_severalTables_writesAllOrNone(t *testing.T) {
	t.Parallel()

	c := simaws.New(simaws.WithTable(simaws.TableConfig{Name: "hub", PartitionKey: "pk", SortKey: "sk"}))
	c.Table.Add(simaws.TableConfig{Name: "orders", PartitionKey: "id"})
	c.Table.Add(simaws.TableConfig{Name: "lines", PartitionKey: "pk", SortKey: "sk"})

	hub, lines := putNew(key("x")), putNew(with("x", item{"n": num("1")}))
	hub.Put.TableName, lines.Put.TableName = aws.String("hub"), aws.String("lines")

	if err := transact(t, c, hub, order("p", "new"), lines); err != nil {
		t.Fatal(err)
	}

	hub.Put.Item = key("y")
	codes, _ := reasons(t, transact(t, c, hub, order("p", "again")))
	if !slices.Equal(codes, []string{"None", "ConditionalCheckFailed"}) {
		t.Errorf("result of a rejected order: %v", codes)
	}

	for table, want := range map[string]struct {
		key, item item
	}{
		"hub": {key("x"), key("x")}, "orders": {item{"id": str("p")}, item{"id": str("p"), "status": str("new")}},
		"lines": {key("x"), with("x", item{"n": num("1")})},
	} {
		out, err := c.Table.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: &table, Key: want.key, ConsistentRead: aws.Bool(true),
		})
		if err != nil || !reflect.DeepEqual(out.Item, want.item) {
			t.Errorf("%s has %v, %v", table, out, err)
		}
	}

	found, err := c.Table.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("lines"), KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: item{":p": str("p")},
	})
	if err != nil || len(found.Items) != 1 || !reflect.DeepEqual(found.Items[0]["n"], num("1")) {
		t.Errorf("lines has %+v, %v", found, err)
	}

	if n := c.Table.Backup().Len(); n != 1 {
		t.Errorf("the backup of the hub has %d items", n)
	}

	_, err = c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("unknown"), Item: key("x")})
	wantCode(t, err, "ResourceNotFoundException")
}
