package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// RenewPath is the path of the only call that NewRenewHandler serves.
const RenewPath = "/v1/work-items/renew"

// NewRenewHandler returns a handler that only renews locks of work items. Use it for a function that has the
// permissions of a worker and must not serve any other call.
func NewRenewHandler(c *client.Client, opts ...Option) http.Handler {
	renewal := slices.DeleteFunc(api.Operations(), func(o api.Operation) bool {
		return o.ID != api.RenewWorkItems
	})
	h := newHandler(opts)
	h.register(renewal, functions{api.RenewWorkItems: leases{c}.renew})
	return h
}

// RenewLeases renews leases, given the request body of the HTTP call. The text of the error begins with the problem
// code that the HTTP call would return. RenewLeases logs failures of called services to log.
func RenewLeases(ctx context.Context, c *client.Client, log *slog.Logger, body []byte) (Renewals, error) {
	r, err := renew(ctx, c, log, body)
	if err != nil {
		p := problem.Of(err)
		return r, fmt.Errorf("%w (%w)", &p, err)
	}
	return r, nil
}

func (l leases) renew(c *call) error {
	body, err := request.All(c.w, c.r)
	if err != nil {
		return err
	}
	resp, err := renew(c.ctx(), l.client, c.log, body)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, resp)
}

func renew(ctx context.Context, c *client.Client, log *slog.Logger, body []byte) (Renewals, error) {
	visibility, leases, err := readLeases(body)
	if err != nil {
		return Renewals{}, err
	}
	renewals, err := c.RenewWorkItems(ctx, visibility, leases...)
	if err != nil {
		return Renewals{}, err
	}
	resp := Renewals{Leases: make([]Renewal, len(renewals))}
	var failed []error
	for i := range renewals {
		resp.Leases[i] = newRenewal(&renewals[i])
		if _, ofService := errors.AsType[*provider.Error](renewals[i].Err); ofService {
			failed = append(failed, renewals[i].Err)
		} else if renewals[i].CancelErr != nil {
			failed = append(failed, renewals[i].CancelErr)
		}
	}
	if n := len(failed); n > 0 {
		log.WarnContext(ctx, "lease renewal incomplete", "event", logevent.LeaseRenewalIncomplete,
			"leases", len(renewals), "failed", n, "error", failed[0])
	}
	return resp, nil
}

// readLeases reads the request. The field of an error has the index of its lease.
func readLeases(body []byte) (visibility time.Duration, leases []client.Lease, err error) {
	var seconds int64
	var list []json.RawMessage
	if err := request.Object(body, map[string]any{"leases": &list, "visibilityTimeout": &seconds}); err != nil {
		return 0, nil, err
	}
	if seconds < 0 || seconds > int64(client.MaxVisibility/time.Second) {
		seconds = 0 // RenewWorkItems rejects 0; the duration of other values could overflow
	}
	visibility = time.Duration(seconds) * time.Second
	leases = make([]client.Lease, len(list))
	for i := range min(len(list), client.MaxLeases) {
		lease := &leases[i]
		err := request.Object(list[i], map[string]any{"token": &lease.Token, "receiptHandle": &lease.ReceiptHandle})
		if field, ok := errors.AsType[*provider.FieldError](err); ok {
			return 0, nil, ofLease(i, field)
		}
	}
	return visibility, leases, nil
}

// ofLease adds the index of a lease to the field of an error.
func ofLease(i int, f *provider.FieldError) error {
	at := fmt.Sprintf("leases[%d]", i)
	if f.Field != problem.FieldBody {
		at += "." + f.Field
	}
	return &provider.FieldError{Field: provider.Excerpt(at), Problem: f.Problem}
}

func newRenewal(r *client.LeaseRenewal) (a Renewal) {
	if !r.ExpiresAt.IsZero() {
		at := r.ExpiresAt.UTC()
		a.ExpiresAt = &at
	} else {
		a.Error = renewalError(r.Err)
	}
	if r.Cancel.Requested {
		a.Cancel = &RenewalCancel{Reason: r.Cancel.Reason, Message: r.Cancel.Message, RequestedAt: r.Cancel.RequestedAt}
	}
	a.CancelUnknown = r.CancelErr != nil
	return a
}

// renewalError returns the response for an error, without its text.
func renewalError(err error) *RenewalError {
	var field *provider.FieldError
	switch {
	case errors.Is(err, provider.ErrInvalidToken):
		return &RenewalError{
			Code: apiwire.CodeInvalidToken, Detail: "token was not issued by this hub, or its key was deleted",
		}
	case errors.Is(err, provider.ErrLockLost):
		return &RenewalError{
			Code:   apiwire.CodeLockLost,
			Detail: "lock on the message was lost; stop the activity and do not delete the message",
		}
	case errors.Is(err, provider.ErrLockLimit):
		return &RenewalError{
			Code: apiwire.CodeLockLimit, Detail: "lock would exceed 12 hours since the message was received",
		}
	case errors.As(err, &field):
		return &RenewalError{Code: apiwire.CodeUnknownQueue, Detail: "hub no longer has this queue"}
	default:
		p := problem.OfServer(err)
		return &RenewalError{Code: p.Code, Detail: p.Detail, Retryable: p.Retryable}
	}
}
