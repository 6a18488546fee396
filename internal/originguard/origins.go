package originguard

import (
	"encoding/json"
	"net/http"
)

// Protection returns a CrossOriginProtection that rejects requests with a problem (RFC 9457). Its Handler accepts safe
// methods from every origin.
func Protection() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { rejectOrigin(w) }))
	return p
}

// AllMethods passes requests to next that p would accept even with an unsafe method, and rejects others with status
// 403. Without it, the status and the duration of a response to a GET request would show a page of another origin
// whether an instance exists.
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

// problem is the body of a rejection (RFC 9457), in the form of the HTTP API's problems.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
}

func reject(w http.ResponseWriter, status int, code, detail string) {
	p := problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: the fields are strings and numbers
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}
