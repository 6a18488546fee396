package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// The parameters that every list takes.
const (
	paramLimit  = "limit"
	paramCursor = "cursor"
)

const (
	// paramExecution selects an execution of an instance, instead of the current one.
	paramExecution = "execution"
	// paramAfter leaves out the events of a history up to one.
	paramAfter = "after"
	// paramTag is the one parameter that may be given more than once.
	paramTag = "tag"
)

// parseQuery reads the query strictly: a parameter that is misspelt must not be taken for one that was left out.
func parseQuery(raw string, takes []string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &provider.FieldError{Field: "query", Problem: "is invalid: " + provider.Excerpt(err.Error())}
	}
	for name, values := range query {
		switch {
		case name == "":
			return nil, &provider.FieldError{Field: "query", Problem: "has a parameter without a name"}
		case !slices.Contains(takes, name):
			return nil, &provider.FieldError{
				Field: provider.Excerpt(name), Problem: "is not a parameter of this call" + known(takes),
			}
		case len(values) > 1 && name != paramTag:
			return nil, &provider.FieldError{Field: name, Problem: givenTwice}
		}
	}
	return query, nil
}

func known(takes []string) string {
	if len(takes) == 0 {
		return ", which takes none"
	}
	return ", which takes " + strings.Join(takes, ", ")
}

// intParam is a whole number within bounds; missing, it is fallback.
func intParam(query url.Values, name string, lowest, highest, fallback int64) (int64, error) {
	if !query.Has(name) {
		return fallback, nil
	}
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, &provider.FieldError{
			Field: name, Problem: fmt.Sprintf("must be a whole number from %d to %d", lowest, highest),
		}
	}
	return n, nil
}

// tagsParam reads the tags that are asked for, each as KEY=VALUE.
func tagsParam(query url.Values) (map[string]string, error) {
	var tags map[string]string
	for _, tag := range query[paramTag] {
		key, value, found := strings.Cut(tag, "=")
		if !found {
			return nil, &provider.FieldError{Field: paramTag, Problem: "must be KEY=VALUE"}
		}
		if _, twice := tags[key]; twice {
			return nil, &provider.FieldError{Field: paramTag, Problem: "must not repeat a key"}
		}
		if tags == nil {
			tags = map[string]string{}
		}
		tags[key] = value
	}
	return tags, nil
}

const mustBeTime = "must be an RFC 3339 time such as 2006-01-02T15:04:05Z"

func timeParam(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, query.Get(name))
	if err != nil {
		return time.Time{}, &provider.FieldError{Field: name, Problem: mustBeTime}
	}
	return t, checkYear(name, t)
}

// checkYear refuses a time whose year in UTC has no four digits: 9999-12-31T23:59:59-01:00 is one that JSON cannot
// hold.
func checkYear(name string, t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return &provider.FieldError{
			Field: name, Problem: "is in the UTC year " + strconv.Itoa(year) + "; " + mustBeTime,
		}
	}
	return nil
}

// durationParam is a duration of at most the longest: asking for more is no fault.
func durationParam(query url.Values, name string, longest time.Duration) (time.Duration, error) {
	if !query.Has(name) {
		return 0, nil
	}
	d, err := time.ParseDuration(query.Get(name))
	if err != nil || d < 0 {
		return 0, &provider.FieldError{Field: name, Problem: "must be a duration such as 500ms or 20s and not negative"}
	}
	return min(d, longest), nil
}
