package simaws_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
)

const (
	conditionFails = "ConditionalCheckFailedException"
	isInvalid      = "ValidationException"
	notSimulated   = "?"
)

// TestConditionExpression_eachOperator_isEvaluated replaces the item {a: "m", n: 10, t: true}, which has no attribute
// "gone", under each condition.
func TestConditionExpression_eachOperator_isEvaluated(t *testing.T) {
	t.Parallel()

	s, n := item{":s": str("m")}, item{":n": num("10")}

	tests := []struct {
		condition string
		values    item
		want      string
	}{
		{"a = :s", s, ""},
		{"a = :s", item{":s": str("x")}, conditionFails},
		{"n = :n", item{":n": num("1e1")}, ""},
		{"n = :s", s, conditionFails},
		{"gone = :s", s, conditionFails},
		{"gone <> :s", s, ""},
		{"a <> :s", s, conditionFails},
		{"n <> :s", s, ""},
		{"n < :n", item{":n": num("10.5")}, ""},
		{"n < :n", n, conditionFails},
		{"n <= :n", n, ""},
		{"n > :n", item{":n": num("9")}, ""},
		{"n > :n", item{":n": num("-100")}, ""},
		{"n >= :n", item{":n": num("11")}, conditionFails},
		{"a > :n", n, conditionFails},
		{"gone < :n", n, conditionFails},
		{"t < :b", item{":b": &ddbtypes.AttributeValueMemberBOOL{Value: true}}, isInvalid},
		{"t = :b", item{":b": &ddbtypes.AttributeValueMemberBOOL{Value: true}}, ""},
		{"n BETWEEN :l AND :h", item{":l": num("2"), ":h": num("10")}, ""},
		{"n BETWEEN :l AND :h", item{":l": num("11"), ":h": num("12")}, conditionFails},
		{"n BETWEEN :l AND :h", item{":l": num("3"), ":h": num("2")}, isInvalid},
		{"a IN (:x, :y)", item{":x": str("k"), ":y": str("m")}, ""},
		{"a IN (:x)", item{":x": str("k")}, conditionFails},
		{"attribute_exists(a) AND attribute_not_exists(gone)", nil, ""},
		{"attribute_exists(gone)", nil, conditionFails},
		{"begins_with(a, :p)", item{":p": str("m")}, ""},
		{"begins_with(a, :p)", item{":p": str("mm")}, conditionFails},
		{"begins_with(n, :p)", item{":p": str("1")}, conditionFails},
		{"begins_with(a, :p)", item{":p": num("1")}, isInvalid},
		{"NOT a = :s", s, conditionFails},
		{"NOT attribute_exists(a) OR n = :n", n, ""},
		{"attribute_exists(a) OR attribute_exists(gone) AND attribute_exists(gone)", nil, ""},
		{"(attribute_exists(a) OR attribute_exists(gone)) AND attribute_exists(gone)", nil, conditionFails},
		{"not (attribute_exists(gone) or attribute_exists(absent)) and a = :s", s, ""},
		{"((a = :s))", s, isInvalid},
		{"a = ", nil, isInvalid},
		{"a :s", s, isInvalid},
		{"a = :s b", s, isInvalid},
		{"a = :s AND", s, isInvalid},
		{"a ! :s", s, isInvalid},
		{"status = :s", s, isInvalid},
		{"Name = :s", s, isInvalid},
		{"frobnicate(a)", nil, isInvalid},
		{"attribute_exists(:s)", s, isInvalid},
		{"begins_with(a)", nil, isInvalid},
		{"", nil, isInvalid},
		{"a = :unknown", s, isInvalid},
		{"a = :s", item{":s": str("m"), ":t": str("n")}, isInvalid},
		{"attribute_exists(a)", item{}, isInvalid},
		{"attribute_exists(a.b)", nil, notSimulated},
		{"size(a) = :n", n, notSimulated},
		{"contains(a, :s)", s, notSimulated},
	}

	for _, tt := range tests {
		t.Run(tt.condition, func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			old := with("1", item{"a": str("m"), "n": num("10"), "t": &ddbtypes.AttributeValueMemberBOOL{Value: true}})
			put(t, c, old)

			_, err := c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{
				Item: key("1"), ConditionExpression: aws.String(tt.condition), ExpressionAttributeValues: tt.values,
			})
			wantCode(t, err, tt.want)

			if replaced := len(get(t, c, key("1"))) == 2; replaced != (tt.want == "") {
				t.Fatalf("item replaced: %v", replaced)
			}
		})
	}
}

