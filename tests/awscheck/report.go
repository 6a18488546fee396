package awscheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	mostViolations = 100 // different ones in a report
	mostExcerpt    = 600 // bytes
	mostText       = 48  // bytes of a string in an excerpt
	mostMembers    = 4   // of a list in an excerpt
)

// Report is the result of the checks.
type Report struct {
	// Counts has the number of checked requests by caller and operation, such as "root dynamodb:PutItem". The caller is
	// the name of a function, or root.
	Counts map[string]int
	// Skipped has the number of requests that were not checked, by their services or reasons.
	Skipped map[string]int
	// Violations are the requests that AWS would reject.
	Violations []*Violation

	known map[string]*Violation
}

// Violation is a kind of request that AWS would reject, with an example.
type Violation struct {
	Caller, Operation, Fault string
	// Excerpt is a part of the request. Its values are shortened.
	Excerpt string
	// Count is the number of requests.
	Count int
}

func newReport() *Report {
	return &Report{Counts: map[string]int{}, Skipped: map[string]int{}, known: map[string]*Violation{}}
}

func (r *Report) skip(reason string) { r.Skipped[reason]++ }

func (r *Report) count(caller, operation string) { r.Counts[caller+" "+operation]++ }

// digits are the parts in which violations of the same kind differ.
var digits = regexp.MustCompile(`[0-9]+`)

func (r *Report) fail(caller, operation, fault, excerpt string) {
	kind := caller + " " + operation + " " + digits.ReplaceAllString(fault, "0")
	if v, ok := r.known[kind]; ok {
		v.Count++
		return
	}
	v := &Violation{caller, operation, fault, excerpt, 1}
	if len(r.known) < mostViolations {
		r.known[kind] = v
		r.Violations = append(r.Violations, v)
	}
}

// Err returns an error that lists the violations, or nil.
func (r *Report) Err() error {
	var all []error
	for _, v := range r.Violations {
		err := fmt.Errorf("%s of %s, %d times: %s\n\t%s", v.Operation, v.Caller, v.Count, v.Fault, v.Excerpt)
		all = append(all, err)
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("awscheck: AWS would reject %d kinds of requests:\n%w", len(all), errors.Join(all...))
}

// hasFunctions reports whether a request of a function was checked.
func (r *Report) hasFunctions() bool {
	for key := range r.Counts {
		if !strings.HasPrefix(key, "root ") {
			return true
		}
	}
	return false
}

// String lists the number of requests by operation and caller.
func (r *Report) String() string {
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	out := strings.Builder{}
	fmt.Fprintf(&out, "awscheck: %d requests checked, %d violations\n", total, len(r.Violations))
	for _, key := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&out, "%8d %s\n", r.Counts[key], key)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&out, "%8d not checked: %s\n", r.Skipped[reason], reason)
	}
	return out.String()
}

// excerpt returns the start of an input as JSON, with shortened values.
func excerpt(input map[string]any) string {
	text, err := json.Marshal(shortened(input))
	if err != nil {
		return err.Error()
	}
	return cut(string(text), mostExcerpt)
}

func shortened(value any) any {
	switch value := value.(type) {
	case string:
		return cut(value, mostText)
	case []any:
		list := make([]any, 0, mostMembers)
		for i, member := range value {
			if i == mostMembers {
				list = append(list, fmt.Sprintf("%d more", len(value)-i))
				break
			}
			list = append(list, shortened(member))
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, member := range value {
			fields[name] = shortened(member)
		}
		return fields
	default:
		return value
	}
}

// cut shortens a text to a number of bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
}
