package problem_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/provider"
)

// respondWith is a transport that responds to each request with a problem.
type respondWith struct{ problem problem.Problem }

func (r respondWith) RoundTrip(*http.Request) (*http.Response, error) {
	body, err := json.Marshal(r.problem)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: r.problem.Status, Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body: io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// A client of the API returns the errors that a client of a provider returns: the same sentinels, types and fields.
func TestOf_errorsOfClients_surviveTheAPI(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)
	for _, want := range []error{
		client.ErrNotFound, client.ErrEnded, client.ErrNotEnded, client.ErrUnknownOrchestration, client.ErrPurged,
		client.ErrAlreadyExists, client.ErrActivityNotFound, client.ErrNotCancellable, client.ErrQueriesUnsupported,
		admin.ErrDeadLettersUnsupported,
		provider.UnsupportedError{Capability: provider.CapabilityAnnotations},
		provider.ErrCorrupt,
	} {
		if err := returned(t, want); !errors.Is(err, want) {
			t.Errorf("%v became %v", want, err)
		}
	}
	field := &provider.FieldError{Field: "delay", Problem: "must be 0s to ten years"}
	if e, ok := errors.AsType[*provider.FieldError](returned(t, field)); !ok || *e != *field {
		t.Errorf("field error %+v", e)
	}
	large := &perdure.PayloadTooLargeError{Name: "input", Bytes: 7, Limit: 5}
	if e, ok := errors.AsType[*perdure.PayloadTooLargeError](returned(t, large)); !ok || *e != *large {
		t.Errorf("payload error %+v", e)
	}
	exists := &client.AlreadyExistsError{
		InstanceID: "one", Orchestration: "hello", Status: client.StatusRunning, CreatedAt: began,
		Reason: client.ErrAlreadyExists,
	}
	if e, ok := errors.AsType[*client.AlreadyExistsError](returned(t, exists)); !ok || e.Orchestration != "hello" ||
		e.Status != client.StatusRunning || !e.CreatedAt.Equal(began) {
		t.Errorf("existing instance %+v", e)
	}
	for retryable, detail := range map[bool]string{true: "unavailable", false: "internal"} {
		err := returned(t, &provider.Error{Op: "DynamoDB.GetItem", Retryable: retryable, Err: io.EOF})
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.Retryable != retryable ||
			!strings.Contains(e.Error(), detail) {
			t.Errorf("retryable=%t became %v", retryable, err)
		}
	}
}

func TestOf_tokenError_survivesTheAPI(t *testing.T) {
	t.Parallel()
	for _, want := range []client.TokenError{
		{Reason: client.TokenInvalid},
		{Reason: client.TokenWrongHub, Hub: "other"},
		{
			Reason: client.TokenSuperseded, InstanceID: "one", ExecutionID: "x", ActivityID: 3, Attempt: 1,
			CurrentAttempt: 2,
		},
	} {
		c := dial(t, problem.Of(&want))
		err := c.CompleteActivity(t.Context(), "c1.x", 7)
		if e, ok := errors.AsType[*client.TokenError](err); !ok || *e != want {
			t.Errorf("%+v became %v", want, err)
		}
	}
}

// returned returns the error of a client whose API responds with the problem of an error.
func returned(t *testing.T, err error) error {
	t.Helper()
	c := dial(t, problem.Of(err))
	return c.CancelActivity(t.Context(), "one", 2, "why")
}

func dial(t *testing.T, p problem.Problem) *client.Client {
	t.Helper()
	c, err := client.Dial("https://api.example.com", client.WithMaxAttempts(1),
		client.WithHTTPClient(&http.Client{Transport: respondWith{p}}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOf_queryError_survivesTheAPI(t *testing.T) {
	t.Parallel()
	failure := &history.Failure{
		Type: "QueryError", Message: "no", Details: history.NewInlinePayload([]byte(`{"n":1}`)),
		Cause: &history.Failure{Type: history.TypeTimeout, Message: "late"},
	}
	for _, want := range []client.QueryError{
		{Code: client.QueryHandlerNotFound, Known: []string{"a", "b"}},
		{Code: client.QueryFailed, Failure: failure},
		{Code: client.QueryTimedOut},
		{Code: client.QueryNotStarted},
		{Code: client.QueryUnsupported},
	} {
		want.InstanceID, want.Query, want.Message = "one", "q", "it has no result"
		_, err := dial(t, problem.Of(&want)).Query(t.Context(), "one", "q", nil)
		got, ok := errors.AsType[*client.QueryError](err)
		if diff := cmp.Diff(&want, got); !ok || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestOf_updateError_survivesTheAPI(t *testing.T) {
	t.Parallel()
	failure := &history.Failure{Type: history.TypeTimeout, Message: "no"}
	const rejected = "rejected: no"
	for _, want := range []client.UpdateError{
		{Code: client.UpdateRejected, Message: rejected, Failure: failure},
		{Code: client.UpdateHandlerNotFound, Message: rejected, Failure: failure},
		{Code: client.UpdateBadInput, Message: rejected, Failure: failure},
		{Code: client.UpdateValidatorNotReadOnly, Message: rejected, Failure: failure},
		{Code: client.UpdateLimitExceeded, Message: rejected, Failure: failure},
		{Code: client.UpdateFailed, Message: "handler failed: no", Failure: failure},
		{Code: client.UpdateAborted, Message: "execution ended before the handler returned: why"},
		{Code: client.UpdateResultExpired, Message: "accepted earlier, and its result is no longer stored"},
	} {
		c := dial(t, problem.Of(&want))
		_, err := c.Update(t.Context(), "one", "address", 7, client.WithUpdateID("u1"))
		got, ok := errors.AsType[*client.UpdateError](err)
		if !ok || got.InstanceID != "one" || got.Update != "address" || got.UpdateID != "u1" ||
			got.Code != want.Code || got.Message != want.Message || !cmp.Equal(got.Failure, want.Failure) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
		if _, timeout := errors.AsType[*perdure.TimeoutError](err); timeout != (want.Failure != nil) {
			t.Errorf("%s: errors.As finds a TimeoutError: %t", want.Code, timeout)
		}
	}
}