func TestConditionExpression_equalityOfEachType_comparesValues(t *testing.T) {
	t.Parallel()

	type av = ddbtypes.AttributeValue

	list := func(vs ...av) av { return &ddbtypes.AttributeValueMemberL{Value: vs} }
	fields := func(it item) av { return &ddbtypes.AttributeValueMemberM{Value: it} }

	tests := map[string]struct {
		a, b av
		want bool
	}{
		"binary": {
			&ddbtypes.AttributeValueMemberB{Value: []byte("x")}, &ddbtypes.AttributeValueMemberB{Value: []byte("x")},
			true,
		},
		"binary differs": {
			&ddbtypes.AttributeValueMemberB{Value: []byte("x")}, &ddbtypes.AttributeValueMemberB{Value: []byte("y")},
			false,
		},
		"null": {
			&ddbtypes.AttributeValueMemberNULL{Value: true}, &ddbtypes.AttributeValueMemberNULL{Value: true}, true,
		},
		"list":        {list(str("a"), num("1")), list(str("a"), num("1.0")), true},
		"list order":  {list(str("a"), str("b")), list(str("b"), str("a")), false},
		"map":         {fields(item{"k": num("1")}), fields(item{"k": num("1")}), true},
		"map differs": {fields(item{"k": num("1")}), fields(item{"k": num("2")}), false},
		"string set": {
			&ddbtypes.AttributeValueMemberSS{Value: []string{"a", "b"}},
			&ddbtypes.AttributeValueMemberSS{Value: []string{"b", "a"}}, true,
		},
		"number set": {
			&ddbtypes.AttributeValueMemberNS{Value: []string{"1", "2"}},
			&ddbtypes.AttributeValueMemberNS{Value: []string{"2.0", "1"}}, true,
		},
		"binary set": {
			&ddbtypes.AttributeValueMemberBS{Value: [][]byte{{1}}},
			&ddbtypes.AttributeValueMemberBS{Value: [][]byte{{2}}}, false,
		},
		"string no number": {str("1"), num("1"), false},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := simaws.New()
			put(t, c, with("1", item{"a": tt.a}))

			_, err := c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{
				Item: key("1"), ConditionExpression: aws.String("a = :b"), ExpressionAttributeValues: item{":b": tt.b},
			})
			if (err == nil) != tt.want {
				t.Fatalf("equal %v, want %v: %v", err == nil, tt.want, err)
			}
		})
	}
}

func TestExpressionAttributeNames_undefinedOrUnused_areRejected(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		condition string
		names     map[string]string
		want      string
	}{
		"reserved word": {"attribute_not_exists(#s)", map[string]string{"#s": "status"}, ""},
		"not defined":   {"attribute_not_exists(#t)", map[string]string{"#s": "status"}, isInvalid},
		"not used":      {"attribute_not_exists(a)", map[string]string{"#s": "status"}, isInvalid},
		"empty":         {"attribute_not_exists(a)", map[string]string{}, isInvalid},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := simaws.New().Table.PutItem(t.Context(), &dynamodb.PutItemInput{
				Item: key("1"), ConditionExpression: &tt.condition, ExpressionAttributeNames: tt.names,
			})
			wantCode(t, err, tt.want)
		})
	}
}
