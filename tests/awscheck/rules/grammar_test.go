package rules_test

import (
	"strings"
	"testing"
)

// with starts the values of a request.
const with = `,"ExpressionAttributeValues":`

func deletion(condition, values string) string {
	return `{"TableName":"hub",` + key + `,"ConditionExpression":"` + condition + `"` + values + `}`
}

func projection(expression, more string) string {
	return `{"TableName":"hub",` + key + `,"ProjectionExpression":"` + expression + `"` + more + `}`
}

func TestCheck_syntaxOfUpdate_violatesOneRule(t *testing.T) {
	const s, n = with + `{":v":{"S":"x"}}`, with + `{":v":{"N":"1"}}`
	const at = "UpdateExpression: "
	for name, c := range map[string]rejected{
		"no clause":              {"dynamodb:UpdateItem", update("a = :v", s), at + `want a clause, got "a"`},
		"repeated clause":        {"dynamodb:UpdateItem", update("SET a = :v set b = :v", s), at + "the clause SET occurs twice"},
		"no operator":            {"dynamodb:UpdateItem", update("SET a :v", s), at + `want =, got ":v"`},
		"no operand":             {"dynamodb:UpdateItem", update("SET a = :v, b =", s), at + `want a name, got ""`},
		"comma at the end":       {"dynamodb:UpdateItem", update("SET a = :v,", s), at + `want a name, got ""`},
		"open parenthesis":       {"dynamodb:UpdateItem", update("SET a = if_not_exists(a, :v", s), at + `want ), got ""`},
		"unknown function":       {"dynamodb:UpdateItem", update("SET a = if_exists(a, :v)", s), at + `unknown function "if_exists"`},
		"function of a value":    {"dynamodb:UpdateItem", update("SET a = if_not_exists(:v, :v)", s), at + `want a name, got ":v"`},
		"function as a path":     {"dynamodb:UpdateItem", update("REMOVE size(a)", ""), at + `unexpected function "size"`},
		"three operands":         {"dynamodb:UpdateItem", update("SET a = a + :v - :v", n), at + `want a clause, got "-"`},
		"sum of a text":          {"dynamodb:UpdateItem", update("SET a = a + :v", s), at + "+ has the value :v of the type S"},
		"list_append of a text":  {"dynamodb:UpdateItem", update("SET a = list_append(a, :v)", s), at + "list_append has the value :v of the type S"},
		"addition of a text":     {"dynamodb:UpdateItem", update("ADD a :v", s), at + "ADD has the value :v of the type S"},
		"addition of a path":     {"dynamodb:UpdateItem", update("ADD a b", ""), at + `want a value, got "b"`},
		"deletion from no set":   {"dynamodb:UpdateItem", update("DELETE a :v", n), at + "DELETE has the value :v of the type N"},
		"removal of a value":     {"dynamodb:UpdateItem", update("REMOVE :v", s), at + `want a name, got ":v"`},
		"number":                 {"dynamodb:UpdateItem", update("SET a = 1", ""), at + `want a name, got "1"`},
		"index that is a name":   {"dynamodb:UpdateItem", update("SET a[x] = :v", s), at + `"x" is not an index of a list`},
		"punctuation at the end": {"dynamodb:UpdateItem", update("SET a = :v;", s), at + `want a clause, got ";"`},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_syntaxOfCondition_violatesOneRule(t *testing.T) {
	const s, n = with + `{":v":{"S":"x"}}`, with + `{":v":{"N":"1"}}`
	const at = "ConditionExpression: "
	for name, c := range map[string]rejected{
		"no operator":           {"dynamodb:DeleteItem", deletion("a", ""), at + `want an operator, got ""`},
		"unknown operator":      {"dynamodb:DeleteItem", deletion("a == :v", s), at + `want an operator, got "=="`},
		"AND at the end":        {"dynamodb:DeleteItem", deletion("a = :v AND", s), at + `want a name, got ""`},
		"no AND":                {"dynamodb:DeleteItem", deletion("a = :v b = :v", s), at + `unexpected "b"`},
		"open parenthesis":      {"dynamodb:DeleteItem", deletion("(a = :v", s), at + `want ), got ""`},
		"closed parenthesis":    {"dynamodb:DeleteItem", deletion("a = :v)", s), at + `unexpected ")"`},
		"unknown function":      {"dynamodb:DeleteItem", deletion("attribute_exist(a)", ""), at + `unknown function "attribute_exist"`},
		"case of a function":    {"dynamodb:DeleteItem", deletion("Attribute_Exists(a)", ""), at + `unknown function "Attribute_Exists"`},
		"one operand":           {"dynamodb:DeleteItem", deletion("begins_with(a)", ""), at + `want ,, got ")"`},
		"three operands":        {"dynamodb:DeleteItem", deletion("contains(a, :v, b)", s), at + `want ), got ","`},
		"existence of a value":  {"dynamodb:DeleteItem", deletion("attribute_not_exists(:v)", s), at + "attribute_not_exists requires a path"},
		"start of a number":     {"dynamodb:DeleteItem", deletion("begins_with(a, :v)", n), at + "begins_with has the value :v of the type N"},
		"size as a condition":   {"dynamodb:DeleteItem", deletion("size(a)", ""), at + `want an operator, got ""`},
		"one bound":             {"dynamodb:DeleteItem", deletion("a BETWEEN :v", s), at + `want AND, got ""`},
		"list without brackets": {"dynamodb:DeleteItem", deletion("a IN :v", s), at + `want (, got ":v"`},
		"101 operands of IN":    {"dynamodb:DeleteItem", deletion("a IN (:v"+strings.Repeat(",:v", 100)+")", s), at + "IN has 101 operands, want at most 100"},
		"filter":                {"dynamodb:Scan", `{"TableName":"hub","FilterExpression":"exists(a)"}`, `FilterExpression: unknown function "exists"`},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_syntaxOfProjection_violatesOneRule(t *testing.T) {
	const at = "ProjectionExpression: "
	for name, c := range map[string]rejected{
		"no comma":             {"dynamodb:GetItem", projection("a b", ""), at + `unexpected "b"`},
		"comma at the end":     {"dynamodb:GetItem", projection("a,", ""), at + `want a name, got ""`},
		"same path":            {"dynamodb:GetItem", projection("a, #a", `,"ExpressionAttributeNames":{"#a":"a"}`), at + "two paths overlap: a"},
		"path in a path":       {"dynamodb:GetItem", projection("a[1].b, a[1]", ""), at + "two paths overlap: a.[1]"},
		"placeholder of no ID": {"dynamodb:GetItem", projection("#", `,"ExpressionAttributeNames":{"#":"a"}`), at + `want a name, got "#"`},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_validSyntax_isAccepted(t *testing.T) {
	for name, c := range map[string]struct{ operation, input string }{
		"nested functions": {"dynamodb:UpdateItem", update("SET a = list_append(if_not_exists(a, :l), :l), b[0].c = b[1] - :n ADD d :s, e :n DELETE f :s REMOVE g.h[2]", with+`{":l":{"L":[]},":n":{"N":"1"},":s":{"SS":["x"]}}`)},
		"condition":        {"dynamodb:DeleteItem", deletion("(a = :v OR NOT (size(b) >= size(c.d))) AND attribute_type(e, :v) AND contains(f, g) AND :v IN (h, i) AND j BETWEEN k AND :v", with+`{":v":{"S":"x"}}`)},
		"projection":       {"dynamodb:GetItem", projection("a.b, a.c, d[0], d[1], e", "")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(t, c.operation, c.input); len(got) > 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}
