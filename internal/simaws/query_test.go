package simaws_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
)

// sortKeys reads all pages of a query and returns the sort keys of the items, and the number of pages.
func sortKeys(tb testing.TB, c *simaws.Cloud, in dynamodb.QueryInput) (keys []string, pages int) {
	tb.Helper()

	for {
		out, err := c.Table.Query(tb.Context(), &in)
		wantCode(tb, err, "")

		pages++

		for _, it := range out.Items {
			s, _ := it["sk"].(*ddbtypes.AttributeValueMemberS)
			keys = append(keys, s.Value)
		}

		if out.LastEvaluatedKey == nil {
			return keys, pages
		}

		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func TestQuery_eachKeyCondition_selectsItems(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	for _, sk := range []string{"a", "b1", "b2", "b3", "c", "d"} {
		put(t, c, key(sk))
	}

	put(t, c, item{"pk": str("other"), "sk": str("b2")})

	tests := []struct {
		condition string
		values    item
		want      string // "!" if rejected
	}{
		{"pk = :p", nil, "a b1 b2 b3 c d"},
		{"pk = :p AND sk = :s", item{":s": str("c")}, "c"},
		{"pk = :p AND sk = :s", item{":s": str("x")}, ""},
		{"pk = :p AND sk < :s", item{":s": str("b2")}, "a b1"},
		{"pk = :p AND sk <= :s", item{":s": str("b2")}, "a b1 b2"},
		{"pk = :p AND sk > :s", item{":s": str("b2")}, "b3 c d"},
		{"sk >= :s AND pk = :p", item{":s": str("b2")}, "b2 b3 c d"},
		{"pk = :p AND sk BETWEEN :s AND :t", item{":s": str("b"), ":t": str("c")}, "b1 b2 b3 c"},
		{"(pk = :p) AND (begins_with(sk, :s))", item{":s": str("b")}, "b1 b2 b3"},
		{"pk = :p AND begins_with(sk, :s)", item{":s": str("z")}, ""},
		{"pk > :p", nil, "!"},
		{"pk = :p AND a = :s", item{":s": str("x")}, "!"},
		{"pk = :p AND sk <> :s", item{":s": str("x")}, "!"},
		{"pk = :p OR sk = :s", item{":s": str("x")}, "!"},
		{"sk = :p", nil, "!"},
		{"pk = :p AND sk = :s", item{":s": num("1")}, "!"},
		{"pk = :p AND sk = :s", item{":s": str("")}, "!"},
		{"pk = :p AND sk BETWEEN :s AND :t", item{":s": str("c"), ":t": str("b")}, "!"},
	}

	for _, tt := range tests {
		t.Run(tt.condition, func(t *testing.T) {
			t.Parallel()

			values := item{":p": str("p")}
			maps.Copy(values, tt.values)

			in := dynamodb.QueryInput{KeyConditionExpression: &tt.condition, ExpressionAttributeValues: values}
			if tt.want == "!" {
				_, err := c.Table.Query(t.Context(), &in)
				wantCode(t, err, isInvalid)

				return
			}

			wantBothWays(t, c, in, strings.Fields(tt.want))
		})
	}
}

// wantBothWays compares the results of a query forward and backward, without a limit and in pages of two.
func wantBothWays(t *testing.T, c *simaws.Cloud, in dynamodb.QueryInput, want []string) {
	t.Helper()

	for _, limit := range []*int32{nil, aws.Int32(2)} {
		for _, forward := range []bool{true, false} {
			in.Limit, in.ScanIndexForward = limit, &forward

			got, _ := sortKeys(t, c, in)
			if len(got) != len(want) {
				t.Fatalf("got %v, want %v", got, want)
			}

			for i := range want {
				expected := want[i]
				if !forward {
					expected = want[len(want)-1-i]
				}

				if got[i] != expected {
					t.Fatalf("got %v, want %v (forward %v)", got, want, forward)
				}
			}
		}
	}
}

func TestQuery_manyRows_areInOrder(t *testing.T) {
	t.Parallel()

	const rows = 2000

	c := simaws.New()
	want := make([]string, rows)

	for i := range rows {
		want[i] = fmt.Sprintf("%05d", i)
		put(t, c, key(fmt.Sprintf("%05d", i*7919%rows))) // 7919 is prime: every number once, in another order
	}

	for i := 0; i < rows; i += 2 {
		_, err := c.Table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{Key: key(want[i])})
		wantCode(t, err, "")
	}

	odd := []string{}
	for i := 1; i < rows; i += 2 {
		odd = append(odd, want[i])
	}

	wantBothWays(t, c, dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")},
	}, odd)
}

func TestQuery_largeResult_isSplitIntoPages(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	for i := range 7 {
		put(t, c, with(strconv.Itoa(i), item{"v": str(strings.Repeat("x", 300<<10)), "odd": num(strconv.Itoa(i % 2))}))
	}

	in := dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")},
	}
	if keys, pages := sortKeys(t, c, in); len(keys) != 7 || pages != 3 {
		t.Errorf("%d items in %d pages, want 7 in 3 of 1 MB", len(keys), pages)
	}

	in.FilterExpression = aws.String("odd = :one")
	in.ExpressionAttributeValues = item{":p": str("p"), ":one": num("1")}
	in.Limit = aws.Int32(2)

	out, err := c.Table.Query(t.Context(), &in)
	wantCode(t, err, "")

	if out.Count != 1 || out.ScannedCount != 2 {
		t.Errorf("count %d of %d, want 1 of 2", out.Count, out.ScannedCount)
	}

	if keys, pages := sortKeys(t, c, in); len(keys) != 3 || pages != 4 {
		t.Errorf("%d items in %d pages, want 3 in 4", len(keys), pages)
	}
}

