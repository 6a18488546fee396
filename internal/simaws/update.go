package simaws

import (
	"maps"
	"slices"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// update is a parsed update expression.
type update struct {
	sets    []assignment
	adds    []assignment
	deletes []assignment
	removes []operand
	used    placeholders
}

// placeholders returns the placeholders of an update, which may be nil.
func (u *update) placeholders() *placeholders {
	if u == nil {
		return nil
	}

	return &u.used
}

// assignment is a SET, ADD or DELETE action: the attribute, and the value to set, add or delete.
type assignment struct {
	path  operand
	value term
}

// term is the right side of a SET: a source, or the sum or difference of two sources.
type term struct {
	first    source
	operator token // "+", "-" or none
	second   source
}

// source is an operand, or an if_not_exists with an attribute and a default operand.
type source struct {
	path    operand // the attribute of if_not_exists, or empty
	operand operand
}

// parseUpdate parses the text of an update expression.
func parseUpdate(text string) (*update, error) {
	const kind = "UpdateExpression"

	p, err := newParser(kind, text)
	if err != nil {
		return nil, err
	}

	u := &update{}
	seen := map[string]bool{}

	for p.peek() != "" {
		section := strings.ToUpper(string(p.next()))
		if seen[section] {
			return nil, invalid("Invalid %s: The %q section can only be used once in an update expression;",
				kind, section)
		}

		seen[section] = true

		if err := p.section(u, section); err != nil {
			return nil, err
		}
	}

	u.used = p.used

	return u, nil
}

// section parses the actions of one section.
func (p *parser) section(u *update, section string) error {
	for {
		var err error

		switch section {
		case "SET":
			err = p.set(u)
		case "ADD":
			err = p.change(&u.adds)
		case "REMOVE":
			err = p.remove(u)
		case "DELETE":
			err = p.change(&u.deletes)
		default:
			err = invalid("Invalid %s: Syntax error; token: %q", p.kind, section)
		}

		if err != nil || p.peek() != "," {
			return err
		}

		p.next()
	}
}

func (p *parser) set(u *update) error {
	path, err := p.path()
	if err != nil {
		return err
	}

	if err := p.expect("="); err != nil {
		return err
	}

	value, err := p.term()
	u.sets = append(u.sets, assignment{path, value})

	return err
}

// change parses an action of ADD or DELETE.
func (p *parser) change(to *[]assignment) error {
	path, err := p.path()
	if err != nil {
		return err
	}

	if !strings.HasPrefix(string(p.peek()), ":") {
		return p.syntax()
	}

	value, err := p.operand()
	*to = append(*to, assignment{path, term{first: source{operand: value}}})

	return err
}

func (p *parser) remove(u *update) error {
	path, err := p.path()
	u.removes = append(u.removes, path)

	return err
}

func (p *parser) term() (term, error) {
	first, err := p.source()
	if err != nil {
		return term{}, err
	}

	t := term{first: first}
	if operator := p.peek(); operator == "+" || operator == "-" {
		t.operator = p.next()
		t.second, err = p.source()
	}

	return t, err
}

func (p *parser) source() (source, error) {
	if len(p.tokens) < 2 || p.tokens[1] != "(" {
		o, err := p.operand()

		return source{operand: o}, err
	}

	name := string(p.next())
	if name != "if_not_exists" {
		return source{}, unknownFunction(p.kind, name)
	}

	arguments, err := p.arguments()
	if err != nil {
		return source{}, err
	}

	const arity = 2
	if len(arguments) != arity || arguments[0].isValue() {
		return source{}, invalid("Invalid %s: Operator or function requires a document path; "+
			"operator or function: if_not_exists", p.kind)
	}

	return source{arguments[0], arguments[1]}, nil
}

// check rejects updates that are invalid for every item: a repeated path, a key attribute, an addition of a value that
// is not a number.
func (u *update) check(s *scope, t *Table) error {
	paths := u.paths(s)
	slices.Sort(paths)

	for i, path := range paths {
		if path == t.PartitionKey || path == t.SortKey {
			return invalid("One or more parameter values were invalid: Cannot update attribute %s. "+
				"This attribute is part of the key", path)
		}

		if i > 0 && paths[i-1] == path {
			return invalid("Invalid UpdateExpression: Two document paths overlap with each other; must remove or "+
				"rewrite one of these paths; path one: [%s], path two: [%s]", path, path)
		}
	}

	for _, a := range u.adds {
		switch t := typeOf(s.get(a.value.first.operand)); t {
		case "N", "SS":
		case "NS", "BS":
			return unsupported("ADD of a set in UpdateExpression")
		default:
			return invalid("Invalid UpdateExpression: Incorrect operand type for operator or function; "+
				"operator: ADD, operand type: %s, typeSet: ALLOWED_FOR_ADD_OPERAND", t)
		}
	}

	for _, a := range u.deletes {
		switch t := typeOf(s.get(a.value.first.operand)); t {
		case "SS":
		case "NS", "BS":
			return unsupported("DELETE from a set of numbers or bytes in UpdateExpression")
		default:
			return invalid("Invalid UpdateExpression: Incorrect operand type for operator or function; "+
				"operator: DELETE, operand type: %s, typeSet: ALLOWED_FOR_DELETE_OPERAND", t)
		}
	}

	return nil
}

// paths returns the names of the attributes that the update changes.
func (u *update) paths(s *scope) []string {
	paths := make([]string, 0, len(u.sets)+len(u.adds)+len(u.deletes)+len(u.removes))
	for _, a := range u.sets {
		paths = append(paths, s.name(a.path))
	}

	for _, a := range slices.Concat(u.adds, u.deletes) {
		paths = append(paths, s.name(a.path))
	}

	for _, path := range u.removes {
		paths = append(paths, s.name(path))
	}

	return paths
}

// apply returns the updated item. It reads all operands from s.item, which does not change.
func (u *update) apply(s *scope) (item, error) {
	next := maps.Clone(s.item)

	for _, a := range u.sets {
		v, err := a.value.eval(s)
		if err != nil {
			return nil, err
		}

		next[s.name(a.path)] = v
	}

	for _, a := range u.adds {
		name := s.name(a.path)
		v := s.values[a.value.first.operand.text]

		if old := s.item[name]; old != nil {
			sum, err := addTo(old, v)
			if err != nil {
				return nil, err
			}

			v = sum
		}

		next[name] = v
	}

	for _, a := range u.deletes {
		if err := deleteFrom(next, s.name(a.path), s.values[a.value.first.operand.text]); err != nil {
			return nil, err
		}
	}

	for _, path := range u.removes {
		delete(next, s.name(path))
	}

	return storedForm(next)
}

func (t term) eval(s *scope) (ddbtypes.AttributeValue, error) {
	first, err := t.first.eval(s)
	if err != nil || t.operator == "" {
		return first, err
	}

	second, err := t.second.eval(s)
	if err != nil {
		return nil, err
	}

	return add(first, second, t.operator == "-")
}

func (o source) eval(s *scope) (ddbtypes.AttributeValue, error) {
	if o.path.text != "" {
		if v := s.get(o.path); v != nil {
			return v, nil
		}
	}

	v := s.get(o.operand)
	if v == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}

	return v, nil
}

