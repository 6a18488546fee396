package rules

import (
	"fmt"
	"slices"
	"strings"
)

// mostListed is the number of operands of IN.
const mostListed = 100

// parser parses an expression of DynamoDB. Its syntax is in "Using expressions in DynamoDB".
type parser struct {
	tokens        []string
	names, values fields // of the placeholders
	fault         string // the first one
	// terms are the comparisons of a condition. alternatives is true if it has OR or NOT.
	terms        []term
	alternatives bool
}

// term is a comparison, or a call of a function that returns a boolean. Its operands are paths, as their parts, and
// placeholders of values.
type term struct {
	operator string
	operands [][]string
}

// parse returns the terms of an expression, or its first violation of the syntax.
func parse(in fields, name string) (p parser) {
	p = parser{tokens: tokens(text(in, name)), names: object(in, attributeNames), values: object(in, attributeValues)}
	switch name {
	case updateExpression:
		p.update()
	case projectionExpression:
		p.paths()
	default:
		p.condition()
	}
	if len(p.tokens) > 0 {
		p.failf("unexpected %q", shorten(p.tokens[0]))
	}
	return p
}

// failf records the first violation, and skips the rest of the expression.
func (p *parser) failf(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf(format, args...)
	}
	p.tokens = nil
}

// peek returns the next token, or an empty string at the end.
func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	token := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
	}
	return token
}

// accept skips the next token if it is one of the given ones. Keywords have no case.
func (p *parser) accept(wanted ...string) (token string, ok bool) {
	token = strings.ToUpper(p.peek())
	if token == "" || !slices.Contains(wanted, token) {
		return "", false
	}
	p.next()
	return token, true
}

func (p *parser) expect(wanted string) {
	if _, ok := p.accept(wanted); !ok && p.fault == "" {
		p.failf("want %s, got %q", wanted, shorten(p.peek()))
	}
}

// isCall reports whether the next tokens are the name of a function and a parenthesis.
func (p *parser) isCall() bool {
	return len(p.tokens) > 1 && p.tokens[1] == "(" && isNameByte(p.tokens[0][0])
}

// condition parses a condition, a filter or a key condition.
func (p *parser) condition() {
	p.all()
	for p.fault == "" {
		if _, ok := p.accept("OR"); !ok {
			return
		}
		p.alternatives = true
		p.all()
	}
}

func (p *parser) all() {
	p.one()
	for p.fault == "" {
		if _, ok := p.accept("AND"); !ok {
			return
		}
		p.one()
	}
}

func (p *parser) one() {
	if _, ok := p.accept("NOT"); ok {
		p.alternatives = true
		p.one()
		return
	}
	if _, ok := p.accept("("); ok {
		p.condition()
		p.expect(")")
		return
	}
	if p.isCall() && p.peek() != sizeOf {
		p.test()
		return
	}
	p.comparison()
}

// tests are the functions that return a boolean, with the number of their operands.
var tests = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, beginsWith: 2, "contains": 2,
}

// test parses a call of a function that returns a boolean.
func (p *parser) test() {
	name := p.next()
	count, ok := tests[name]
	if !ok {
		p.failf("unknown function %q", shorten(name))
		return
	}
	t := term{operator: name}
	p.expect("(")
	t.operands = append(t.operands, p.operand())
	for range count - 1 {
		p.expect(",")
		t.operands = append(t.operands, p.operand())
	}
	p.expect(")")
	if p.fault != "" {
		return
	}
	if strings.HasPrefix(name, "attribute_") && isValue(t.operands[0]) {
		p.failf("%s requires a path", name)
	}
	if name == beginsWith {
		p.wantType(name, t.operands[1], "S", "B")
	}
	p.terms = append(p.terms, t)
}

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

func (p *parser) comparison() {
	t := term{operands: [][]string{p.operand()}}
	operator, ok := p.accept(append([]string{between, "IN"}, comparators...)...)
	if !ok {
		p.failf("want an operator, got %q", shorten(p.peek()))
		return
	}
	t.operator = operator
	switch operator {
	case between:
		t.operands = append(t.operands, p.operand())
		p.expect("AND")
		t.operands = append(t.operands, p.operand())
	case "IN":
		p.expect("(")
		for more := true; more && p.fault == ""; _, more = p.accept(",") {
			t.operands = append(t.operands, p.operand())
		}
		p.expect(")")
		if n := len(t.operands) - 1; n > mostListed {
			p.failf("IN has %d operands, want at most %d", n, mostListed)
		}
	default:
		t.operands = append(t.operands, p.operand())
	}
	p.terms = append(p.terms, t)
}

// operand parses a path, the placeholder of a value, or the size of a path.
func (p *parser) operand() []string {
	switch {
	case strings.HasPrefix(p.peek(), ":"):
		return []string{p.next()}
	case p.isCall() && p.peek() == sizeOf:
		p.next()
		p.expect("(")
		path := p.operand()
		p.expect(")")
		return []string{sizeOf, strings.Join(path, "")}
	default:
		return p.path()
	}
}

// path parses a document path.
func (p *parser) path() []string {
	path := []string{p.name()}
	for p.fault == "" {
		if _, ok := p.accept("."); ok {
			path = append(path, p.name())
			continue
		}
		if _, ok := p.accept("["); !ok {
			break
		}
		index := p.next()
		if index == "" || strings.Trim(index, "0123456789") != "" {
			p.failf("%q is not an index of a list", shorten(index))
		}
		p.expect("]")
		path = append(path, "["+index+"]")
	}
	return path
}

// name parses the name of an attribute. It replaces a placeholder by its name.
func (p *parser) name() string {
	token := p.peek()
	switch {
	case token == "" || !isWord(token) || token == "#" || strings.Trim(token, "0123456789") == "":
		p.failf("want a name, got %q", shorten(token))
	case p.isCall():
		p.failf("unexpected function %q", shorten(token))
	}
	if name := text(p.names, token); name != "" {
		token = name
	}
	p.next()
	return token
}

// paths parses the paths of a projection, which must not overlap.
func (p *parser) paths() {
	var found [][]string
	for more := true; more && p.fault == ""; _, more = p.accept(",") {
		path := p.path()
		for _, other := range found {
			if n := min(len(other), len(path)); slices.Equal(other[:n], path[:n]) {
				p.failf("two paths overlap: %s", strings.Join(path, "."))
			}
		}
		found = append(found, path)
	}
}

func isValue(operand []string) bool { return strings.HasPrefix(operand[0], ":") }

// wantType reports a value of another type than those of an operator.
func (p *parser) wantType(operator string, operand []string, types ...string) {
	if !isValue(operand) {
		return
	}
	for kind := range object(p.values, operand[0]) {
		if !slices.Contains(types, kind) {
			p.failf("%s has the value %s of the type %s", operator, operand[0], kind)
		}
	}
}
