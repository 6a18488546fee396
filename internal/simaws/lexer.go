package simaws

import (
	"strings"

	"github.com/perdure/perdure/internal/reservedwords"
)

// token is a token of an expression: an operator, a bracket, a name, or a placeholder with its "#" or ":".
type token string

// tokenize splits an expression into tokens. kind is the request parameter of the expression, for error messages.
func tokenize(kind, text string) ([]token, error) {
	tokens := []token{}

	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.IndexByte("()=,+-", c) >= 0:
			tokens = append(tokens, token(c))
			i++
		case c == '<' || c == '>':
			n := operatorLength(text[i:])
			tokens = append(tokens, token(text[i:i+n]))
			i += n
		case c == '#' || c == ':' || isLetter(c):
			n := 1 + wordLength(text[i+1:])
			tokens = append(tokens, token(text[i:i+n]))
			i += n
		case c == '.' || c == '[':
			return nil, unsupported("a document path in " + kind)
		default:
			return nil, invalid("Invalid %s: Syntax error; token: \"%c\", near: %q", kind, c, text[max(0, i-1):])
		}
	}

	return tokens, nil
}

func operatorLength(s string) int {
	if strings.HasPrefix(s, "<=") || strings.HasPrefix(s, "<>") || strings.HasPrefix(s, ">=") {
		return len("<=")
	}

	return len("<")
}

func wordLength(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || (s[n] >= '0' && s[n] <= '9')) {
		n++
	}

	return n
}

func isLetter(c byte) bool {
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

// parser reads the tokens of an expression and collects its placeholders.
type parser struct {
	kind   string
	tokens []token
	used   placeholders
}

func newParser(kind, text string) (*parser, error) {
	tokens, err := tokenize(kind, text)
	if err != nil {
		return nil, err
	}

	if len(tokens) == 0 {
		return nil, invalid("Invalid %s: The expression can not be empty;", kind)
	}

	return &parser{kind: kind, tokens: tokens, used: placeholders{kind: kind}}, nil
}

// peek returns the next token, or "" at the end.
func (p *parser) peek() token {
	if len(p.tokens) == 0 {
		return ""
	}

	return p.tokens[0]
}

func (p *parser) next() token {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}

	return t
}

// is reports whether the next token is this keyword, in upper or lower case.
func (p *parser) is(keyword string) bool { return strings.EqualFold(string(p.peek()), keyword) }

// accept consumes the next token if it equals the argument.
func (p *parser) accept(keyword string) bool {
	if !p.is(keyword) {
		return false
	}

	p.next()

	return true
}

func (p *parser) expect(t token) error {
	if p.peek() != t {
		return p.syntax()
	}

	p.next()

	return nil
}

func (p *parser) syntax() error {
	if p.peek() == "" {
		return invalid("Invalid %s: Syntax error; token: <EOF>", p.kind)
	}

	return invalid("Invalid %s: Syntax error; token: %q", p.kind, p.peek())
}

// operand is the source of a value: an attribute by its name or alias, or a placeholder of a value.
type operand struct {
	text string
}

func (o operand) isValue() bool { return o.text[0] == ':' }

// operand parses a name, an alias or a value.
func (p *parser) operand() (operand, error) {
	t := string(p.peek())
	if t == "" || strings.Contains("()=,+-<>=", t) || //nolint:gocritic // t is looked for among these
		t == "<>" || t == "<=" || t == ">=" || t == "#" || t == ":" {
		return operand{}, p.syntax()
	}

	switch t[0] {
	case '#':
		p.used.addName(t)
	case ':':
		p.used.addValue(t)
	default:
		if reservedwords.Has(t) {
			return operand{}, invalid(
				"Invalid %s: Attribute name is a reserved keyword; reserved keyword: %s", p.kind, t)
		}
	}

	p.next()

	return operand{t}, nil
}

// path parses a name or an alias.
func (p *parser) path() (operand, error) {
	if strings.HasPrefix(string(p.peek()), ":") {
		return operand{}, p.syntax()
	}

	return p.operand()
}
