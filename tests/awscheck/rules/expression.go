package rules

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/reservedwords"
)

// Limits of expressions, from "Quotas in Amazon DynamoDB".
const (
	mostExpressionBytes   = 4 << 10
	mostOperators         = 300
	mostPlaceholderBytes  = 255
	mostSubstitutionBytes = 2 << 20
)

// Clauses of update expressions.
var clauses = []string{"SET", "REMOVE", "ADD", "DELETE"}

// checkExpressions checks the expressions of a request and their placeholders. The names are those of its members.
func checkExpressions(r *report, path string, in fields, names ...string) {
	used, found := map[string]bool{}, false
	for _, name := range names {
		expression, ok := in[name].(string)
		if !ok {
			continue
		}
		found = true
		checkExpression(r, join(path, name), expression, parse(in, name).fault)
		checkNames(r, join(path, name), expression, keywords(name))
		for _, token := range tokens(expression) {
			if token[0] == '#' || token[0] == ':' {
				used[token] = true
			}
		}
	}
	aliases, values := object(in, attributeNames), object(in, attributeValues)
	for placeholder := range used {
		if aliases[placeholder] == nil && values[placeholder] == nil {
			r.addf(path, "the placeholder %s of an expression is not defined", placeholder)
		}
		if len(placeholder) > mostPlaceholderBytes {
			r.addf(path, "a placeholder has %d bytes, want at most %d", len(placeholder), mostPlaceholderBytes)
		}
	}
	checkSubstitutions(r, path, in, attributeNames, used, found)
	checkSubstitutions(r, path, in, attributeValues, used, found)
	size := 0
	for name := range aliases {
		size += len(name) + len(text(aliases, name))
	}
	for name, value := range values {
		size += len(name) + checkValue(r, join(path, attributeValues+"."+name), value, 1)
	}
	if size > mostSubstitutionBytes {
		r.addf(path, "the placeholders have %d bytes, want at most %d", size, mostSubstitutionBytes)
	}
}

// checkSubstitutions checks that the expressions of a request use all placeholders of a map.
func checkSubstitutions(r *report, path string, in fields, name string, used map[string]bool, hasExpression bool) {
	defined, ok := in[name].(fields)
	if !ok {
		return
	}
	if len(defined) == 0 {
		r.addf(join(path, name), "the map is empty")
	}
	if !hasExpression {
		r.addf(join(path, name), "the request has no expression")
		return
	}
	for placeholder := range defined {
		if !used[placeholder] {
			r.addf(join(path, name), "no expression uses the placeholder %s", placeholder)
		}
	}
}

// checkExpression checks an expression, given the violation of its syntax.
func checkExpression(r *report, path, expression, fault string) {
	switch {
	case strings.TrimSpace(expression) == "":
		r.addf(path, "the expression is empty")
	case fault != "":
		r.addf(path, "%s", fault)
	}
	if len(expression) > mostExpressionBytes {
		r.addf(path, "the expression has %d bytes, want at most %d", len(expression), mostExpressionBytes)
	}
	operators := 0
	all := tokens(expression)
	for i, token := range all {
		function := i+1 < len(all) && all[i+1] == "(" && isWord(token)
		if function || strings.Trim(token, "=<>+-") == "" || slices.Contains(logical, strings.ToUpper(token)) {
			operators++
		}
	}
	if operators > mostOperators {
		r.addf(path, "the expression has %d operators, want at most %d", operators, mostOperators)
	}
}

const (
	between    = "BETWEEN"
	beginsWith = "begins_with"
	sizeOf     = "size"
)

var logical = []string{"AND", "OR", "NOT", between, "IN"}

// keywords returns the keywords of an expression.
func keywords(expression string) []string {
	if expression == updateExpression {
		return clauses
	}
	return logical
}

// checkNames checks that the attribute names in an expression are not reserved words.
func checkNames(r *report, path, expression string, keywords []string) {
	all := tokens(expression)
	for i, token := range all {
		function := i+1 < len(all) && all[i+1] == "("
		if !function && reservedwords.Has(token) && !slices.Contains(keywords, strings.ToUpper(token)) {
			r.addf(path, "%s is a reserved word; use a placeholder", token)
		}
	}
}

