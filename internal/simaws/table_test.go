package simaws_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
)

func TestPutItem_invalidItem_isRejected(t *testing.T) {
	t.Parallel()

	big := func(size int) item { return with("1", item{"v": str(strings.Repeat("x", size))}) }
	fixed := len("pk") + len("p") + len("sk") + len("1") + len("v")

	tests := map[string]struct {
		item item
		want string
	}{
		"400 KB":              {big(400<<10 - fixed), ""},
		"over 400 KB":         {big(400<<10 - fixed + 1), isInvalid},
		"no sort key":         {item{"pk": str("p")}, isInvalid},
		"key of another type": {item{"pk": str("p"), "sk": num("1")}, isInvalid},
		"empty key":           {item{"pk": str(""), "sk": str("1")}, isInvalid},
		"long partition key":  {item{"pk": str(strings.Repeat("p", 2049)), "sk": str("1")}, isInvalid},
		"long sort key":       {item{"pk": str("p"), "sk": str(strings.Repeat("s", 1025))}, isInvalid},
		"empty string":        {with("1", item{"a": str("")}), ""},
		"no number":           {with("1", item{"a": num("one")}), isInvalid},
		"39 digits":           {with("1", item{"a": num(strings.Repeat("1", 39))}), isInvalid},
		"overflow":            {with("1", item{"a": num("1e126")}), isInvalid},
		"underflow":           {with("1", item{"a": num("1e-131")}), isInvalid},
		"empty set":           {with("1", item{"a": &ddbtypes.AttributeValueMemberSS{}}), isInvalid},
		"no value":            {with("1", item{"a": nil}), isInvalid},
		"index key type":      {with("1", item{"g": num("1")}), isInvalid},
		"empty index key":     {with("1", item{"g": str("")}), isInvalid},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New(simaws.WithTable(simaws.TableConfig{
				PartitionKey: "pk", SortKey: "sk", Indexes: []simaws.Index{{Name: "g", PartitionKey: "g"}},
			}))

			_, err := c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{Item: tt.item})
			wantCode(t, err, tt.want)
		})
	}
}

func TestPutItem_numbers_areNormalized(t *testing.T) {
	t.Parallel()

	tests := map[string]string{
		"1": "1", "-7": "-7", "0": "0", "-0": "0", "007": "7", "1.50": "1.5", "+3": "3", "1e3": "1000", "12E-1": "1.2",
		"-0.00120": "-0.0012", "1e-3": "0.001", "123456789012345678901234567890": "123456789012345678901234567890",
	}

	c := simaws.New()

	for in, want := range tests {
		put(t, c, with("1", item{"n": num(in)}))
		sameItem(t, get(t, c, key("1")), with("1", item{"n": num(want)}))
	}
}

func TestTable_callerChangesItem_storedItemIsUnchanged(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	mine := with("1", item{"a": str("x")})
	put(t, c, mine)

	mine["a"] = str("changed")
	got := get(t, c, key("1"))
	got["b"] = str("added")

	sameItem(t, get(t, c, key("1")), with("1", item{"a": str("x")}))
}

func TestPutItem_conditionFails_returnsTheItemIfRequested(t *testing.T) {
	t.Parallel()

	for _, values := range []ddbtypes.ReturnValuesOnConditionCheckFailure{"", "NONE", "ALL_OLD"} {
		t.Run(string(values), func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			put(t, c, with("1", item{"nonce": str("a")}))

			_, err := c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{
				Item: key("1"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
				ReturnValuesOnConditionCheckFailure: values,
			})

			var failed *ddbtypes.ConditionalCheckFailedException
			if !errors.As(err, &failed) {
				t.Fatal(err)
			}

			var want item
			if values == "ALL_OLD" {
				want = with("1", item{"nonce": str("a")})
			}

			sameItem(t, failed.Item, want)
		})
	}
}

func TestDeleteItem_existingOrMissingItem_returnsTheOldItem(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	put(t, c, with("1", item{"a": str("x")}))

	in := &dynamodb.DeleteItemInput{Key: key("1"), ReturnValues: ddbtypes.ReturnValueAllOld}

	out, err := c.Table.DeleteItem(t.Context(), in)
	wantCode(t, err, "")
	sameItem(t, out.Attributes, with("1", item{"a": str("x")}))
	sameItem(t, get(t, c, key("1")), nil)

	out, err = c.Table.DeleteItem(t.Context(), in)
	wantCode(t, err, "")
	sameItem(t, out.Attributes, nil)

	in.ConditionExpression = aws.String("attribute_exists(pk)")
	_, err = c.Table.DeleteItem(t.Context(), in)
	wantCode(t, err, conditionFails)
}

func TestGetAndUpdateItem_keyDoesNotFitTheTable_isRejected(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		name string
		key  item
		want string
	}{
		"fits":          {"hub", key("1"), ""},
		"too much":      {"hub", with("1", item{"a": str("x")}), isInvalid},
		"too little":    {"hub", item{"pk": str("p")}, isInvalid},
		"other key":     {"hub", item{"pk": str("p"), "a": str("x")}, isInvalid},
		"empty":         {"hub", item{"pk": str("p"), "sk": str("")}, isInvalid},
		"another table": {"other", key("1"), "ResourceNotFoundException"},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New(simaws.WithTable(simaws.TableConfig{Name: "hub", PartitionKey: "pk", SortKey: "sk"}))

			_, err := c.Table.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tt.name, Key: tt.key})
			wantCode(t, err, tt.want)

			_, err = c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tt.name, Key: tt.key})
			wantCode(t, err, tt.want)
		})
	}
}
