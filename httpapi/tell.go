package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Told is the answer to what is sent to an instance.
type Told struct {
	InstanceID string `json:"instanceId"`
}

// raise takes the body as the event's data, whatever JSON it is; none is null.
func (h *handler) raise(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	event, err := pathID(r, "event", "event")
	if err != nil {
		return err
	}
	data, err := readAll(w, r)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		data = []byte("null")
	}
	var opts []client.RaiseOption
	switch keys := r.Header.Values(headerKey); len(keys) {
	case 0:
	case 1:
		opts = append(opts, client.WithEventID(keys[0]))
	default:
		return &provider.FieldError{Field: headerKey, Problem: givenTwice}
	}
	if err := h.client.Raise(r.Context(), id, event, json.RawMessage(data), opts...); err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, Told{InstanceID: id})
}

func (h *handler) terminate(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	var message string
	if r.ContentLength != 0 {
		if err := readBody(w, r, map[string]any{"message": &message}); err != nil {
			return err
		}
	}
	if err := h.client.Terminate(r.Context(), id, message); err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, Told{InstanceID: id})
}

// readAll reads a body up to the limit.
func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	from := r.Body
	if from == nil {
		from = http.NoBody // as in a request that no net/http server made
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, from, maxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &problem{
			Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Field: "body",
			Detail: fmt.Sprintf("the body is over the limit of %d bytes, and an input may have %d", maxBodyBytes, perdure.MaxPayloadBytes),
		}
	}
	if err != nil {
		return nil, bodyError("could not be read to its end")
	}
	return body, nil
}
