package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/provider"
)

const plainInPath = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// escapeID is an id as it stands in a path: as it is, or ~ and its base64url where a gateway might read it otherwise.
func escapeID(id string) string {
	if id == "." || id == ".." || strings.Trim(id, plainInPath) != "" {
		return "~" + base64.RawURLEncoding.EncodeToString([]byte(id))
	}
	return id
}

// misread is what in a path is not the same to everyone on its way. API Gateway's HTTP APIs hand a function the path
// decoded, where an encoded slash ends a segment and what follows an encoded question mark may be gone; function URLs
// hand it over as it was sent.
const misread = "/?#%"

// pathID is the reverse of escapeID. Percent-encoded ids are taken too, but for those that a gateway might read
// otherwise.
func pathID(r *http.Request, segment, field string) (string, error) {
	id := r.PathValue(segment)
	encoded, ok := strings.CutPrefix(id, "~")
	if !ok && (strings.ContainsAny(id, misread) || id == "." || id == "..") {
		return "", &provider.FieldError{
			Field: field,
			Problem: "must not have one of " + misread + " or be . or ..; send it as ~ and its base64url " +
				"without padding: " + shortForm(id),
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

// shortForm is an id as it is to stand in a path. A longer one than ids are is not worth an answer of its length.
func shortForm(id string) string {
	if len(id) > provider.MaxInstanceIDBytes {
		return "this id is too long"
	}
	return escapeID(id)
}

// pathNumber is an event id in a path: a segment and field of the same name, of decimal digits alone.
func pathNumber(r *http.Request, segment string) (int64, error) {
	text := r.PathValue(segment)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text != strconv.FormatInt(n, 10) {
		return 0, &provider.FieldError{Field: segment, Problem: "must be the number of a history event"}
	}
	return n, nil
}
