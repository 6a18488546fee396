package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/provider"
)

// put starts an instance with the ID of the path, and can replace it, raise an event or send an update. The route is
// separate because IAM distinguishes calls by method and path. A caller may have permission to start instances, but not
// to control them.
func (i instances) put(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	p, err := readPut(c)
	if err != nil {
		return err
	}
	opts, err := p.startOptions(c.r)
	if err != nil {
		return err
	}
	started := NewStartResponse(id)
	opts = append(opts, client.WithInstanceID(id))
	if p.update != nil {
		return i.putUpdate(c, id, &p, opts)
	}
	if p.event == nil {
		_, err = i.client.Start(c.ctx(), *p.name, p.input, opts...)
	} else {
		var began bool
		began, err = i.client.StartOrRaiseEvent(c.ctx(), *p.name, p.input, *p.event, p.data, opts...)
		started.Started = &began
	}
	if err != nil {
		return err
	}
	c.audit(id, "")
	return replyStarted(c, started)
}

// putUpdate starts an instance unless it exists, sends an update, and waits for the result.
func (i instances) putUpdate(c *call, id string, p *putFields, opts []client.StartOption) error {
	key, _, err := request.IdempotencyKey(c.r)
	if err != nil {
		return err
	}
	var u UpdateResponse
	return problem.OfData(replyUpdate(c, &u, func(ctx context.Context) (json.RawMessage, error) {
		result, began, err := i.client.StartOrUpdate(ctx, *p.name, p.input, *p.update, p.data, opts...)
		u = NewPendingUpdateResponse(id, *p.update, key, began)
		if _, sent := errors.AsType[*client.UpdateError](err); err == nil || sent {
			c.w.Header().Set("Location", u.Links.Status)
		}
		return result, err
	}))
}

// putFields is the body of a put: a start, and an optional event or update.
type putFields struct {
	startFields

	name, event, update *string
	data                json.RawMessage
}

func readPut(c *call) (p putFields, err error) {
	err = c.body(p.all(map[string]any{
		problem.FieldOrchestration: &p.name, "event": &p.event, problem.FieldUpdate: &p.update,
		problem.FieldData: &p.data,
	}))
	switch {
	case err != nil:
	case p.name == nil:
		err = &provider.FieldError{Field: problem.FieldOrchestration, Problem: "is required"}
	case p.event != nil && p.update != nil:
		err = &provider.FieldError{Field: problem.FieldUpdate, Problem: "cannot be combined with event"}
	case p.event == nil && p.update == nil && p.data != nil:
		err = &provider.FieldError{Field: problem.FieldData, Problem: "requires event or update"}
	}
	return p, err
}
