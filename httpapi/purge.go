package httpapi

import (
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

const (
	paramForce        = "force"
	paramWithChildren = "withChildren"
	// paramCreatedAt names the life of an id that is meant.
	paramCreatedAt = "createdAt"
)

func (h *handler) purge(w http.ResponseWriter, r *http.Request, query url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	force, err := boolParam(query, paramForce)
	if err != nil {
		return err
	}
	children, err := boolParam(query, paramWithChildren)
	if err != nil {
		return err
	}
	life, err := timeParam(query, paramCreatedAt)
	if err != nil {
		return err
	}
	var opts []client.PurgeOption
	if !life.IsZero() {
		opts = append(opts, client.IfCreatedAt(life))
	}
	if force {
		opts = append(opts, client.Force())
	}
	if children {
		opts = append(opts, client.WithChildren())
	}
	if err := h.client.Purge(r.Context(), id, opts...); err != nil {
		return err
	}
	h.asked(r, "purge", ofInstance, id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// boolParam is true or false; missing, it is false. Anything else must not be taken for either.
func boolParam(query url.Values, name string) (bool, error) {
	switch v := query.Get(name); {
	case v == "true":
		return true, nil
	case v == "false" || !query.Has(name):
		return false, nil
	default:
		return false, &provider.FieldError{Field: name, Problem: "must be true or false"}
	}
}
