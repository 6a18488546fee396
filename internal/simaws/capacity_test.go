package simaws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
)

func sized(sk string, size int) item {
	return with(sk, item{"v": str(strings.Repeat("x", size))})
}

// TestCapacity_eachOperation_isCounted starts with item "1" of 2.5 KB, item "5" of 5 KB, and item "g", which is in the
// index.
func TestCapacity_eachOperation_isCounted(t *testing.T) {
	t.Parallel()

	inIndex := item{"g": str("G"), "n": num("1"), "a": str("x")}

	tests := map[string]struct {
		run  func(tb testing.TB, c *simaws.Cloud) error
		want simaws.Capacity
	}{
		"put small":   {putting(key("new")), simaws.Capacity{Write: 1}},
		"put 2.5 KB":  {putting(sized("new", 2500)), simaws.Capacity{Write: 3}},
		"put smaller": {putting(key("5")), simaws.Capacity{Write: 5}},
		"put in index": {
			putting(with("new", inIndex)), simaws.Capacity{Write: 2},
		},
		"put an equal item": {putting(with("g", inIndex)), simaws.Capacity{Write: 1}},
		"change projected": {
			putting(with("g", item{"g": str("G"), "n": num("1"), "a": str("y")})), simaws.Capacity{Write: 2},
		},
		"change index key": {
			putting(with("g", item{"g": str("H"), "n": num("1"), "a": str("x")})), simaws.Capacity{Write: 3},
		},
		"leave index": {putting(key("g")), simaws.Capacity{Write: 2}},
		"failed condition": {func(tb testing.TB, c *simaws.Cloud) error {
			tb.Helper()

			_, err := c.Table.PutItem(tb.Context(), &dynamodb.PutItemInput{
				Item: key("5"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			})
			wantCode(tb, err, conditionFails)

			return nil
		}, simaws.Capacity{Write: 5}},
		"transaction": {func(tb testing.TB, c *simaws.Cloud) error {
			tb.Helper()

			return transact(tb, c, putTx(sized("new", 2500)), addOne("n"), checkExists("1"))
		}, simaws.Capacity{Write: 6 + 2 + 6}},
		"cancelled transaction": {func(tb testing.TB, c *simaws.Cloud) error {
			tb.Helper()
			wantCode(tb, transact(tb, c, putTx(key("new")), checkExists("gone")), "TransactionCanceledException")

			return nil
		}, simaws.Capacity{Write: 4}},
		"strong get":        {getting("5", true), simaws.Capacity{Read: 2}},
		"eventual get":      {getting("5", false), simaws.Capacity{Read: 1}},
		"get nothing":       {getting("gone", false), simaws.Capacity{Read: 0.5}},
		"strong query":      {querying(true), simaws.Capacity{Read: 2}},
		"eventual query":    {querying(false), simaws.Capacity{Read: 1}},
		"refused by itself": {refused, simaws.Capacity{}},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := indexed()
			put(t, c, sized("1", 2500))
			put(t, c, sized("5", 5000))
			put(t, c, with("g", inIndex))
			c.ResetCounts()

			wantCode(t, tt.run(t, c), "")

			if got := c.Capacity(); got != tt.want {
				t.Fatalf("consumed %+v, want %+v", got, tt.want)
			}
		})
	}
}

func putting(it item) func(testing.TB, *simaws.Cloud) error {
	return func(tb testing.TB, c *simaws.Cloud) error {
		tb.Helper()

		before := c.Capacity()

		out, err := c.Table.PutItem(tb.Context(), &dynamodb.PutItemInput{
			Item: it, ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return err
		}

		if got := c.Capacity().Write - before.Write; *out.ConsumedCapacity.CapacityUnits != got {
			tb.Errorf("reported %v, counted %v", *out.ConsumedCapacity.CapacityUnits, got)
		}

		return nil
	}
}

func getting(sk string, consistent bool) func(testing.TB, *simaws.Cloud) error {
	return func(tb testing.TB, c *simaws.Cloud) error {
		tb.Helper()

		_, err := c.Table.GetItem(tb.Context(), &dynamodb.GetItemInput{Key: key(sk), ConsistentRead: &consistent})

		return err
	}
}

// querying reads 7.5 KB.
func querying(consistent bool) func(testing.TB, *simaws.Cloud) error {
	return func(tb testing.TB, c *simaws.Cloud) error {
		tb.Helper()

		_, err := c.Table.Query(tb.Context(), &dynamodb.QueryInput{
			KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")},
			ConsistentRead: &consistent,
		})

		return err
	}
}

func refused(tb testing.TB, c *simaws.Cloud) error {
	tb.Helper()

	_, err := c.Table.PutItem(tb.Context(), &dynamodb.PutItemInput{Item: item{"pk": str("p")}})
	wantCode(tb, err, isInvalid)

	return nil
}

func TestConsumedCapacity_itemInAnIndex_isReportedPerIndex(t *testing.T) {
	t.Parallel()

	out, err := indexed().Table.PutItem(t.Context(), &dynamodb.PutItemInput{
		Item:                   with("1", item{"g": str("G"), "n": num("1")}),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityIndexes,
	})
	wantCode(t, err, "")

	used := out.ConsumedCapacity
	if *used.CapacityUnits != 2 || *used.Table.CapacityUnits != 1 ||
		*used.GlobalSecondaryIndexes["byG"].CapacityUnits != 1 {
		t.Fatalf("%v %v %v", *used.CapacityUnits, *used.Table.CapacityUnits, used.GlobalSecondaryIndexes)
	}
}
