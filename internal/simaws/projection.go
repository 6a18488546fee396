package simaws

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/reservedwords"
)

// project parses a projection: whole attributes by name or alias, without duplicates. It adds the aliases to the used
// aliases.
func (s *scope) project(expression *string, used placeholders) (names []string, all placeholders, err error) {
	if expression == nil {
		return nil, used, nil
	}

	used.names = slices.Clone(used.names)

	for path := range strings.SplitSeq(*expression, ",") {
		name := strings.TrimSpace(path)

		switch {
		case name == "" || strings.ContainsAny(name, " \t:"):
			return nil, used, invalid("Invalid ProjectionExpression: Syntax error; token: %q", name)
		case strings.ContainsAny(name, ".["):
			return nil, used, unsupported("a projection of parts of an attribute")
		case name[0] == '#':
			used.addName(name)

			alias := name
			if name = s.names[alias]; name == "" {
				return nil, used,
					invalid("Invalid ProjectionExpression: An expression attribute name used in the document path "+
						"is not defined; attribute name: %s", alias)
			}
		case reservedwords.Has(name):
			return nil, used,
				invalid("Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: %s",
					name)
		}

		if slices.Contains(names, name) {
			return nil, used, invalid("Invalid ProjectionExpression: Two document paths overlap with each other; "+
				"must remove or rewrite one of these paths; path one: [%s], path two: [%s]", name, name)
		}

		names = append(names, name)
	}

	return names, used, nil
}

// selected returns an item with only the projected attributes. A nil projection selects all attributes.
func selected(it item, names []string) item {
	if names == nil {
		return it
	}

	out := make(item, len(names))

	for _, name := range names {
		if v := it[name]; v != nil {
			out[name] = v
		}
	}

	return out
}