// addTo returns the value of an attribute after ADD: a sum or a union.
func addTo(old, v ddbtypes.AttributeValue) (ddbtypes.AttributeValue, error) {
	set, isSet := old.(*ddbtypes.AttributeValueMemberSS)
	more, given := v.(*ddbtypes.AttributeValueMemberSS)

	if !isSet || !given {
		return add(old, v, false)
	}

	union := slices.Concat(set.Value, more.Value)
	slices.Sort(union)

	return &ddbtypes.AttributeValueMemberSS{Value: slices.Compact(union)}, nil
}

// deleteFrom removes elements from a set. DynamoDB has no empty sets, so the attribute is removed with its last
// element.
func deleteFrom(next item, name string, v ddbtypes.AttributeValue) error {
	old := next[name]
	if old == nil {
		return nil
	}

	set, isSet := old.(*ddbtypes.AttributeValueMemberSS)
	less, given := v.(*ddbtypes.AttributeValueMemberSS)

	if !isSet || !given {
		return invalid("An operand in the update expression has an incorrect data type")
	}

	left := slices.DeleteFunc(slices.Clone(set.Value), func(e string) bool { return slices.Contains(less.Value, e) })
	if len(left) == 0 {
		delete(next, name)
	} else {
		next[name] = &ddbtypes.AttributeValueMemberSS{Value: left}
	}

	return nil
}

// add returns the sum or difference of two numbers.
func add(a, b ddbtypes.AttributeValue, minus bool) (ddbtypes.AttributeValue, error) {
	x, okX := a.(*ddbtypes.AttributeValueMemberN)
	y, okY := b.(*ddbtypes.AttributeValueMemberN)

	if !okX || !okY {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}

	sum, err := addNumbers(x.Value, y.Value, minus)

	return &ddbtypes.AttributeValueMemberN{Value: sum}, err
}
