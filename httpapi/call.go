package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// call is a request for an operation.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	query     url.Values
	operation *api.Operation
	log       *slog.Logger
}

func (c *call) ctx() context.Context { return c.r.Context() }

// instanceID returns the instance ID of the path.
func (c *call) instanceID() (string, error) { return request.ID(c.r, "id", problem.FieldInstanceID) }

// limit returns the maximum number of items of a list.
func (c *call) limit() (int64, error) {
	return request.Int(c.query, paramLimit, 1, client.MaxPageSize, defaultPage)
}

// body reads a body that must be one JSON object with only the given fields.
func (c *call) body(fields map[string]any) error { return request.Body(c.w, c.r, fields) }

// message reads an optional body that has only a message.
func (c *call) message() (message string, err error) {
	body, err := request.All(c.w, c.r)
	if err == nil && len(body) > 0 {
		err = request.Object(body, map[string]any{fieldMessage: &message})
	}
	return message, err
}

// idempotencyKey returns the header Idempotency-Key, which the parameter requireKey makes mandatory.
func (c *call) idempotencyKey() (key string, given bool, err error) {
	required, err := request.Bool(c.query, api.RequireKey)
	if err != nil {
		return "", false, err
	}
	key, given, err = request.IdempotencyKey(c.r)
	if err == nil && required && !given {
		err = &provider.FieldError{Field: problem.FieldIdempotencyKey, Problem: "is required by " + api.RequireKey}
	}
	return key, given, err
}

// updateOptions returns the options of an update, and its ID, which is empty if the request has no Idempotency-Key.
func (c *call) updateOptions() (opts []client.UpdateOption, updateID string, err error) {
	key, given, err := request.IdempotencyKey(c.r)
	if given {
		opts = append(opts, client.WithUpdateID(key))
	}
	return opts, key, err
}

func (c *call) reply(status int, v any) error { return response.JSON(c.w, status, v) }

// accepted writes the audit line, and responds with the instance.
func (c *call) accepted(instanceID string) error {
	c.audit(instanceID, "")
	return c.reply(http.StatusAccepted, AcceptedResponse{InstanceID: instanceID})
}

// send calls do with the instance and the message of the body, and responds with the instance.
func (c *call) send(instanceID string, do func(ctx context.Context, instanceID, message string) error) error {
	message, err := c.message()
	if err != nil {
		return err
	}
	err = do(c.ctx(), instanceID, message)
	notPaused := errors.Is(err, client.ErrNotPaused)
	if err != nil && !notPaused {
		return err
	}
	c.audit(instanceID, "")
	return c.reply(http.StatusAccepted, AcceptedResponse{InstanceID: instanceID, NotPaused: notPaused})
}

// audit logs an accepted call with its caller. value selects the audit action of the operation.
func (c *call) audit(subjectID, value string) {
	name, _ := provider.RequesterOf(c.ctx())
	by := cmp.Or(history.Requester(name), history.RequestedByClient)
	audit := c.operation.Audit
	c.log.InfoContext(c.ctx(), "operation requested", "event", logevent.OperationRequested,
		"operation", audit.ActionFor(value), audit.Subject, subjectID, "requestedBy", by)
}

// orNull returns the JSON value, or null if it is missing.
func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}
