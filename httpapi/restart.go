package httpapi

import (
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

// restart starts what an instance that is over was, once more. What its body does not say is as it was; it may be
// missing.
func restart(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	opts, err := readRestart(w, r)
	if err != nil {
		return err
	}
	restarted, err := h.client.Restart(r.Context(), id, opts...)
	if err != nil {
		return err
	}
	h.asked(r, "restart", ofInstance, id)
	return writeStarted(w, NewStartResponse(restarted))
}

func readRestart(w http.ResponseWriter, r *http.Request) ([]client.StartOption, error) {
	body, err := readAll(w, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	var f startFields
	if err := readObject(body,
		map[string]any{
			fieldInstanceID: &f.id, fieldVersion: &f.version, fieldDelay: &f.delay, fieldFrom: &f.from,
		}); err != nil {
		return nil, err
	}
	return f.options()
}