// tokens splits an expression into names, placeholders, operators and punctuation.
func tokens(expression string) []string {
	var all []string
	for i := 0; i < len(expression); {
		start := i
		switch c := expression[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case isNameByte(c) || c == '#' || c == ':':
			for i++; i < len(expression) && isNameByte(expression[i]); i++ {
			}
		case strings.IndexByte("<>=", c) >= 0:
			for i++; i < len(expression) && strings.IndexByte("<>=", expression[i]) >= 0; i++ {
			}
		default:
			i++
		}
		all = append(all, expression[start:i])
	}
	return all
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWord(token string) bool { return token[0] == '#' || isNameByte(token[0]) }

// checkTargets checks that an update expression changes neither a key attribute nor a path twice, and that it sets
// valid keys of indexes.
func checkTargets(r *report, path string, in fields, t *Table) {
	at, names := join(path, updateExpression), object(in, attributeNames)
	var changed [][]string
	for _, target := range targets(tokens(text(in, updateExpression))) {
		for i, part := range target.path {
			if name := text(names, part); name != "" {
				target.path[i] = name
			}
		}
		name := target.path[0]
		if t.has(name) {
			r.addf(at, "the expression changes the key attribute %s", name)
		}
		for _, other := range changed {
			if n := min(len(other), len(target.path)); slices.Equal(other[:n], target.path[:n]) {
				r.addf(at, "two paths overlap: %s", strings.Join(target.path, "."))
			}
		}
		changed = append(changed, target.path)
		if value := object(object(in, attributeValues), target.value); value != nil && len(target.path) == 1 {
			for _, index := range t.Indexes {
				checkKeys(r, at, fields{name: value}, index)
			}
		}
	}
}

const (
	updateExpression = "UpdateExpression"
	attributeNames   = "ExpressionAttributeNames"
	attributeValues  = "ExpressionAttributeValues"
)

// target is a path that an update expression changes, as tokens. If the path is set to a placeholder, value is the
// placeholder.
type target struct {
	path  []string
	value string
}

// targets returns the paths that an update expression changes.
func targets(all []string) []target {
	var found []target
	depth := 0
	for i := 0; i+1 < len(all); i++ {
		switch all[i] {
		case "(":
			depth++
		case ")":
			depth--
		}
		starts := all[i] == "," || slices.Contains(clauses, strings.ToUpper(all[i]))
		if !starts || depth > 0 {
			continue
		}
		t := target{path: documentPath(all[i+1:])}
		rest := all[i+1+length(t.path):]
		if len(rest) > 1 && rest[0] == "=" && endsTarget(rest[2:]) {
			t.value = rest[1]
		}
		found = append(found, t)
	}
	return found
}

// endsTarget reports whether the next target or clause starts, or the expression ends.
func endsTarget(rest []string) bool {
	return len(rest) == 0 || rest[0] == "," || slices.Contains(clauses, strings.ToUpper(rest[0]))
}

// documentPath returns the path at the start of tokens. An index of a list is one part, such as [0].
func documentPath(all []string) []string {
	path := []string{all[0]}
	for i := 1; i+1 < len(all); {
		switch all[i] {
		case ".":
			path = append(path, all[i+1])
			i += 2
		case "[":
			path = append(path, "["+all[i+1]+"]")
			i += 3
		default:
			return path
		}
	}
	return path
}

// length returns the number of tokens of a path.
func length(path []string) int {
	n := 1
	for _, part := range path[1:] {
		n += 2
		if part[0] == '[' {
			n++
		}
	}
	return n
}

// attributes returns the names of the attributes that a condition refers to, without nested ones.
func attributes(in fields, name string) []string {
	names := object(in, attributeNames)
	all := tokens(text(in, name))
	var found []string
	for i, token := range all {
		nested := i > 0 && all[i-1] == "."
		function := i+1 < len(all) && all[i+1] == "("
		word := isWord(token) && (token[0] < '0' || token[0] > '9')
		if nested || function || !word || slices.Contains(logical, strings.ToUpper(token)) {
			continue
		}
		if alias := text(names, token); alias != "" {
			token = alias
		}
		found = append(found, token)
	}
	return found
}