func TestQuery_invalidInput_isRejected(t *testing.T) {
	t.Parallel()

	tests := map[string]func(*dynamodb.QueryInput){
		"no condition":  func(in *dynamodb.QueryInput) { in.KeyConditionExpression = nil },
		"unknown index": func(in *dynamodb.QueryInput) { in.IndexName = aws.String("none") },
		"strong read of index": func(in *dynamodb.QueryInput) {
			in.IndexName, in.ConsistentRead = aws.String("g"), aws.Bool(true)
		},
		"limit 0": func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(0) },
		"start of another": func(in *dynamodb.QueryInput) {
			in.ExclusiveStartKey = item{"pk": str("q"), "sk": str("1")}
		},
		"start without key": func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"sk": str("1")} },
	}

	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New(simaws.WithTable(simaws.TableConfig{
				PartitionKey: "pk", SortKey: "sk", Indexes: []simaws.Index{{Name: "g", PartitionKey: "pk"}},
			}))
			in := &dynamodb.QueryInput{
				KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")},
			}
			change(in)

			_, err := c.Table.Query(t.Context(), in)
			wantCode(t, err, isInvalid)
		})
	}
}

// indexed returns a cloud whose table has a sparse index by g. The index is sorted by the number n and projects "a".
func indexed() *simaws.Cloud {
	return simaws.New(simaws.WithTable(simaws.TableConfig{
		PartitionKey: "pk", SortKey: "sk", NumberKeys: []string{"n"},
		Indexes: []simaws.Index{{Name: "byG", PartitionKey: "g", SortKey: "n", Include: []string{"a"}}},
	}))
}

func byG() dynamodb.QueryInput {
	return dynamodb.QueryInput{
		IndexName: aws.String("byG"), KeyConditionExpression: aws.String("g = :g"),
		ExpressionAttributeValues: item{":g": str("G")},
	}
}

func TestIndex_itemsChange_isUpdatedAndSorted(t *testing.T) {
	t.Parallel()

	c := indexed()
	for sk, n := range map[string]string{"a": "10", "b": "9", "c": "-3", "d": "-20", "e": "0", "f": "9.5", "g": "9"} {
		put(t, c, with(sk, item{"g": str("G"), "n": num(n), "a": str("kept"), "other": str("left out")}))
	}

	put(t, c, with("x", item{"g": str("G")}))
	put(t, c, with("y", item{"n": num("1")}))
	wantBothWays(t, c, byG(), []string{"d", "c", "e", "b", "g", "f", "a"})

	in := byG()
	out, err := c.Table.Query(t.Context(), &in)
	wantCode(t, err, "")
	sameItem(t, out.Items[0], with("d", item{"g": str("G"), "n": num("-20"), "a": str("kept")}))

	update := func(sk, expression string, values item) {
		t.Helper()

		_, err := c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			Key: key(sk), UpdateExpression: &expression, ExpressionAttributeValues: values,
		})
		wantCode(t, err, "")
	}

	update("d", "SET n = :n", item{":n": num("100")})
	update("c", "REMOVE g", nil)
	update("e", "SET a = :a", item{":a": str("new")})
	wantBothWays(t, c, byG(), []string{"e", "b", "g", "f", "a", "d"})

	out, err = c.Table.Query(t.Context(), &in)
	wantCode(t, err, "")
	sameItem(t, out.Items[0], with("e", item{"g": str("G"), "n": num("0"), "a": str("new")}))
}

// DynamoDB applies a projection after the read, so a projection saves no capacity.
func TestQuery_projection_returnsOnlyItsAttributes(t *testing.T) {
	t.Parallel()
	c := simaws.New(simaws.WithTable(simaws.TableConfig{Name: "t", PartitionKey: "pk", SortKey: "sk"}))
	s := func(v string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: v} }
	if _, err := c.Table.PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("t"), Item: map[string]ddbtypes.AttributeValue{
			"pk": s("p"), "sk": s("a"), "status": s("x"), "large": s(strings.Repeat("l", 20<<10)),
		}}); err != nil {
		t.Fatal(err)
	}
	query := func(projection string, names map[string]string) (*dynamodb.QueryOutput, error) {
		return c.Table.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("t"), KeyConditionExpression: aws.String("pk = :p"),
			ProjectionExpression: &projection, ExpressionAttributeNames: names,
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":p": s("p")},
			ReturnConsumedCapacity:    ddbtypes.ReturnConsumedCapacityTotal,
		})
	}
	out, err := query("sk, #s, nowhere", map[string]string{"#s": "status"})
	if err != nil || len(out.Items) != 1 || len(out.Items[0]) != 2 || out.Items[0]["sk"] == nil ||
		out.Items[0]["status"] == nil {
		t.Errorf("%v, %v", out, err)
	} else if units := *out.ConsumedCapacity.CapacityUnits; units < 2.5 {
		t.Errorf("%v units were consumed, fewer than a read of the item", units)
	}
	for _, bad := range []string{"", "sk,", "sk, sk", "#none", "status", "a b"} {
		if _, err := query(bad, nil); err == nil {
			t.Errorf("the projection %q is accepted", bad)
		}
	}
	if _, err := query("sk", map[string]string{"#unused": "status"}); err == nil {
		t.Error("an unused alias is accepted")
	}
}
