package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/api"
)

// With requireKey, a request without an Idempotency-Key has no effect.
func TestRequireKey_requestWithoutKey_isRejected(t *testing.T) {
	t.Parallel()
	for target, c := range map[string]struct {
		body, key string
		want      int
	}{
		"/v1/instances/schedule%3Anightly/notes": {`{"note":"a"}`, "k", http.StatusNoContent},
		jobs:                                     {`{"operation":"cancel","all":true}`, "k", http.StatusAccepted},
		nightly + "/run":                         {"", "01K0V9ZQ7G5V8Q3W4E5R6T7Y8Z", http.StatusAccepted},
	} {
		h := withSchedules(t)
		h.call(t, http.MethodPut, nightly, everyNight).want(http.StatusAccepted)
		target += "?" + api.RequireKey + "="
		for _, header := range [][]string{nil, {"Idempotency-Key", c.key}} {
			h.call(t, http.MethodPost, target+"perhaps", c.body, header...).wantProblem(http.StatusBadRequest,
				"invalid_request", api.RequireKey)
		}
		h.call(t, http.MethodPost, target+"true", c.body).wantProblem(http.StatusBadRequest, "invalid_request",
			"Idempotency-Key")
		h.call(t, http.MethodPost, target+"true", c.body, "Idempotency-Key", c.key).want(c.want)
		h.call(t, http.MethodPost, target+"false", c.body).want(c.want)
	}
}
