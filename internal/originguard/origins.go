package originguard

import (
	"encoding/json"
	"net/http"
)

// Protection returns a CrossOriginProtection that rejects with a problem (RFC 9457). Its Handler lets safe methods pass.
func Protection() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { rejectOrigin(w) }))
	return p
}

// AllMethods passes on the requests that p trusts as if their methods were unsafe, and rejects the others with status 403. The status and the
// duration of a response to a GET request tell a page of another origin whether an instance exists.
func AllMethods(p *http.CrossOriginProtection, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unsafe := r.WithContext(r.Context()) // a shallow copy
		unsafe.Method = http.MethodPost
		if p.Check(unsafe) != nil {
			rejectOrigin(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func rejectOrigin(w http.ResponseWriter) {
	reject(w, http.StatusForbidden, "forbidden_origin", "a web page of another origin sent this request")
}

// reject responds with a problem (RFC 9457) in the form of the HTTP API.
func reject(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that is gone does not read it
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail, "code": code, "retryable": false,
	})
}
