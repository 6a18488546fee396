package httpapi

import (
	"cmp"
	"net/http"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// asked logs who has had what done, and with which instance, or job.
func (h *handler) asked(r *http.Request, operation, subject, id string) {
	name, _ := provider.RequesterOf(r.Context())
	by := cmp.Or(history.Requester(name), history.RequestedByClient)
	h.log.InfoContext(r.Context(), "operation requested", "event", logevent.OperationRequested,
		"operation", operation, subject, id, "requestedBy", by)
}

// What is asked for, and of what, in the log.
const (
	ofInstance = "instance"
	ofJob      = "job"
	ofQueue    = "queue"
)
