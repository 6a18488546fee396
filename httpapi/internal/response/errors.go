package response

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/internal/logevent"
)

// Errors sends problems, and logs server errors.
type Errors struct{ Log *slog.Logger }

// Fail sends the problem of an error.
func (e Errors) Fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError {
		e.Log.ErrorContext(r.Context(), "request failed", "event", logevent.RequestFailed, "method", r.Method,
			"route", r.Pattern, "code", p.Code, "error", err)
	}
	e.send(w, r, p)
}

// Panicked logs a panic of a handler, and sends a problem unless the response has begun. The stack is only for the log.
func (e Errors) Panicked(w *Recorder, r *http.Request, cause any) {
	e.Log.ErrorContext(r.Context(), "request handler panicked", "event", logevent.RequestPanicked, "route", r.Pattern,
		"cause", cause, "stack", string(debug.Stack()))
	if w.Status == 0 {
		e.send(w, r, problem.Internal)
	}
}

func (e Errors) send(w http.ResponseWriter, r *http.Request, p problem.Problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	if p.Retryable {
		w.Header().Set("Retry-After", "1")
	}
	body, err := json.Marshal(p)
	if err == nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		_, err = w.Write(append(body, '\n'))
	}
	if err != nil {
		e.Log.WarnContext(r.Context(), "response write failed", "event", logevent.ResponseWriteFailed, "code", p.Code,
			"error", err)
	}
}
