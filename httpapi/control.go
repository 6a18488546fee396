package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
)

// raise accepts any JSON as the body, which is the event's data. The default is null.
func (i instances) raise(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	event, err := request.ID(c.r, "event", "event")
	if err != nil {
		return err
	}
	data, err := request.All(c.w, c.r)
	if err != nil {
		return err
	}
	var opts []client.RaiseOption
	switch key, given, err := request.IdempotencyKey(c.r); {
	case err != nil:
		return err
	case given:
		opts = append(opts, client.WithEventID(key))
	}
	if err := i.client.RaiseEvent(c.ctx(), id, event, orNull(data), opts...); err != nil {
		return err
	}
	return c.accepted(id)
}

func (i instances) cancel(c *call) error { return sendTo(c, i.client.Cancel) }

func (i instances) terminate(c *call) error { return sendTo(c, i.client.Terminate) }

func (i instances) pause(c *call) error { return sendTo(c, i.client.Pause) }

func (i instances) resume(c *call) error { return sendTo(c, i.client.Resume) }

// sendTo is like send, for the instance in the path.
func sendTo(c *call, do func(ctx context.Context, instanceID, message string) error) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	return c.send(id, do)
}

func (i instances) cancelActivity(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	activity, err := request.Number(c.r, problem.FieldActivityID)
	if err != nil {
		return err
	}
	message, err := c.message()
	if err != nil {
		return err
	}
	if err := i.client.CancelActivity(c.ctx(), id, activity, message); err != nil {
		return err
	}
	c.audit(id, strconv.FormatInt(activity, 10))
	return c.reply(http.StatusAccepted, AcceptedResponse{InstanceID: id})
}
