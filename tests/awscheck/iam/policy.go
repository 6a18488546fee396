// Package iam evaluates requests against policies of AWS IAM, and knows which actions, resources and condition keys the
// requests of each operation have. It does not depend on an emulator.
package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy is a policy document.
type Policy struct {
	Version    string
	Statements []Statement
}

// Statement is a statement of a policy. An empty Effect is invalid. A list that is nil is absent from the statement.
type Statement struct {
	Effect      string
	Actions     []string
	NotActions  []string
	Resources   []string
	NotResource []string
	Conditions  []Condition
	// Principal is true for a statement of a resource policy that applies to all principals.
	Principal bool
}

// Condition is an operator with a context key and the values of a policy.
type Condition struct {
	Operator string
	Key      string
	Values   []string
}

// Effects of statements.
const (
	allow = "Allow"
	deny  = "Deny"
)

// Parse decodes a policy document.
func Parse(document string) (Policy, error) {
	var raw struct {
		Version   string                  `json:"Version"`
		ID        string                  `json:"Id"`
		Statement oneOrMany[rawStatement] `json:"Statement"`
	}
	if err := decode([]byte(document), &raw); err != nil {
		return Policy{}, fmt.Errorf("policy: %w", err)
	}
	p := Policy{Version: raw.Version}
	for i, s := range raw.Statement {
		if err := s.check(); err != nil {
			return Policy{}, fmt.Errorf("policy: statement %d: %w", i, err)
		}
		statement := Statement{
			Effect: s.Effect, Actions: s.Action, NotActions: s.NotAction, Resources: s.Resource,
			NotResource: s.NotResource, Principal: isEveryone(s.Principal),
		}
		for operator, keys := range s.Condition {
			for key, values := range keys {
				c := Condition{operator, key, texts(values)}
				if err := c.check(); err != nil {
					return Policy{}, fmt.Errorf("policy: statement %d: %w", i, err)
				}
				statement.Conditions = append(statement.Conditions, c)
			}
		}
		p.Statements = append(p.Statements, statement)
	}
	return p, nil
}

// decode rejects unknown elements like IAM. A statement with a misspelled element would apply to other requests. It
// also rejects NotPrincipal, which is not evaluated.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

type rawStatement struct {
	ID          string                               `json:"Sid"`
	Effect      string                               `json:"Effect"`
	Action      oneOrMany[string]                    `json:"Action"`
	NotAction   oneOrMany[string]                    `json:"NotAction"`
	Resource    oneOrMany[string]                    `json:"Resource"`
	NotResource oneOrMany[string]                    `json:"NotResource"`
	Principal   any                                  `json:"Principal"`
	Condition   map[string]map[string]oneOrMany[any] `json:"Condition"`
}

// check returns an error if IAM rejects the elements of a statement.
func (s *rawStatement) check() error {
	switch {
	case s.Effect != allow && s.Effect != deny:
		return fmt.Errorf("effect %q", s.Effect)
	case (s.Action == nil) == (s.NotAction == nil):
		return errors.New("want either Action or NotAction")
	case (s.Resource == nil) == (s.NotResource == nil):
		return errors.New("want either Resource or NotResource")
	}
	for _, action := range slices.Concat(s.Action, s.NotAction) {
		if service, _, ok := strings.Cut(action, ":"); action != "*" && (!ok || strings.ContainsAny(service, "*?")) {
			return fmt.Errorf("action %q has no service", action)
		}
	}
	return nil
}

// oneOrMany is a value, or a list of values.
type oneOrMany[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return decode(text, (*[]T)(o))
	}
	var one T
	if err := decode(text, &one); err != nil {
		return fmt.Errorf("neither a value nor a list: %w", err)
	}
	*o = []T{one}
	return nil
}

func texts(values []any) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = fmt.Sprint(v)
	}
	return all
}

func isEveryone(principal any) bool {
	switch p := principal.(type) {
	case string:
		return p == "*"
	case map[string]any:
		switch of := p["AWS"].(type) {
		case string:
			return of == "*"
		case []any:
			return slices.Contains(of, any("*"))
		}
	}
	return false
}

// Request is a request for one action on one resource.
type Request struct {
	// Action is an action such as sqs:SendMessage.
	Action string
	// Resource is an ARN, or * for an action without a resource.
	Resource string
	// Context has the values of the condition keys of the request, by their names in lower case.
	Context map[string][]string
}

// Decision is the result of an evaluation.
type Decision int

// Decisions.
const (
	// NotAllowed means that no statement allows the request.
	NotAllowed Decision = iota
	// Allowed means that a statement allows the request, and that none denies it.
	Allowed
	// Denied means that a statement denies the request.
	Denied
)

// String returns the decision for messages.
func (d Decision) String() string {
	return [...]string{"no policy allows it", "allowed", "a policy denies it"}[d]
}

