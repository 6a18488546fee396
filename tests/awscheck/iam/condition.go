package iam

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check returns an error if IAM does not have the operator of a condition.
func (c *Condition) check() error {
	operator, ifExists := strings.CutSuffix(c.Operator, suffixIfExists)
	set, operator, hasSet := cutSet(operator)
	_, _, known := comparison(operator)
	switch {
	case hasSet && set != forAllValues && set != forAnyValue,
		operator == operatorNull && (hasSet || ifExists),
		operator != operatorNull && !known:
		return fmt.Errorf("unknown operator %q", c.Operator)
	}
	return nil
}

// holds reports whether a condition is true for a request.
func (c *Condition) holds(r *Request, version string) bool {
	operator, ifExists := strings.CutSuffix(c.Operator, suffixIfExists)
	set, operator, _ := cutSet(operator)
	given, exists := r.Context[strings.ToLower(c.Key)]
	exists = exists && len(given) > 0
	if operator == operatorNull {
		missing := strconv.FormatBool(!exists)
		return slices.ContainsFunc(c.Values, func(wanted string) bool { return strings.EqualFold(wanted, missing) })
	}
	compare, negated, _ := comparison(operator)
	matches := func(value string) bool {
		return slices.ContainsFunc(c.Values, func(wanted string) bool {
			return compare(expand(wanted, r, version), value)
		}) != negated
	}
	switch {
	case ifExists && !exists:
		return true
	case set == forAllValues:
		return !slices.ContainsFunc(given, func(value string) bool { return !matches(value) })
	case set == forAnyValue:
		return slices.ContainsFunc(given, matches)
	case !exists:
		return negated
	default:
		return slices.ContainsFunc(given, matches)
	}
}

// Parts of operators. The qualifiers are for keys with several values.
const (
	forAllValues   = "ForAllValues"
	forAnyValue    = "ForAnyValue"
	suffixIfExists = "IfExists"
	operatorNull   = "Null"
)

func cutSet(operator string) (set, rest string, found bool) {
	if set, rest, found = strings.Cut(operator, ":"); found {
		return set, rest, true
	}
	return "", operator, false
}

// comparison returns the comparison of an operator between a value of a policy and a value of a request. A negated
// operator is true if the comparison is false for all values of the policy.
func comparison(operator string) (compare func(wanted, given string) bool, negated, known bool) {
	positive := strings.Replace(operator, "Not", "", 1)
	negated = positive != operator
	if negated && !slices.Contains(negatable, positive) {
		return nil, false, false
	}
	switch positive {
	case "StringEquals", "BinaryEquals":
		return func(w, g string) bool { return unquote(w) == g }, negated, true
	case "StringEqualsIgnoreCase":
		return func(w, g string) bool { return strings.EqualFold(unquote(w), g) }, negated, true
	case "StringLike":
		return wildcard, negated, true
	case "ArnEquals", "ArnLike":
		return matchesResource, negated, true
	case "Bool":
		return strings.EqualFold, false, true
	case "IpAddress":
		return inRange, negated, true
	}
	if order, ok := ordered(positive, "Numeric"); ok {
		return numbers(order), negated, true
	}
	if order, ok := ordered(positive, "Date"); ok {
		return dates(order), negated, true
	}
	return nil, false, false
}

// negatable are the operators that also exist with Not.
var negatable = []string{
	"StringEquals", "StringEqualsIgnoreCase", "StringLike", "NumericEquals", "DateEquals", "ArnEquals", "ArnLike",
	"IpAddress",
}

// ordered returns the order of an operator of a type: whether it accepts given values that are less than, equal to or
// more than the wanted value.
func ordered(operator, kind string) (accepts [3]bool, ok bool) {
	rest, found := strings.CutPrefix(operator, kind)
	if !found {
		return accepts, false
	}
	accepts, ok = map[string][3]bool{
		"Equals":            {false, true, false},
		"LessThan":          {true, false, false},
		"LessThanEquals":    {true, true, false},
		"GreaterThan":       {false, false, true},
		"GreaterThanEquals": {false, true, true},
	}[rest]
	return accepts, ok
}

func numbers(accepts [3]bool) func(wanted, given string) bool {
	return func(wanted, given string) bool {
		w, err := strconv.ParseFloat(wanted, 64)
		g, other := strconv.ParseFloat(given, 64)
		if err != nil || other != nil {
			return false
		}
		switch {
		case g < w:
			return accepts[0]
		case g > w:
			return accepts[2]
		default:
			return accepts[1]
		}
	}
}

func dates(accepts [3]bool) func(wanted, given string) bool {
	return func(wanted, given string) bool {
		w, ok := date(wanted)
		g, other := date(given)
		return ok && other && accepts[g.Compare(w)+1]
	}
}

func date(text string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func inRange(wanted, given string) bool {
	address, err := netip.ParseAddr(given)
	if err != nil {
		return false
	}
	if prefix, err := netip.ParsePrefix(wanted); err == nil {
		return prefix.Contains(address)
	}
	single, err := netip.ParseAddr(wanted)
	return err == nil && single == address
}
