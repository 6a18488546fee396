package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// StartResponse is the response to a start.
type StartResponse struct {
	InstanceID string `json:"instanceId"`
	Links      Links  `json:"links"`
	// Started reports whether this start started the instance, for a start that also raises an event. Otherwise it is
	// nil.
	Started *bool `json:"started,omitempty"`
}

// Links are the paths of an instance.
type Links struct {
	Status     string `json:"status"`
	Result     string `json:"result"`
	History    string `json:"history"`
	Executions string `json:"executions"`
}

// NewStartResponse returns the response to the start of an instance.
func NewStartResponse(instanceID string) StartResponse {
	at := "/v1/instances/" + escapeID(instanceID)
	return StartResponse{
		InstanceID: instanceID,
		Links:      Links{Status: at, Result: at + "/result", History: at + "/history", Executions: at + "/executions"},
	}
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
	h.asked(r, "start", ofInstance, id)
	return writeStarted(w, NewStartResponse(id))
}

// writeStarted answers that an instance was started.
func writeStarted(w http.ResponseWriter, started StartResponse) error {
	w.Header().Set(headerLocation, started.Links.Status)
	return writeJSON(w, http.StatusAccepted, started)
}

// startFields is the body of a start.
type startFields struct {
	id, version, delay *string
	ifExists           *string
	tags               map[string]string
	input              json.RawMessage
	from               *int64 // of a restart alone
}

func readStart(w http.ResponseWriter, r *http.Request) (json.RawMessage, []client.StartOption, error) {
	var f startFields
	if err := readBody(w, r, f.all(map[string]any{fieldInstanceID: &f.id})); err != nil {
		return nil, nil, err
	}
	if f.ifExists != nil && *f.ifExists == string(client.Replace) { // who may start may not end, and IAM goes by paths
		return nil, nil, &provider.FieldError{
			Field: fieldIfExists, Problem: "must not be replace; use PUT /v1/instances/{id}",
		}
	}
	opts, err := f.startOptions(r)
	return f.input, opts, err
}

// all adds to fields of a body those that each start has.
func (f *startFields) all(fields map[string]any) map[string]any {
	maps.Copy(fields, map[string]any{
		"input": &f.input, fieldVersion: &f.version, fieldDelay: &f.delay, "tags": &f.tags, fieldIfExists: &f.ifExists,
	})
	return fields
}

// startOptions are what the fields and the request's header say of a start.
func (f *startFields) startOptions(r *http.Request) ([]client.StartOption, error) {
	opts, err := f.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, client.WithTags(f.tags))
	key, given, err := idempotencyKey(r)
	if given {
		opts = append(opts, client.WithIdempotencyKey(key))
	}
	return opts, err
}

// options are what the fields say of a start, but for its tags.
func (f *startFields) options() (opts []client.StartOption, err error) {
	if f.id != nil {
		opts = append(opts, client.WithInstanceID(*f.id))
	}
	if f.version != nil {
		opts = append(opts, client.WithVersion(*f.version))
	}
	if f.delay != nil {
		d, err := time.ParseDuration(*f.delay)
		if err != nil {
			return nil, &provider.FieldError{
				Field: fieldDelay, Problem: "must be a duration such as 90s or 24h, at most ten years",
			}
		}
		opts = append(opts, client.WithDelay(d))
	}
	if f.ifExists != nil {
		opts = append(opts, client.IfExists(client.IDConflictPolicy(*f.ifExists)))
	}
	if f.from != nil {
		opts = append(opts, client.FromEvent(*f.from))
	}
	return opts, nil
}

// idempotencyKey is the header that makes a repeated call the same call.
func idempotencyKey(r *http.Request) (key string, given bool, err error) {
	keys := r.Header.Values(headerKey)
	switch {
	case len(keys) == 0:
		return "", false, nil
	case len(keys) > 1:
		return "", true, &provider.FieldError{Field: headerKey, Problem: givenTwice}
	case strings.Contains(keys[0], ","): // which gateways put between two
		return "", true, &provider.FieldError{
			Field:   headerKey,
			Problem: "must not have a comma, which gateways add if the header is given more than once",
		}
	case keys[0] == "" || len(keys[0]) > client.MaxIdempotencyKeyBytes || !utf8.ValidString(keys[0]) ||
		strings.ContainsFunc(keys[0], unicode.IsControl):
		problem := fmt.Sprintf("must be 1 to %d bytes of UTF-8 without control characters",
			client.MaxIdempotencyKeyBytes)
		return "", true, &provider.FieldError{Field: headerKey, Problem: problem}
	default:
		return keys[0], true, nil
	}
}
