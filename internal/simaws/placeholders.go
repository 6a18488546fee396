package simaws

import (
	"slices"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// placeholders are the aliases and values of an expression, without duplicates.
type placeholders struct {
	kind   string
	names  []string
	values []string
}

func (p *placeholders) addName(name string) {
	if !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}

func (p *placeholders) addValue(value string) {
	if !slices.Contains(p.values, value) {
		p.values = append(p.values, value)
	}
}

// scope contains the item, the aliases and the values for the evaluation of an expression.
type scope struct {
	item   item
	names  map[string]string
	values item
}

// name returns the attribute name of an operand.
func (s *scope) name(o operand) string {
	if o.text[0] == '#' {
		return s.names[o.text]
	}

	return o.text
}

// get returns the value of an operand, or nil if the attribute does not exist.
func (s *scope) get(o operand) ddbtypes.AttributeValue {
	if o.isValue() {
		return s.values[o.text]
	}

	return s.item[s.name(o)]
}

// check rejects placeholders that are used but not defined, or that are defined but used by neither expression. An
// expression may be nil.
func (s *scope) check(a, b *placeholders) error {
	if a == nil {
		a, b = b, nil
	}

	if a == nil {
		return s.checkNone()
	}

	if s.names != nil && len(s.names) == 0 {
		return invalid("ExpressionAttributeNames must not be empty")
	}

	if s.values != nil && len(s.values) == 0 {
		return invalid("ExpressionAttributeValues must not be empty")
	}

	names, values := len(a.names), len(a.values)

	if b != nil {
		names += countNew(b.names, a.names)
		values += countNew(b.values, a.values)
	}

	for _, used := range []*placeholders{a, b} {
		if err := s.checkDefined(used); err != nil {
			return err
		}
	}

	if names != len(s.names) {
		return unused("ExpressionAttributeNames", s.names, a, b)
	}

	if values != len(s.values) {
		return unused("ExpressionAttributeValues", s.values, a, b)
	}

	return nil
}

// checkNone is like check for a request without expressions.
func (s *scope) checkNone() error {
	if s.names != nil {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}

	if s.values != nil {
		return invalid("ExpressionAttributeValues can only be specified when using expressions")
	}

	return nil
}

func (s *scope) checkDefined(used *placeholders) error {
	if used == nil {
		return nil
	}

	for _, name := range used.names {
		if _, ok := s.names[name]; !ok {
			return invalid("Invalid %s: An expression attribute name used in the document path is not defined; "+
				"attribute name: %s", used.kind, name)
		}
	}

	for _, value := range used.values {
		v, ok := s.values[value]
		if !ok {
			return invalid("Invalid %s: An expression attribute value used in expression is not defined; "+
				"attribute value: %s", used.kind, value)
		}

		if _, err := valueSize(v); err != nil {
			return err
		}
	}

	return nil
}

func countNew(names, known []string) int {
	n := 0

	for _, name := range names {
		if !slices.Contains(known, name) {
			n++
		}
	}

	return n
}

// unused returns the error for placeholders that no expression uses.
func unused[V any](member string, given map[string]V, a, b *placeholders) error {
	keys := []string{}

	for key := range given {
		if !a.uses(key) && (b == nil || !b.uses(key)) {
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)

	return invalid("Value provided in %s unused in expressions: keys: {%s}", member, strings.Join(keys, ", "))
}

func (p *placeholders) uses(key string) bool {
	return slices.Contains(p.names, key) || slices.Contains(p.values, key)
}
