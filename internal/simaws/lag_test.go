package simaws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/simaws"
)

// seen returns the results of eventually consistent reads: the version of item "1", the keys of the partition, and the
// keys of the index.
func seen(tb testing.TB, c *simaws.Cloud) string {
	tb.Helper()

	out, err := c.Table.GetItem(tb.Context(), &dynamodb.GetItemInput{Key: key("1")})
	wantCode(tb, err, "")

	version := "none"
	if v := out.Item["n"]; v != nil {
		version = textOf(v)
	}

	table, _ := sortKeys(tb, c, dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("p")},
	})
	index, _ := sortKeys(tb, c, byG())

	return version + " " + strings.Join(table, "") + " " + strings.Join(index, "")
}

func TestTableLag_eventualReads_returnOlderVersions(t *testing.T) {
	t.Parallel()

	c := indexed()
	inIndex := func(n string) item { return item{"g": str("G"), "n": num(n)} }

	put(t, c, with("1", inIndex("1")))

	want := func(want string) {
		t.Helper()

		if got := seen(t, c); got != want {
			t.Fatalf("seen %q, want %q", got, want)
		}
	}

	want("1 1 1")
	c.Table.Lag(2)
	want("1 1 1")
	put(t, c, with("1", inIndex("3")))
	put(t, c, with("2", inIndex("2")))
	want("1 1 1")
	put(t, c, with("3", inIndex("5")))
	want("3 1 1")

	_, err := c.Table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{Key: key("1")})
	wantCode(t, err, "")
	want("3 12 21")
	sameItem(t, get(t, c, key("1")), nil)

	c.Table.Lag(1)
	want("3 123 213")
	c.Table.Lag(0)
	want("none 23 23")
}