// Principal has the policies of a caller, and of the resource that a request accesses.
type Principal struct {
	// Identity has the inline and managed policies of the caller.
	Identity []Policy
	// Boundary limits the permissions of the caller. Nil has no limits.
	Boundary []Policy
	// Resource has the policies of the resource, which belongs to the account of the caller. Only statements that apply
	// to all principals have an effect.
	Resource []Policy
}

// Evaluate decides whether a caller may send a request. An explicit deny takes precedence.
func (p *Principal) Evaluate(r *Request) Decision {
	identity, boundary := evaluate(p.Identity, r, false), Allowed
	if p.Boundary != nil {
		boundary = evaluate(p.Boundary, r, false)
	}
	resource := evaluate(p.Resource, r, true)
	switch {
	case slices.Contains([]Decision{identity, boundary, resource}, Denied):
		return Denied
	case identity == Allowed && boundary == Allowed:
		return Allowed
	case resource == Allowed:
		return Allowed
	default:
		return NotAllowed
	}
}

func evaluate(policies []Policy, r *Request, ofResource bool) Decision {
	decision := NotAllowed
	for i := range policies {
		for j := range policies[i].Statements {
			s := &policies[i].Statements[j]
			if ofResource && !s.Principal || !s.applies(r, policies[i].Version) {
				continue
			}
			if s.Effect == deny {
				return Denied
			}
			decision = Allowed
		}
	}
	return decision
}

func (s *Statement) applies(r *Request, version string) bool {
	if !matchesAny(s.Actions, s.NotActions, func(pattern string) bool {
		return wildcard(strings.ToLower(pattern), strings.ToLower(r.Action))
	}) {
		return false
	}
	if !matchesAny(s.Resources, s.NotResource, func(pattern string) bool {
		return matchesResource(expand(pattern, r, version), r.Resource)
	}) {
		return false
	}
	for _, c := range s.Conditions {
		if !c.holds(r, version) {
			return false
		}
	}
	return true
}

// matchesAny reports whether a pattern of a list matches, or none of a negated list.
func matchesAny(wanted, excluded []string, matches func(pattern string) bool) bool {
	if wanted != nil {
		return slices.ContainsFunc(wanted, matches)
	}
	return excluded != nil && !slices.ContainsFunc(excluded, matches)
}

// matchesResource compares an ARN with a pattern. A wildcard does not match a colon between the first six parts, but *
// alone matches everything.
func matchesResource(pattern, resource string) bool {
	if pattern == "*" {
		return true
	}
	const parts = 6
	wanted, given := strings.SplitN(pattern, ":", parts), strings.SplitN(resource, ":", parts)
	if len(wanted) != len(given) {
		return false
	}
	for i := range wanted {
		if !wildcard(wanted[i], given[i]) {
			return false
		}
	}
	return true
}

// wildcard compares a text with a pattern, in which * matches any characters and ? matches one.
func wildcard(pattern, text string) bool {
	wanted, given := []rune(pattern), []rune(text)
	star, mark := -1, 0 // the last *, and the text up to which it matches
	p, t := 0, 0
	for t < len(given) {
		switch {
		case p < len(wanted) && wanted[p] == '*':
			star, mark = p, t
			p++
		case p < len(wanted) && (wanted[p] == '?' || unquoted(wanted[p]) == given[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(string(wanted[p:]), "*") == ""
}

// currentVersion is the version of policies with variables.
const currentVersion = "2012-10-17"

// The characters * and ? that are no wildcards: those of ${*} and ${?}, and those in the value of a variable.
const (
	quotedStar     = '\uE000'
	quotedQuestion = '\uE001'
)

var quote = strings.NewReplacer("*", string(quotedStar), "?", string(quotedQuestion))

func unquoted(c rune) rune {
	switch c {
	case quotedStar:
		return '*'
	case quotedQuestion:
		return '?'
	}
	return c
}

// unquote returns the text of an expanded pattern without wildcards.
func unquote(text string) string { return strings.Map(unquoted, text) }

// expand replaces the variables of a pattern, such as ${aws:username} or ${aws:username, 'default'}. A pattern whose
// variable has no value matches nothing.
func expand(pattern string, r *Request, version string) string {
	if version != currentVersion {
		return pattern
	}
	out := strings.Builder{}
	for {
		before, rest, found := strings.Cut(pattern, "${")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		variable, after, _ := strings.Cut(rest, "}")
		name, standard, hasDefault := strings.Cut(variable, ",")
		values := r.Context[strings.ToLower(strings.TrimSpace(name))]
		switch {
		case len(values) == 1:
			out.WriteString(quote.Replace(values[0]))
		case name == "*" || name == "?" || name == "$":
			out.WriteString(quote.Replace(name))
		case hasDefault && len(values) == 0:
			out.WriteString(quote.Replace(strings.Trim(strings.TrimSpace(standard), "'")))
		default:
			return "\x00"
		}
		pattern = after
	}
}
