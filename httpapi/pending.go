package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
)

const (
	paramPending      = "pending"
	paramWaitForStart = "waitForStart"
)

// pendingTime is how long an answer about an instance waits for what is pending: that is in its history, which may be
// long.
const pendingTime = 8 * time.Second

// Instance is the status of an instance, with its pending items and its cost estimate if requested. Pending is nil if
// the instance has ended.
type Instance struct {
	client.Status

	Pending *Pending `json:"pending,omitempty"`
	Cost    *Cost    `json:"cost,omitempty"`
}

// Pending lists what an instance is waiting for, or the reason why it is unknown.
type Pending struct {
	*client.Pending

	ReadError *ReadError `json:"unread,omitempty"`
}

// ReadError is the reason why something could not be read.
type ReadError struct {
	// Code is the code of a problem.
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

// ReadPending reads what the current execution of an instance with status s is waiting for, up to limit items. It
// returns nil if the instance has ended or no longer exists. If the read fails, it returns both err and a Pending with
// ReadError set.
func ReadPending(ctx context.Context, c *client.Client, s client.Status, limit int) (answer *Pending, err error) {
	if s.Status.Terminal() {
		return nil, nil //nolint:nilnil // there is nothing to wait for
	}
	p, err := c.Pending(ctx, s.InstanceID, s.ExecutionID, limit)
	switch {
	case err == nil:
		return &Pending{Pending: &p}, nil
	case errors.Is(err, client.ErrNotFound):
		return nil, nil //nolint:nilnil // it is being deleted
	default:
		return &Pending{ReadError: unreadFor(err)}, err
	}
}

// unreadFor is why something could not be read, as the problem of an answer would say it.
func unreadFor(err error) *ReadError {
	why := serverProblem(err)
	return &ReadError{Code: why.Code, Detail: why.Detail, Retryable: why.Retryable}
}

func (h *handler) status(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	wanted := true
	if query.Has(paramPending) {
		if wanted, err = boolParam(query, paramPending); err != nil {
			return err
		}
	}
	priced, err := boolParam(query, paramCost)
	if err != nil {
		return err
	}
	s, err := h.readStarted(r, query)
	if err != nil {
		return err
	}
	answer := Instance{Status: s}
	if wanted {
		limited, stop := context.WithTimeout(r.Context(), pendingTime)
		defer stop()
		var unread error
		if answer.Pending, unread = ReadPending(limited, h.client, s, int(limit)); unread != nil {
			h.log.WarnContext(r.Context(), "reading pending tasks failed", "event", logevent.PendingTasksReadFailed,
				"error", unread)
		}
	}
	if priced {
		answer.Cost = readCost(r.Context(), h, s.InstanceID)
	}
	if err := answer.shorten(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

// readStarted reads an instance, if need be waiting until its first turn has run.
func (h *handler) readStarted(r *http.Request, query url.Values) (client.Status, error) {
	wait, err := durationParam(query, paramWaitForStart, longestWait)
	if err != nil {
		return client.Status{}, err
	}
	s, err := h.read(r)
	if err == nil && wait > 0 && s.Status == client.StatusPending {
		s, err = waitFor(r.Context(), s, wait, h.client.WaitForStart)
	}
	return s, err
}

// shorten leaves of what is pending as much as an answer holds. Total counts all of it.
func (i *Instance) shorten() error {
	if i.Pending == nil || i.Pending.Pending == nil {
		return nil
	}
	rest, p := *i, *i.Pending.Pending
	p.Items = []client.PendingItem{}
	rest.Pending = &Pending{Pending: &p}
	n, err := fitting(rest, i.Pending.Items)
	i.Pending.Items = i.Pending.Items[:n]
	return err
}
