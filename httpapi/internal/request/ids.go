package request

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

// EscapeID returns an ID for a path. ID reverses it.
func EscapeID(id string) string { return apiwire.EscapeID(id) }

// ambiguous contains the characters that ID rejects in a percent-encoded ID. HTTP APIs of API Gateway decode the path,
// so that an encoded slash ends a segment and an encoded question mark truncates the path. Function URLs do not decode
// the path.
const ambiguous = "/?#%"

// ID returns an ID in a path. It reverses EscapeID, and accepts percent-encoded IDs without ambiguous characters.
func ID(r *http.Request, segment, field string) (string, error) {
	id := r.PathValue(segment)
	encoded, ok := strings.CutPrefix(id, "~")
	if !ok && (strings.ContainsAny(id, ambiguous) || id == "." || id == "..") {
		return "", &provider.FieldError{
			Field: field,
			Problem: "must not have one of " + ambiguous + " or be . or ..; send it as ~ and its base64url " +
				"without padding: " + ShortForm(id),
		}
	}
	if !ok {
		return id, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", &provider.FieldError{Field: field, Problem: "is not valid base64url without padding after ~"}
	}
	return string(b), nil
}

// ShortForm returns EscapeID(id) for the detail of a problem, or a note if the ID is too long for any instance.
func ShortForm(id string) string {
	if len(id) > provider.MaxInstanceIDBytes {
		return "this id is too long"
	}
	return EscapeID(id)
}

// Number returns an event ID in a path. The segment and the field have the same name.
func Number(r *http.Request, segment string) (int64, error) {
	text := r.PathValue(segment)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text != strconv.FormatInt(n, 10) {
		return 0, &provider.FieldError{Field: segment, Problem: "must be the number of a history event"}
	}
	return n, nil
}
