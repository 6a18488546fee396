package rules

import "slices"

// sortOperators are the operators of a condition on a sort key. A condition on a partition key has only =.
var sortOperators = []string{"=", "<", "<=", ">", ">=", between, beginsWith}

// checkKeyTerms checks the terms of a key condition: at most one for each key attribute.
func checkKeyTerms(r *report, in fields, keys Keys) {
	p := parse(in, keyExpression)
	if p.fault != "" {
		return // checkExpressions has reported it
	}
	if p.alternatives {
		r.addf(keyExpression, "a key condition has OR or NOT")
	}
	seen := map[string]bool{}
	for _, t := range p.terms {
		name := t.operands[0][0]
		if !keys.has(name) {
			continue
		}
		if seen[name] {
			r.addf(keyExpression, "%s has two conditions", name)
		}
		seen[name] = true
		if t.operator != "=" && (name == keys.Partition || !slices.Contains(sortOperators, t.operator)) {
			r.addf(keyExpression, "a condition on the key attribute %s has the operator %s", name, t.operator)
		}
		for _, operand := range t.operands[1:] {
			if value := object(p.values, operand[0]); value != nil {
				checkKeys(r, keyExpression, fields{name: value}, keys)
			}
		}
	}
}
