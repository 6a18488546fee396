package httpapi

import (
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// putInstance starts an instance of the id in the path, and can replace what has it: the path is one of its own, since who may start need not be allowed to
// end and delete, and IAM tells calls apart by method and path alone.
func putInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	var name *string
	var f startFields
	if err := readBody(w, r, f.all(map[string]any{fieldOrchestration: &name})); err != nil {
		return err
	}
	if name == nil {
		return &provider.FieldError{Field: fieldOrchestration, Problem: "is missing"}
	}
	opts, err := f.startOptions(r)
	if err != nil {
		return err
	}
	if _, err := h.client.Start(r.Context(), *name, f.input, append(opts, client.WithInstanceID(id))...); err != nil {
		return err
	}
	h.asked(r, "put", ofInstance, id)
	return writeStarted(w, id)
}
