package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// RenewPath is the path of the only call that NewRenewHandler serves.
const RenewPath = "/v1/work-items/renew"

// The codes of leases that were not extended, for programs. They only grow; unavailable and internal are among them.
const (
	codeInvalidToken = "invalid_token"
	codeLockLost     = "lock_lost"
	codeLockLimit    = "lock_limit"
	codeUnknownQueue = "unknown_queue"
)

// NewRenewHandler returns a handler that only renews locks of work items. Use it for a function that has the
// permissions of a worker and must not serve any other call.
func NewRenewHandler(c *client.Client, opts ...Option) http.Handler {
	return newHandler(c, nil, []route{renewRoute()}, opts)
}

func renewRoute() route {
	return route{http.MethodPost, RenewPath, nil, (*handler).renewWorkItems}
}

// Renewals holds the results of a renewal, in the order of the leases.
type Renewals struct {
	Leases []Renewal `json:"leases"`
}

// Renewal is the result of renewing one lease. Either ExpiresAt or Error is set.
type Renewal struct {
	// ExpiresAt is the earliest time at which the message becomes visible again.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Cancel is set if the activity is cancelled. Its worker should stop and delete the message.
	Cancel *RenewalCancel `json:"cancel,omitempty"`
	// CancelUnknown reports that the cancellation could not be read this time.
	CancelUnknown bool          `json:"cancelUnknown,omitempty"`
	Error         *RenewalError `json:"error,omitempty"`
}

// RenewalCancel is the reason and time of an activity's cancellation.
type RenewalCancel struct {
	Reason      string    `json:"reason"`
	Message     string    `json:"message,omitempty"`
	RequestedAt time.Time `json:"requestedAt"`
}

// RenewalError is why a lock was not extended. The lock expires at its previous time.
type RenewalError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Retryable reports whether the same call can succeed later.
	Retryable bool `json:"retryable"`
}

// RenewLeases renews leases with the request body of the HTTP call. The error's text begins with the problem code that
// the HTTP call would return. Failures of called services are logged to log.
func RenewLeases(ctx context.Context, c *client.Client, log *slog.Logger, body []byte) (Renewals, error) {
	r, err := renew(ctx, c, log, body)
	if err != nil {
		p := problemOf(err)
		return r, fmt.Errorf("%w (%w)", &p, err)
	}
	return r, nil
}

func (h *handler) renewWorkItems(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	body, err := readAll(w, r)
	if err != nil {
		return err
	}
	answer, err := renew(r.Context(), h.client, h.log, body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
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
	answer := Renewals{Leases: make([]Renewal, len(renewals))}
	var failed []error
	for i := range renewals {
		answer.Leases[i] = newRenewal(&renewals[i])
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
	return answer, nil
}

// readLeases reads what is asked for. What is wrong with a lease is said with its index.
func readLeases(body []byte) (visibility time.Duration, leases []client.Lease, err error) {
	var seconds int64
	var list []json.RawMessage
	if err := readObject(body, map[string]any{"leases": &list, "visibilityTimeout": &seconds}); err != nil {
		return 0, nil, err
	}
	if seconds < 0 || seconds > int64(client.MaxVisibility/time.Second) {
		seconds = 0 // which is none either, and no duration of this many seconds may overflow
	}
	visibility = time.Duration(seconds) * time.Second
	leases = make([]client.Lease, len(list))
	for i := range min(len(list), client.MaxLeases) {
		err := readObject(list[i], map[string]any{"token": &leases[i].Token, "receiptHandle": &leases[i].ReceiptHandle})
		if field, ok := errors.AsType[*provider.FieldError](err); ok {
			return 0, nil, ofLease(i, field)
		}
	}
	return visibility, leases, nil
}

// ofLease is what is wrong with a field of a lease, or with all of it.
func ofLease(i int, f *provider.FieldError) error {
	at := fmt.Sprintf("leases[%d]", i)
	if f.Field != fieldBody {
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

// renewalError is what the caller is sent for an error: never its own text.
func renewalError(err error) *RenewalError {
	var field *provider.FieldError
	switch {
	case errors.Is(err, provider.ErrInvalidToken):
		return &RenewalError{Code: codeInvalidToken, Detail: "token was not issued by this hub, or its key was deleted"}
	case errors.Is(err, provider.ErrLockLost):
		return &RenewalError{
			Code: codeLockLost, Detail: "lock on the message was lost; stop the activity and do not delete the message",
		}
	case errors.Is(err, provider.ErrLockLimit):
		return &RenewalError{Code: codeLockLimit, Detail: "lock would exceed 12 hours since the message was received"}
	case errors.As(err, &field):
		return &RenewalError{Code: codeUnknownQueue, Detail: "hub no longer has this queue"}
	default:
		p := serverProblem(err)
		return &RenewalError{Code: p.Code, Detail: p.Detail, Retryable: p.Retryable}
	}
}
