package request

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/provider"
)

// IdempotencyKey returns the header Idempotency-Key.
func IdempotencyKey(r *http.Request) (key string, given bool, err error) {
	keys := r.Header.Values(problem.FieldIdempotencyKey)
	switch {
	case len(keys) == 0:
		return "", false, nil
	case len(keys) > 1:
		return "", true, &provider.FieldError{Field: problem.FieldIdempotencyKey, Problem: repeatedField}
	case strings.Contains(keys[0], ","): // gateways join repeated headers
		return "", true, &provider.FieldError{
			Field:   problem.FieldIdempotencyKey,
			Problem: "must not have a comma, which gateways add if the header is given more than once",
		}
	case keys[0] == "" || len(keys[0]) > client.MaxIdempotencyKeyBytes || !utf8.ValidString(keys[0]) ||
		strings.ContainsFunc(keys[0], unicode.IsControl):
		text := fmt.Sprintf("must be 1 to %d bytes of UTF-8 without control characters",
			client.MaxIdempotencyKeyBytes)
		return "", true, &provider.FieldError{Field: problem.FieldIdempotencyKey, Problem: text}
	default:
		return keys[0], true, nil
	}
}
