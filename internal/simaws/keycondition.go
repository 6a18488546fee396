package simaws

import (
	"cmp"
	"strings"
)

// span is the part of an ordered partition that a key condition selects.
type span struct {
	partition string
	operator  token // "" selects the whole partition
	low, high string
}

// side returns -1, 0 or 1 if a sort key is before, in or after the span.
func (s span) side(sort string) int {
	order := cmp.Compare(sort, s.low)

	switch s.operator {
	case "":
		return 0
	case "=":
		return order
	case "<", "<=":
		if inOrder(s.operator, order) {
			return 0
		}

		return 1
	case ">", ">=":
		if inOrder(s.operator, order) {
			return 0
		}

		return -1
	case "BETWEEN":
		return min(0, order) + max(0, cmp.Compare(sort, s.high))
	default: // begins_with
		if strings.HasPrefix(sort, s.low) {
			return 0
		}

		return order
	}
}

// spanOf parses a key condition for the keys of the table or of an index.
func (sc *schema) spanOf(c *condition, s *scope, partitionKey, sortKey string) (span, error) {
	out, found := span{}, false

	for _, n := range conjuncts(c.root) {
		path, operator, operands, err := keyTerm(n)
		if err != nil {
			return span{}, err
		}

		name := s.name(path)
		switch {
		case name == partitionKey && operator == "=" && !found:
			if out.partition, err = sc.keyOperand(s, name, operands[0]); err != nil {
				return span{}, err
			}

			out.partition, found = sc.space+out.partition, true
		case name == sortKey && sortKey != "" && out.operator == "":
			if err := sc.sortTerm(&out, s, name, operator, operands); err != nil {
				return span{}, err
			}
		case name == partitionKey || name == sortKey:
			return span{}, invalid("Query key condition not supported")
		default:
			return span{}, invalid("Query condition missed key schema element: %s",
				missing(found, partitionKey, sortKey))
		}
	}

	if !found {
		return span{}, invalid("Query condition missed key schema element: %s", partitionKey)
	}

	return out, nil
}

func missing(found bool, partitionKey, sortKey string) string {
	if found {
		return sortKey
	}

	return partitionKey
}

func (sc *schema) sortTerm(out *span, s *scope, name string, operator token, operands []operand) error {
	low, err := sc.keyOperand(s, name, operands[0])
	if err != nil {
		return err
	}

	out.operator, out.low = operator, low
	if len(operands) == 1 {
		return nil
	}

	if out.high, err = sc.keyOperand(s, name, operands[1]); err != nil {
		return err
	}

	if out.low > out.high {
		return invalid("Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than " +
			"or equal to lower bound")
	}

	return nil
}

// keyOperand returns the text of a value in a comparison with a key.
func (sc *schema) keyOperand(s *scope, name string, o operand) (string, error) {
	if !o.isValue() {
		return "", invalid("Invalid KeyConditionExpression: The key %s must be compared with a value", name)
	}

	text, problem := sc.keyText(name, s.get(o))
	if problem != "" {
		return "", invalid("One or more parameter values were invalid: Condition parameter type does not match " +
			"schema type")
	}

	if text == "" {
		return "", invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot "+
			"contain an empty string value. Key: %s", name)
	}

	return text, nil
}

// conjuncts returns the parts of an expression that AND joins.
func conjuncts(n node) []node {
	switch n := n.(type) {
	case both:
		return append(conjuncts(n.left), conjuncts(n.right)...)
	case parens:
		return conjuncts(n.node)
	default:
		return []node{n}
	}
}

// keyTerm parses one part of a key condition.
func keyTerm(n node) (path operand, operator token, operands []operand, err error) {
	switch n := n.(type) {
	case comparison:
		if n.operator == "<>" {
			err = invalid("Unsupported operator on KeyCondition: operator: <>")
		}

		path, operator, operands = n.left, n.operator, []operand{n.right}
	case between:
		path, operator, operands = n.value, "BETWEEN", []operand{n.low, n.high}
	case beginsWith:
		path, operator, operands = n.path, "begins_with", []operand{n.prefix}
	default:
		err = invalid("Invalid operator used in KeyConditionExpression")
	}

	if err == nil && path.isValue() {
		err = invalid("Invalid KeyConditionExpression: Syntax error; token: %q", path.text)
	}

	return path, operator, operands, err
}
