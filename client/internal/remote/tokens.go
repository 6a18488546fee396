package remote

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/completion"
	"github.com/perdure/perdure/client/internal/leasing"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/entities"
	"github.com/perdure/perdure/provider"
)

// Attempts completes attempts of activities through the API.
type Attempts struct {
	hub         *Hub
	publicError func(error) error
}

// NewAttempts returns the attempts of a hub. publicError converts a completion.TokenError for interceptors.
func NewAttempts(h *Hub, publicError func(error) error) *Attempts { return &Attempts{h, publicError} }

// completionBody is the body of a call with a token.
type completionBody struct {
	Token   string          `json:"token"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failing        `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// failing is the error of an attempt.
type failing struct {
	Type         string          `json:"type"`
	Message      string          `json:"message"`
	NonRetryable bool            `json:"nonRetryable,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`
	Cause        *failing        `json:"cause,omitempty"`
	Joined       []string        `json:"joined,omitempty"`
}

// newFailing returns the error of a failure, with its causes.
func newFailing(f *history.Failure) *failing {
	if f == nil {
		return nil
	}
	details, _ := f.Details.Document()
	return &failing{
		Type: f.Type, Message: f.Message, NonRetryable: f.NonRetryable, Details: details,
		Cause: newFailing(f.Cause), Joined: f.Joined,
	}
}

// Complete completes the attempt of a token with a result.
func (a *Attempts) Complete(ctx context.Context, token string, result any) error {
	doc, err := completion.EncodeResult(result, perdure.MaxPayloadBytes)
	if err != nil {
		return err
	}
	inline, _ := doc.Document()
	return a.end(ctx, clientcall.Complete, "completeActivity", &completionBody{Token: token, Result: inline},
		apiwire.CodeActivityOver, apiwire.CodeExecutionOver)
}

// Fail fails the attempt of a token with an error.
func (a *Attempts) Fail(ctx context.Context, token string, err error) error {
	f, err := completion.FailureFor(ctx, err)
	if err != nil {
		return err
	}
	body := completionBody{Token: token, Error: newFailing(f)}
	return a.end(ctx, clientcall.Fail, "failActivity", &body,
		apiwire.CodeActivityOver, apiwire.CodeExecutionOver, apiwire.CodeSuperseded)
}

// end sends an outcome. The problems with the settled codes mean that an earlier request has sent it.
func (a *Attempts) end(ctx context.Context, operation, id string, body *completionBody, settled ...string) error {
	return a.hub.call(ctx, operation, "", "", func(ctx context.Context) error {
		call := apiclient.Call{Operation: id, Body: body, Errors: tokenError, Settled: settled}
		_, err := a.hub.api.Do(ctx, call)
		if field, ok := errors.AsType[*provider.FieldError](err); ok && body.Error != nil &&
			(field.Field == "cause" || field.Field == "joined") { // an API of an earlier release
			body.Error.Cause, body.Error.Joined = nil, nil
			_, err = a.hub.api.Do(ctx, call)
		}
		return a.publicError(err)
	})
}

// Heartbeat records a heartbeat of the attempt of a token, and returns whether the activity is cancelled.
func (a *Attempts) Heartbeat(ctx context.Context, token string, details any) (cancel provider.CancelInfo, err error) {
	doc, err := completion.EncodeDetails(details)
	if err != nil {
		return cancel, err
	}
	r, err := apiclient.Get[apiwire.HeartbeatResponse](ctx, a.hub.api, apiclient.Call{
		Operation: "beatActivity", Body: &completionBody{Token: token, Details: doc}, Errors: tokenError,
	})
	if err != nil {
		return cancel, err
	}
	return cancelInfo(r.Cancel), nil
}

// cancelInfo returns the cancellation of an activity, if there is one.
func cancelInfo(c *apiwire.RenewalCancel) provider.CancelInfo {
	if c == nil {
		return provider.CancelInfo{}
	}
	return provider.CancelInfo{Requested: true, Reason: c.Reason, Message: c.Message, RequestedAt: c.RequestedAt}
}

// tokenError returns the error of a token that is not accepted, or nil for other problems.
func tokenError(p *apiwire.Problem) error {
	switch p.Code {
	case apiwire.CodeInvalidToken, apiwire.CodeOtherHub, apiwire.CodeSuperseded, apiwire.CodeActivityOver,
		apiwire.CodeExecutionOver:
	default:
		return nil
	}
	e := &completion.TokenError{Reason: completion.Reason(p.Code)}
	if x := p.Attempt; x != nil {
		e.Hub, e.InstanceID, e.ExecutionID, e.ActivityID = x.Hub, x.InstanceID, x.ExecutionID, x.ActivityID
		e.Attempt, e.CurrentAttempt = x.Attempt, x.CurrentAttempt
	}
	return e
}

const opRenew = "renewWorkItems"

// Renew renews leases.
func (h *Hub) Renew(
	ctx context.Context, visibility time.Duration, leases []leasing.Lease,
) ([]leasing.Renewal, error) {
	if err := leasing.Check(visibility, leases); err != nil {
		return nil, err
	}
	resp, err := apiclient.Get[apiwire.Renewals](ctx, h.api, apiclient.Call{Operation: opRenew, Body: map[string]any{
		"visibilityTimeout": int64(visibility / time.Second), "leases": leases,
	}})
	switch {
	case err != nil:
		return nil, err
	case len(resp.Leases) != len(leases):
		return nil, apiclient.NewError(opRenew, "", false, errors.New("response has another number of leases"))
	}
	results := make([]leasing.Renewal, len(leases))
	for i := range resp.Leases {
		r := &resp.Leases[i]
		results[i].Cancel = cancelInfo(r.Cancel)
		if r.ExpiresAt != nil {
			results[i].ExpiresAt = *r.ExpiresAt
		}
		if e := r.Error; e != nil {
			results[i].Err = leaseErrorOf(e)
		}
		if r.CancelUnknown {
			results[i].CancelErr = errCancelUnknown
		}
	}
	return results, nil
}

var errCancelUnknown = apiclient.NewError(opRenew, "", true, errors.New("the API could not read the cancellation"))

func leaseErrorOf(e *apiwire.RenewalError) error {
	if e.Code == apiwire.CodeUnknownQueue {
		return &provider.FieldError{Field: "queue", Problem: "no longer exists: " + e.Detail}
	}
	return apiclient.ErrorOf("", opRenew, e.Code, e.Detail, e.Retryable)
}

// finalQueries are the problems of queries that a client of a provider returns at once.
var finalQueries = []string{
	apiwire.PrefixQuery + string(provider.QueryNotStarted), apiwire.PrefixQuery + string(provider.QueryTimedOut),
}

// QueryInstance implements provider.Querier.
func (h *Hub) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	failed := func(p *apiwire.Problem) error { return queryError(&q, p) }
	if entity, entityKey, ok := entities.Parse(q.InstanceID); ok && q.Name == perdure.EntityStateQuery {
		r, err := apiclient.Get[struct {
			State json.RawMessage `json:"state"`
		}](ctx, h.api, apiclient.Call{
			Operation: "entityState", Path: []string{entity, entityKey}, InstanceID: q.InstanceID, Errors: failed,
			Final: finalQueries,
		})
		return r.State, err
	}
	r, err := apiclient.Get[struct {
		Output json.RawMessage `json:"answer"`
	}](ctx, h.api, apiclient.Call{
		Operation: "queryInstance", Path: []string{q.InstanceID}, InstanceID: q.InstanceID, Errors: failed,
		Body: map[string]any{"query": q.Name, fieldInput: q.Input}, Final: finalQueries,
	})
	return r.Output, err
}

// queryError returns the error of a query without a result, or nil for other problems.
func queryError(q *provider.QueryRequest, p *apiwire.Problem) error {
	code, isQuery := strings.CutPrefix(p.Code, apiwire.PrefixQuery)
	if p.Code == apiwire.CodeUnknownQuery {
		code, isQuery = p.Code, true
	}
	if !isQuery {
		return nil
	}
	e := &provider.QueryError{
		InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryCode(code), Message: p.Detail, Known: p.Known,
		Failure: p.Failure,
	}
	if e.Failure == nil && p.Details != nil { // of an API of an earlier release
		e.Failure = &history.Failure{
			Type: history.TypeError, Message: p.Detail, Details: history.NewInlinePayload(p.Details),
		}
	}
	return e
}
