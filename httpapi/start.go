package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Started is the answer to a start.
type Started struct {
	InstanceID string `json:"instanceId"`
	Links      Links  `json:"links"`
}

// Links are the paths under which an instance is found.
type Links struct {
	Status  string `json:"status"`
	Result  string `json:"result"`
	History string `json:"history"`
}

// NewStarted is the answer to the start of an instance.
func NewStarted(instanceID string) Started {
	at := "/v1/instances/" + escapeID(instanceID)
	return Started{InstanceID: instanceID, Links: Links{Status: at, Result: at + "/result", History: at + "/history"}}
}

func (h *handler) start(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	name, err := pathID(r, "name", fieldOrchestration)
	if err != nil {
		return err
	}
	input, opts, err := readStart(w, r)
	if err != nil {
		return err
	}
	id, err := h.client.Start(r.Context(), name, input, opts...)
	if err != nil {
		return err
	}
	started := NewStarted(id)
	w.Header().Set("Location", started.Links.Status)
	return writeJSON(w, http.StatusAccepted, started)
}

func readStart(w http.ResponseWriter, r *http.Request) (json.RawMessage, []client.StartOption, error) {
	var (
		id, version *string
		tags        map[string]string
		input       json.RawMessage
	)
	err := readBody(w, r, map[string]any{fieldInstanceID: &id, "input": &input, "version": &version, "tags": &tags})
	if err != nil {
		return nil, nil, err
	}
	opts := []client.StartOption{client.WithTags(tags)}
	if id != nil {
		opts = append(opts, client.WithInstanceID(*id))
	}
	if version != nil {
		opts = append(opts, client.WithVersion(*version))
	}
	switch keys := r.Header.Values(headerKey); len(keys) {
	case 0:
	case 1:
		opts = append(opts, client.WithIdempotencyKey(keys[0]))
	default:
		return nil, nil, &provider.FieldError{Field: headerKey, Problem: givenTwice}
	}
	return input, opts, nil
}
