package response

import (
	"net/http"

	"github.com/perdure/perdure/httpapi/internal/problem"
)

// JSON writes a response. It encodes before it writes, so that an error can still become a problem.
func JSON(w http.ResponseWriter, status int, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	if size := Size(body); size > Limit {
		return problem.ResponseTooLarge("", "the result", size, Limit, "use the command line or the Go client")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the caller has disconnected
	return nil
}
