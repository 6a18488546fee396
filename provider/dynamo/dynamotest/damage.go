package dynamotest

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
)

// damage damages the items of a segment in the table (design, "Storage").
type damage struct {
	t           *testing.T
	client      dynamo.TableAPI
	table       string
	executionID string
	segment     int64
}

func (d damage) do(how providertest.Damage) {
	d.t.Helper()
	switch how {
	case providertest.Undecodable:
		d.write("\u0001 no JSON")
	case providertest.LaterRelease:
		d.write(`[{"id":2,"kind":"KindOfALaterRelease","time":"2026-01-01T00:00:00Z"}]`)
	case providertest.NoEvents:
		d.write("[]")
	case providertest.PartMissing:
		d.remove("#001")
	case providertest.Missing:
		d.remove("")
	default:
		d.t.Fatalf("unknown damage %q", how)
	}
}

func (d damage) key(part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "x#" + d.executionID},
		"sk": &types.AttributeValueMemberS{Value: fmt.Sprintf("h#%010d%s", d.segment, part)},
	}
}

// write replaces the content of the first part.
func (d damage) write(events string) {
	d.t.Helper()
	out, err := d.client.GetItem(d.t.Context(), &dynamodb.GetItemInput{
		TableName: &d.table, Key: d.key(""), ConsistentRead: aws.Bool(true),
	})
	if err != nil || len(out.Item) == 0 {
		d.t.Fatalf("segment %d to be damaged: %v, %v", d.segment, out, err)
	}
	delete(out.Item, "zstd")
	out.Item["events"] = &types.AttributeValueMemberS{Value: events}
	if _, err := d.client.PutItem(d.t.Context(),
		&dynamodb.PutItemInput{TableName: &d.table, Item: out.Item}); err != nil {
		d.t.Fatal(err)
	}
}

func (d damage) remove(part string) {
	d.t.Helper()
	out, err := d.client.DeleteItem(d.t.Context(), &dynamodb.DeleteItemInput{
		TableName: &d.table, Key: d.key(part), ReturnValues: types.ReturnValueAllOld,
	})
	if err != nil || len(out.Attributes) == 0 {
		d.t.Fatalf("part %q of segment %d to be removed: %v", part, d.segment, err)
	}
}
