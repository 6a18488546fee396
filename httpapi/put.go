package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// putInstance starts an instance of the id in the path, and can replace what has it, or raise an event in it, or update
// it: the path is one of its own, since who may start need not be allowed to tell, end and delete, and IAM tells calls
// apart by method and path alone.
func putInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	p, err := readPut(w, r)
	if err != nil {
		return err
	}
	opts, err := p.startOptions(r)
	if err != nil {
		return err
	}
	started := NewStartResponse(id)
	opts = append(opts, client.WithInstanceID(id))
	if p.update != nil {
		return putUpdate(h, w, r, id, &p, opts)
	}
	if p.event == nil {
		_, err = h.client.Start(r.Context(), *p.name, p.input, opts...)
	} else {
		var began bool
		began, err = h.client.StartOrRaiseEvent(r.Context(), *p.name, p.input, *p.event, p.data, opts...)
		started.Started = &began
	}
	if err != nil {
		return err
	}
	h.asked(r, operationPut, ofInstance, id)
	return writeStarted(w, started)
}

const operationPut = "put"

// putUpdate starts an instance where there is none, sends it an update, and waits for a while.
func putUpdate(
	h *handler, w http.ResponseWriter, r *http.Request, id string, p *putFields, opts []client.StartOption,
) error {
	key, _, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var u UpdateResponse
	return ofData(answerUpdate(h, w, r, operationPut, &u, func(ctx context.Context) (json.RawMessage, error) {
		result, began, err := h.client.StartOrUpdate(ctx, *p.name, p.input, *p.update, p.data, opts...)
		u = NewPendingUpdateResponse(id, *p.update, key, began)
		if _, told := errors.AsType[*client.UpdateError](err); err == nil || told {
			w.Header().Set(headerLocation, u.Links.Status)
		}
		return result, err
	}))
}

// putFields is the body of a put: a start, and an event or an update for what is there then.
type putFields struct {
	startFields

	name, event, update *string
	data                json.RawMessage
}

func readPut(w http.ResponseWriter, r *http.Request) (p putFields, err error) {
	err = readBody(w, r, p.all(map[string]any{
		fieldOrchestration: &p.name, fieldEvent: &p.event, fieldUpdate: &p.update, fieldData: &p.data,
	}))
	switch {
	case err != nil:
	case p.name == nil:
		err = &provider.FieldError{Field: fieldOrchestration, Problem: "is required"}
	case p.event != nil && p.update != nil:
		err = &provider.FieldError{Field: fieldUpdate, Problem: "cannot be combined with event"}
	case p.event == nil && p.update == nil && p.data != nil:
		err = &provider.FieldError{Field: fieldData, Problem: "requires event or update"}
	}
	return p, err
}

const (
	fieldEvent = "event"
	fieldData  = "data"
)
