package request

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// ParamTag is the only parameter that a query can repeat.
const ParamTag = "tag"

// Query parses a URL query, and rejects unknown and repeated parameters.
func Query(raw string, accepted []string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &provider.FieldError{Field: "query", Problem: "is invalid: " + provider.Excerpt(err.Error())}
	}
	for name, values := range query {
		switch {
		case name == "":
			return nil, &provider.FieldError{Field: "query", Problem: "has a parameter without a name"}
		case !slices.Contains(accepted, name):
			return nil, &provider.FieldError{
				Field: provider.Excerpt(name), Problem: "is not a parameter of this call" + known(accepted),
			}
		case len(values) > 1 && name != ParamTag:
			return nil, &provider.FieldError{Field: name, Problem: repeatedField}
		}
	}
	return query, nil
}

func known(accepted []string) string {
	if len(accepted) == 0 {
		return ", which takes none"
	}
	return ", which takes " + strings.Join(accepted, ", ")
}

// Int returns a whole number within bounds. The default is fallback.
func Int(query url.Values, name string, lowest, highest, fallback int64) (int64, error) {
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

// Tags returns the tags of a filter, each of the form KEY=VALUE.
func Tags(query url.Values) (map[string]string, error) {
	var tags map[string]string
	for _, tag := range query[ParamTag] {
		key, value, found := strings.Cut(tag, "=")
		if !found {
			return nil, &provider.FieldError{Field: ParamTag, Problem: "must be KEY=VALUE"}
		}
		if _, twice := tags[key]; twice {
			return nil, &provider.FieldError{Field: ParamTag, Problem: "must not repeat a key"}
		}
		if tags == nil {
			tags = map[string]string{}
		}
		tags[key] = value
	}
	return tags, nil
}

const mustBeTime = "must be an RFC 3339 time such as 2006-01-02T15:04:05Z"

// Time returns an RFC 3339 time, or the zero time if the parameter is missing.
func Time(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, query.Get(name))
	if err != nil {
		return time.Time{}, &provider.FieldError{Field: name, Problem: mustBeTime}
	}
	return t, CheckYear(name, t)
}

// CheckYear rejects a time that JSON cannot represent, such as 9999-12-31T23:59:59-01:00: its year in UTC does not have
// four digits.
func CheckYear(name string, t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return &provider.FieldError{
			Field: name, Problem: "is in the UTC year " + strconv.Itoa(year) + "; " + mustBeTime,
		}
	}
	return nil
}

// Duration returns a duration, limited to the longest one. The default is 0.
func Duration(query url.Values, name string, longest time.Duration) (time.Duration, error) {
	if !query.Has(name) {
		return 0, nil
	}
	d, err := time.ParseDuration(query.Get(name))
	if err != nil || d < 0 {
		return 0, &provider.FieldError{Field: name, Problem: "must be a duration such as 500ms or 20s and not negative"}
	}
	return min(d, longest), nil
}

// Bool returns true or false, or false if the parameter is missing. It rejects all other values.
func Bool(query url.Values, name string) (bool, error) {
	switch v := query.Get(name); {
	case v == "true":
		return true, nil
	case v == "false" || !query.Has(name):
		return false, nil
	default:
		return false, &provider.FieldError{Field: name, Problem: "must be true or false"}
	}
}
