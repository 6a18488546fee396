package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// putInstance starts an instance of the id in the path, and can replace what has it, or raise an event in it: the path is one of its own, since who may start need not be allowed to
// tell, end and delete, and IAM tells calls apart by method and path alone.
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
	started := NewStarted(id)
	opts = append(opts, client.WithInstanceID(id))
	if p.event == nil {
		_, err = h.client.Start(r.Context(), *p.name, p.input, opts...)
	} else {
		var began bool
		began, err = h.client.StartOrRaise(r.Context(), *p.name, p.input, *p.event, p.data, opts...)
		started.Started = &began
	}
	if err != nil {
		return err
	}
	h.asked(r, "put", ofInstance, id)
	return writeStarted(w, started)
}

// putFields is the body of a put: a start, and an event that is raised in what is there then.
type putFields struct {
	startFields

	name, event *string
	data        json.RawMessage
}

func readPut(w http.ResponseWriter, r *http.Request) (p putFields, err error) {
	err = readBody(w, r, p.all(map[string]any{fieldOrchestration: &p.name, fieldEvent: &p.event, fieldData: &p.data}))
	switch {
	case err != nil:
	case p.name == nil:
		err = &provider.FieldError{Field: fieldOrchestration, Problem: "is missing"}
	case p.event == nil && p.data != nil:
		err = &provider.FieldError{Field: fieldData, Problem: "is that of an event, and there is none"}
	}
	return p, err
}

const (
	fieldEvent = "event"
	fieldData  = "data"
)
