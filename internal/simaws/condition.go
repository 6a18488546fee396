package simaws

import (
	"bytes"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition is a parsed condition, filter or key condition expression.
type condition struct {
	root node
	used placeholders
}

// placeholders returns the placeholders of a condition, which may be nil.
func (c *condition) placeholders() *placeholders {
	if c == nil {
		return nil
	}

	return &c.used
}

// node is a part of a condition. It is true or false for an item.
type node interface {
	eval(s *scope) (bool, error)
}

type (
	both    struct{ left, right node }
	either  struct{ left, right node }
	negated struct{ of node }
	// parens records parentheses, because DynamoDB rejects redundant parentheses.
	parens     struct{ node }
	comparison struct {
		operator    token
		left, right operand
	}
	between struct{ value, low, high operand }
	oneOf   struct {
		value operand
		list  []operand
	}
	exists struct {
		path operand
		want bool
	}
	beginsWith struct{ path, prefix operand }
)

func (n both) eval(s *scope) (bool, error) {
	ok, err := n.left.eval(s)
	if err != nil || !ok {
		return false, err
	}

	return n.right.eval(s)
}

func (n either) eval(s *scope) (bool, error) {
	ok, err := n.left.eval(s)
	if err != nil || ok {
		return ok, err
	}

	return n.right.eval(s)
}

func (n negated) eval(s *scope) (bool, error) {
	ok, err := n.of.eval(s)

	return !ok, err
}

// eval compares two operands. A missing attribute is unequal to everything, and neither less nor greater.
func (n comparison) eval(s *scope) (bool, error) {
	left, right := s.get(n.left), s.get(n.right)

	switch n.operator {
	case "=":
		return left != nil && right != nil && equal(left, right), nil
	case "<>":
		return left == nil || right == nil || !equal(left, right), nil
	}

	if err := ordered(string(n.operator), s, n.left, n.right); err != nil {
		return false, err
	}

	order, ok := compare(left, right)

	return ok && inOrder(n.operator, order), nil
}

func inOrder(operator token, order int) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

// ordered rejects values in a request whose type has no order.
func ordered(operator string, s *scope, operands ...operand) error {
	for _, o := range operands {
		if !o.isValue() {
			continue
		}

		switch t := typeOf(s.get(o)); t {
		case "S", "N", "B":
		default:
			return invalid("Invalid ConditionExpression: Incorrect operand type for operator or function; "+
				"operator or function: %s, operand type: %s", operator, t)
		}
	}

	return nil
}

func (n between) eval(s *scope) (bool, error) {
	if err := ordered("BETWEEN", s, n.low, n.high); err != nil {
		return false, err
	}

	value, low, high := s.get(n.value), s.get(n.low), s.get(n.high)

	if n.low.isValue() && n.high.isValue() {
		if order, ok := compare(low, high); !ok || order > 0 {
			return false, invalid("Invalid ConditionExpression: The BETWEEN operator requires upper bound to be " +
				"greater than or equal to lower bound")
		}
	}

	above, ok := compare(value, low)
	below, alsoOK := compare(value, high)

	return ok && alsoOK && above >= 0 && below <= 0, nil
}

func (n oneOf) eval(s *scope) (bool, error) {
	value := s.get(n.value)
	if value == nil {
		return false, nil
	}

	for _, o := range n.list {
		if other := s.get(o); other != nil && equal(value, other) {
			return true, nil
		}
	}

	return false, nil
}

func (n exists) eval(s *scope) (bool, error) {
	return (s.get(n.path) != nil) == n.want, nil
}

func (n beginsWith) eval(s *scope) (bool, error) {
	switch prefix := s.get(n.prefix).(type) {
	case *ddbtypes.AttributeValueMemberS:
		value, ok := s.get(n.path).(*ddbtypes.AttributeValueMemberS)

		return ok && strings.HasPrefix(value.Value, prefix.Value), nil
	case *ddbtypes.AttributeValueMemberB:
		value, ok := s.get(n.path).(*ddbtypes.AttributeValueMemberB)

		return ok && bytes.HasPrefix(value.Value, prefix.Value), nil
	case nil:
		return false, nil
	default:
		return false, invalid("Invalid ConditionExpression: Incorrect operand type for operator or function; "+
			"operator or function: begins_with, operand type: %s", typeOf(prefix))
	}
}

// parseCondition parses the text of a condition, filter or key condition.
func parseCondition(kind, text string) (*condition, error) {
	p, err := newParser(kind, text)
	if err != nil {
		return nil, err
	}

	root, err := p.or()
	if err != nil {
		return nil, err
	}

	if p.peek() != "" {
		return nil, p.syntax()
	}

	return &condition{root, p.used}, nil
}

func (p *parser) or() (node, error) {
	left, err := p.and()
	for err == nil && p.accept("OR") {
		var right node

		right, err = p.and()
		left = either{left, right}
	}

	return left, err
}

func (p *parser) and() (node, error) {
	left, err := p.not()
	for err == nil && p.accept("AND") {
		var right node

		right, err = p.not()
		left = both{left, right}
	}

	return left, err
}

func (p *parser) not() (node, error) {
	if !p.accept("NOT") {
		return p.primary()
	}

	of, err := p.not()

	return negated{of}, err
}

func (p *parser) primary() (node, error) {
	if p.peek() == "(" {
		return p.parens()
	}

	if len(p.tokens) > 1 && p.tokens[1] == "(" && isLetter(p.tokens[0][0]) && !p.is("IN") {
		return p.function()
	}

	value, err := p.operand()
	if err != nil {
		return nil, err
	}

	switch {
	case p.accept("BETWEEN"):
		return p.between(value)
	case p.accept("IN"):
		return p.in(value)
	}

	switch operator := p.peek(); operator {
	case "=", "<>", "<", "<=", ">", ">=":
		p.next()

		right, err := p.operand()

		return comparison{operator, value, right}, err
	}

	return nil, p.syntax()
}

func (p *parser) parens() (node, error) {
	p.next()

	inner, err := p.or()
	if err != nil {
		return nil, err
	}

	if _, twice := inner.(parens); twice {
		return nil, invalid("Invalid %s: The expression has redundant parentheses;", p.kind)
	}

	return parens{inner}, p.expect(")")
}

func (p *parser) between(value operand) (node, error) {
	low, err := p.operand()
	if err != nil {
		return nil, err
	}

	if !p.accept("AND") {
		return nil, p.syntax()
	}

	high, err := p.operand()

	return between{value, low, high}, err
}

func (p *parser) in(value operand) (node, error) {
	const most = 100

	list, err := p.arguments()
	if err == nil && (len(list) == 0 || len(list) > most) {
		err = invalid("Invalid %s: Incorrect number of operands for operator or function; operator or function: IN, "+
			"number of operands: %d", p.kind, len(list))
	}

	return oneOf{value, list}, err
}

// arguments reads operands in parentheses.
func (p *parser) arguments() ([]operand, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}

	list := []operand{}

	for {
		o, err := p.operand()
		if err != nil {
			return nil, err
		}

		list = append(list, o)

		if p.peek() != "," {
			return list, p.expect(")")
		}

		p.next()
	}
}

func (p *parser) function() (node, error) {
	name := string(p.next())

	arity := map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2}[name]
	if arity == 0 {
		return nil, unknownFunction(p.kind, name)
	}

	arguments, err := p.arguments()
	if err != nil {
		return nil, err
	}

	if len(arguments) != arity {
		return nil, invalid("Invalid %s: Incorrect number of operands for operator or function; "+
			"operator or function: %s, number of operands: %d", p.kind, name, len(arguments))
	}

	if arguments[0].isValue() {
		return nil, invalid("Invalid %s: Operator or function requires a document path; operator or function: %s",
			p.kind, name)
	}

	switch name {
	case "attribute_exists":
		return exists{arguments[0], true}, nil
	case "attribute_not_exists":
		return exists{arguments[0], false}, nil
	default:
		return beginsWith{arguments[0], arguments[1]}, nil
	}
}

// unknownFunction returns the error for a function: not simulated if DynamoDB has the function, and otherwise invalid.
func unknownFunction(kind, name string) error {
	switch name {
	case "attribute_type", "contains", "size", "list_append", "if_not_exists":
		return unsupported("the function " + name + " in " + kind)
	}

	return invalid("Invalid %s: Invalid function name; function: %s", kind, name)
}
