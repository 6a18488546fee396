package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/internal/logevent"
)

// pendingTime limits the time to read pending tasks from a history, which may be long.
const pendingTime = 8 * time.Second

// Instance is the status of an instance, with its pending items and its cost estimate if requested. Pending is nil if
// the instance has ended.
type Instance struct {
	client.Status

	Pending *Pending `json:"pending,omitempty"`
	Cost    *Cost    `json:"cost,omitempty"`
}

// Pending lists the pending tasks of an instance, or the reason why they are unknown.
type Pending struct {
	*client.Pending

	ReadError *ReadError `json:"unread,omitempty"`
}

// ReadPending reads up to limit pending tasks of the current execution of an instance with status s. It returns nil if
// the instance has ended or no longer exists. If the read fails, it returns both err and a Pending with ReadError set.
func ReadPending(ctx context.Context, c *client.Client, s client.Status, limit int) (pending *Pending, err error) {
	if s.Status.Terminal() {
		return nil, nil //nolint:nilnil // an ended instance has no pending tasks
	}
	p, err := c.Pending(ctx, s.InstanceID, s.ExecutionID, limit)
	switch {
	case err == nil:
		return &Pending{Pending: &p}, nil
	case errors.Is(err, client.ErrNotFound):
		return nil, nil //nolint:nilnil // the instance is being deleted
	default:
		return &Pending{ReadError: unreadFor(err)}, err
	}
}

// unreadFor returns the ReadError for an error.
func unreadFor(err error) *ReadError {
	why := problem.OfServer(err)
	return &ReadError{Code: why.Code, Detail: why.Detail, Retryable: why.Retryable}
}

func (i instances) status(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	wanted := true
	if c.query.Has(paramPending) {
		if wanted, err = request.Bool(c.query, paramPending); err != nil {
			return err
		}
	}
	priced, err := request.Bool(c.query, "cost")
	if err != nil {
		return err
	}
	s, err := i.readStarted(c)
	if err != nil {
		return err
	}
	resp := Instance{Status: s}
	if wanted {
		limited, stop := context.WithTimeout(c.ctx(), pendingTime)
		defer stop()
		var unread error
		if resp.Pending, unread = ReadPending(limited, i.client, s, int(limit)); unread != nil {
			c.log.WarnContext(c.ctx(), "reading pending tasks failed", "event", logevent.PendingTasksReadFailed,
				"error", unread)
		}
	}
	if priced {
		resp.Cost = i.readCost(c, s.InstanceID)
	}
	if err := resp.shorten(); err != nil {
		return err
	}
	return c.reply(http.StatusOK, resp)
}

// readStarted reads an instance. On request, it waits until the first turn has run.
func (i instances) readStarted(c *call) (client.Status, error) {
	wait, err := request.Duration(c.query, "waitForStart", longestWait)
	if err != nil {
		return client.Status{}, err
	}
	s, err := i.read(c)
	if err == nil && wait > 0 && s.Status == client.StatusPending {
		s, err = waitFor(c.ctx(), s, wait, i.client.WaitForStart)
	}
	return s, err
}

// shorten removes pending items that do not fit a response. Total counts all items.
func (i *Instance) shorten() error {
	if i.Pending == nil || i.Pending.Pending == nil {
		return nil
	}
	rest, p := *i, *i.Pending.Pending
	p.Items = []client.PendingItem{}
	rest.Pending = &Pending{Pending: &p}
	n, err := response.Fitting(rest, i.Pending.Items)
	i.Pending.Items = i.Pending.Items[:n]
	return err
}
