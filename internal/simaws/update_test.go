package simaws_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/internal/simaws"
)

// sameItem compares items by their values.
func sameItem(tb testing.TB, got, want item) {
	tb.Helper()

	diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(
		ddbtypes.AttributeValueMemberS{}, ddbtypes.AttributeValueMemberN{}, ddbtypes.AttributeValueMemberB{},
		ddbtypes.AttributeValueMemberBOOL{}, ddbtypes.AttributeValueMemberSS{}, ddbtypes.AttributeValueMemberL{},
		ddbtypes.AttributeValueMemberM{}, ddbtypes.AttributeValueMemberNULL{},
	))
	if diff != "" {
		tb.Fatalf("item differs (-want +got):\n%s", diff)
	}
}

// DELETE removes elements of a set. The attribute is removed with the last element.
func TestUpdateItem_deleteFromSet_removesElements(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	set := func(s ...string) *ddbtypes.AttributeValueMemberSS {
		return &ddbtypes.AttributeValueMemberSS{Value: s}
	}
	put(t, c, with("1", item{"s": set("a", "b", "c")}))

	for _, tt := range []struct {
		less, left *ddbtypes.AttributeValueMemberSS
	}{
		{set("b", "unknown"), set("a", "c")},
		{set("a", "c"), nil},
		{set("a"), nil},
	} {
		_, err := c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			Key: key("1"), UpdateExpression: aws.String("DELETE s :v"), ExpressionAttributeValues: item{":v": tt.less},
		})
		wantCode(t, err, "")

		want := item{}
		if tt.left != nil {
			want["s"] = tt.left
		}

		sameItem(t, get(t, c, key("1")), with("1", want))
	}
}

// TestUpdateItem_eachExpression_isAppliedOrRejected updates the item {a: "m", n: 10}.
func TestUpdateItem_eachExpression_isAppliedOrRejected(t *testing.T) {
	t.Parallel()

	one := item{":v": num("1")}

	tests := []struct {
		update string
		values item
		want   item // nil if rejected
	}{
		{"SET a = :v", one, item{"a": num("1"), "n": num("10")}},
		{"SET b = :v, c = a", one, item{"a": str("m"), "n": num("10"), "b": num("1"), "c": str("m")}},
		{"SET n = n + :v", one, item{"a": str("m"), "n": num("11")}},
		{"SET n = n - :v", item{":v": num("0.5")}, item{"a": str("m"), "n": num("9.5")}},
		{"SET n = n - :v", item{":v": num("11")}, item{"a": str("m"), "n": num("-1")}},
		{"SET n = if_not_exists(n, :v)", one, item{"a": str("m"), "n": num("10")}},
		{"SET c = if_not_exists(c, :v) + :v", one, item{"a": str("m"), "n": num("10"), "c": num("2")}},
		{"ADD n :v", one, item{"a": str("m"), "n": num("11")}},
		{"ADD n :v", item{":v": num("99999999999999999999")}, item{"a": str("m"), "n": num("100000000000000000009")}},
		{"ADD c :v", one, item{"a": str("m"), "n": num("10"), "c": num("1")}},
		{
			"ADD c :v",
			item{":v": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}},
			item{"a": str("m"), "n": num("10"), "c": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}},
		},
		{"ADD n :v", item{":v": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}}, nil},
		{"ADD c :v", item{":v": num("01.50")}, item{"a": str("m"), "n": num("10"), "c": num("1.5")}},
		{"REMOVE a, gone", nil, item{"n": num("10")}},
		{"SET a = n, n = a", nil, item{"a": num("10"), "n": str("m")}},
		{"SET b = :v REMOVE a ADD n :v", one, item{"n": num("11"), "b": num("1")}},
		{"SET b = gone", nil, nil},
		{"SET b = a + :v", one, nil},
		{"ADD a :v", one, nil},
		{"ADD n :v", item{":v": str("1")}, nil},
		{"SET sk = :v", item{":v": str("x")}, nil},
		{"SET a = :v, a = :v", one, nil},
		{"SET a = :v REMOVE a", one, nil},
		{"SET a = :v SET b = :v", one, nil},
		{"SET a :v", one, nil},
		{"SET a = :v,", one, nil},
		{"PUT a = :v", one, nil},
		{"SET a = :unknown", nil, nil},
		{"SET a = :v", item{":v": num("x")}, nil},
		{"SET a = list_append(a, :v)", one, nil},
		{"DELETE a :v", one, nil},
		{"DELETE a :v", item{":v": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}}, nil},
		{
			"DELETE c :v",
			item{":v": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}},
			item{"a": str("m"), "n": num("10")},
		},
		{
			"SET a = :v DELETE a :w",
			item{":v": num("1"), ":w": &ddbtypes.AttributeValueMemberSS{Value: []string{"x"}}},
			nil,
		},
		{"SET name = :v", one, nil},
	}

	for _, tt := range tests {
		t.Run(tt.update, func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			old := item{"a": str("m"), "n": num("10")}
			put(t, c, with("1", old))

			out, err := c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				Key: key("1"), UpdateExpression: aws.String(tt.update), ExpressionAttributeValues: tt.values,
				ReturnValues: ddbtypes.ReturnValueAllNew,
			})
			if tt.want == nil {
				if err == nil {
					t.Fatal("accepted")
				}

				sameItem(t, get(t, c, key("1")), with("1", old))

				return
			}

			wantCode(t, err, "")
			sameItem(t, out.Attributes, with("1", tt.want))
			sameItem(t, get(t, c, key("1")), with("1", tt.want))
		})
	}
}

func TestUpdateItem_missingItem_isCreated(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		update *string
		values item
		want   item
	}{
		"set":  {aws.String("SET a = :v"), item{":v": num("1")}, with("1", item{"a": num("1")})},
		"add":  {aws.String("ADD a :v"), item{":v": num("1")}, with("1", item{"a": num("1")})},
		"none": {nil, nil, key("1")},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New()

			_, err := c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				Key: key("1"), UpdateExpression: tt.update, ExpressionAttributeValues: tt.values,
			})
			wantCode(t, err, "")
			sameItem(t, get(t, c, key("1")), tt.want)
		})
	}
}

func TestUpdateItem_eachReturnValues_returnsAttributes(t *testing.T) {
	t.Parallel()

	tests := map[ddbtypes.ReturnValue]item{
		ddbtypes.ReturnValueNone:       nil,
		ddbtypes.ReturnValueAllOld:     with("1", item{"a": num("1"), "b": num("5")}),
		ddbtypes.ReturnValueAllNew:     with("1", item{"a": num("2"), "b": num("5")}),
		ddbtypes.ReturnValueUpdatedOld: {"a": num("1")},
		ddbtypes.ReturnValueUpdatedNew: {"a": num("2")},
	}

	for values, want := range tests {
		t.Run(string(values), func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			put(t, c, with("1", item{"a": num("1"), "b": num("5")}))

			out, err := c.Table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				Key: key("1"), UpdateExpression: aws.String("ADD a :v"),
				ExpressionAttributeValues: item{":v": num("1")},
				ReturnValues:              values,
			})
			wantCode(t, err, "")
			sameItem(t, out.Attributes, want)
		})
	}
}
