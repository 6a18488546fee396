package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
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
	at := "/v1/instances/" + request.EscapeID(instanceID)
	return StartResponse{
		InstanceID: instanceID,
		Links:      Links{Status: at, Result: at + "/result", History: at + "/history", Executions: at + "/executions"},
	}
}

func (i instances) start(c *call) error {
	name, err := request.ID(c.r, "name", problem.FieldOrchestration)
	if err != nil {
		return err
	}
	input, opts, err := readStart(c)
	if err != nil {
		return err
	}
	id, err := i.client.Start(c.ctx(), name, input, opts...)
	if err != nil {
		return err
	}
	c.audit(id, "")
	return replyStarted(c, NewStartResponse(id))
}

// replyStarted responds with the instance that was started.
func replyStarted(c *call, started StartResponse) error {
	c.w.Header().Set("Location", started.Links.Status)
	return c.reply(http.StatusAccepted, started)
}

// startFields is the body of a start.
type startFields struct {
	id, version, delay *string
	ifExists           *string
	tags               map[string]string
	input              json.RawMessage
	// only of a restart, where a header that was always ignored must not change the effect
	from *int64
	key  *string
}

func readStart(c *call) (json.RawMessage, []client.StartOption, error) {
	var f startFields
	if err := c.body(f.all(map[string]any{problem.FieldInstanceID: &f.id})); err != nil {
		return nil, nil, err
	}
	if f.ifExists != nil && *f.ifExists == string(client.Replace) { // IAM distinguishes calls by path
		return nil, nil, &provider.FieldError{
			Field: fieldIfExists, Problem: "must not be replace; use PUT /v1/instances/{id}",
		}
	}
	opts, err := f.startOptions(c.r)
	return f.input, opts, err
}

// all adds the fields of every start to the fields of a body.
func (f *startFields) all(fields map[string]any) map[string]any {
	maps.Copy(fields, map[string]any{
		"input": &f.input, fieldVersion: &f.version, fieldDelay: &f.delay, fieldTags: &f.tags,
		fieldIfExists: &f.ifExists,
	})
	return fields
}

// startOptions returns the options of the fields and the header.
func (f *startFields) startOptions(r *http.Request) ([]client.StartOption, error) {
	opts, err := f.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, client.WithTags(f.tags))
	key, given, err := request.IdempotencyKey(r)
	if given {
		opts = append(opts, client.WithIdempotencyKey(key))
	}
	return opts, err
}

// options returns the options of the fields, without tags.
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
	if f.key != nil {
		opts = append(opts, client.WithIdempotencyKey(*f.key))
	}
	return opts, nil
}
