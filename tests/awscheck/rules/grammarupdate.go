package rules

// update parses an update expression. Each clause occurs at most once.
func (p *parser) update() {
	seen := map[string]bool{}
	for len(p.tokens) > 0 {
		clause, ok := p.accept(clauses...)
		if !ok {
			p.failf("want a clause, got %q", shorten(p.peek()))
			return
		}
		if seen[clause] {
			p.failf("the clause %s occurs twice", clause)
			return
		}
		seen[clause] = true
		for more := true; more && p.fault == ""; _, more = p.accept(",") {
			p.action(clause)
		}
	}
}

// action parses an action of a clause.
func (p *parser) action(clause string) {
	p.path()
	switch clause {
	case "SET":
		p.expect("=")
		p.sum()
	case "ADD":
		p.wantType(clause, p.value(), "N", "SS", "NS", "BS")
	case "DELETE":
		p.wantType(clause, p.value(), "SS", "NS", "BS")
	}
}

// value parses the placeholder of a value.
func (p *parser) value() []string {
	token := p.next()
	if len(token) < 2 || token[0] != ':' {
		p.failf("want a value, got %q", shorten(token))
		return []string{""}
	}
	return []string{token}
}

// sum parses an operand, or the sum or the difference of two operands.
func (p *parser) sum() {
	first := p.assigned()
	operator, ok := p.accept("+", "-")
	if !ok {
		return
	}
	p.wantType(operator, first, "N")
	p.wantType(operator, p.assigned(), "N")
}

// assigned parses an operand of SET: a path, a value, or a call of a function.
func (p *parser) assigned() []string {
	if !p.isCall() {
		return p.operand()
	}
	name := p.next()
	p.expect("(")
	switch name {
	case "if_not_exists":
		p.path()
		p.expect(",")
		p.assigned()
	case "list_append":
		p.wantType(name, p.assigned(), "L")
		p.expect(",")
		p.wantType(name, p.assigned(), "L")
	default:
		p.failf("unknown function %q", shorten(name))
	}
	p.expect(")")
	return []string{name}
}
