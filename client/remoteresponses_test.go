package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// fixed is a transport with the same response for each request. It keeps the requests.
type fixed struct {
	status      int
	contentType string
	body        string
	requests    []*http.Request
}

func (f *fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	f.requests = append(f.requests, r)
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", f.contentType)
	w.WriteHeader(f.status)
	_, _ = w.WriteString(f.body)
	return w.Result(), nil
}

// respond returns a remote client with a transport.
func respond(t *testing.T, f http.RoundTripper, opts ...client.DialOption) *client.Client {
	t.Helper()
	opts = append(opts, client.WithHTTPClient(&http.Client{Transport: f}),
		client.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() }))
	c, err := client.Dial("https://api.example.com", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func responding(body string) *fixed {
	return &fixed{status: http.StatusOK, contentType: "application/json", body: body}
}

func refused(status int, body string) *fixed {
	return &fixed{status: status, contentType: "application/problem+json", body: body}
}

// The source of tokens is called before each attempt. Its error ends the call.
func TestWithToken_eachAttempt_hasAToken(t *testing.T) {
	t.Parallel()
	calls := 0
	expired := errors.New("expired")
	source := client.WithToken(func(context.Context) (string, error) {
		calls++
		if calls > 2 {
			return "", expired
		}
		return []string{"first", "second"}[calls-1], nil
	})
	f := refused(http.StatusServiceUnavailable, `{"code":"unavailable","retryable":true}`)
	if _, err := respond(t, f, source).Status(t.Context(), "one"); !errors.Is(err, expired) {
		t.Errorf("error %v", err)
	}
	var got []string
	for _, r := range f.requests {
		got = append(got, r.Header.Get("Authorization"))
	}
	if len(got) != 2 || got[0] != "Bearer first" || got[1] != "Bearer second" {
		t.Errorf("authorizations %q", got)
	}
}

func TestWithMaxAttempts_limitsRequests(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		f := refused(http.StatusServiceUnavailable, `{"code":"unavailable","retryable":true}`)
		_, err := respond(t, f, client.WithMaxAttempts(n)).Status(t.Context(), "one")
		if e, failed := errors.AsType[*provider.Error](err); !failed || !e.Retryable || len(f.requests) != n {
			t.Errorf("%d requests, want %d: %v", len(f.requests), n, err)
		}
	}
	if _, err := client.Dial("https://api.example.com", client.WithMaxAttempts(0)); err == nil {
		t.Error("0 attempts are accepted")
	}
}

func TestUpdate_resultIsNotReturned_errorDescribesIt(t *testing.T) {
	t.Parallel()
	c := respond(t, responding(`{"instanceId":"one","update":"a","resultSealed":{"codec":"k1","key":"p/1","bytes":7}}`))
	_, err := c.Update(t.Context(), "one", "a", nil)
	e, failed := errors.AsType[*client.UpdateError](err)
	if !failed || e.Code != client.UpdateResultEncoded ||
		*e.EncodedResult != (client.EncodedPayload{Codec: "k1", Key: "p/1", Bytes: 7}) {
		t.Errorf("error %v", err)
	}
}

// An API of an earlier release does not return the failure of a handler, but its message and details.
func TestUpdate_problemWithoutFailure_hasMessageAndDetails(t *testing.T) {
	t.Parallel()
	c := respond(t, refused(http.StatusUnprocessableEntity,
		`{"status":422,"code":"update_failed","detail":"handler failed: no stock","details":{"n":7}}`))
	_, err := c.Update(t.Context(), "one", "a", nil)
	e, failed := errors.AsType[*client.UpdateError](err)
	if !failed || e.Code != client.UpdateFailed || e.Failure == nil || e.Failure.Message != "no stock" ||
		e.Message != "handler failed: no stock" {
		t.Fatalf("error %v", err)
	}
	if details, err := perdure.ErrorDetails[map[string]int](err); err != nil || details["n"] != 7 {
		t.Errorf("details %v, %v", details, err)
	}
}

func TestRenewWorkItems_responseOfTheAPI_hasTypedErrors(t *testing.T) {
	t.Parallel()
	c := respond(t, responding(`{"leases":[
		{"expiresAt":"2026-07-01T03:00:00Z","cancel":{"reason":"requested","requestedAt":"2026-07-01T03:00:00Z"}},
		{"error":{"code":"lock_lost","detail":"gone"}},{"error":{"code":"lock_limit","detail":"12 hours"}},
		{"error":{"code":"invalid_token","detail":"no"}},{"error":{"code":"unknown_queue","detail":"no"}},
		{"error":{"code":"unavailable","detail":"later","retryable":true}},
		{"expiresAt":"2026-07-01T03:00:00Z","cancelUnknown":true}]}`))
	leases := make([]client.Lease, 7)
	for i := range leases {
		leases[i] = client.Lease{Token: "w1", ReceiptHandle: "r"}
	}
	got, err := c.RenewWorkItems(t.Context(), time.Minute, leases...)
	if err != nil || len(got) != len(leases) {
		t.Fatal(got, err)
	}
	_, field := errors.AsType[*provider.FieldError](got[4].Err)
	failed, isError := errors.AsType[*provider.Error](got[5].Err)
	if !got[0].ExpiresAt.Equal(began) || !got[0].Cancel.Requested || got[0].Err != nil ||
		!errors.Is(got[1].Err, provider.ErrLockLost) || !errors.Is(got[2].Err, provider.ErrLockLimit) ||
		!errors.Is(got[3].Err, provider.ErrInvalidToken) || !field || !isError || !failed.Retryable ||
		got[6].CancelErr == nil {
		t.Errorf("renewals %+v", got)
	}
	if got, err := c.RenewWorkItems(t.Context(), time.Minute, leases[0]); err == nil {
		t.Errorf("a response for other leases: %v", got)
	}
}

// The API cannot carry out these calls. The client rejects them without a request.
func TestDial_inputThatTheAPILacks_isRejected(t *testing.T) {
	t.Parallel()
	f := responding(`{}`)
	c := respond(t, f)
	_, list := c.ListPage(t.Context(), client.ListQuery{Tags: map[string]string{"a=b": "c"}}, client.Paging{})
	_, start := c.Start(t.Context(), "hello", 1, client.WithIdempotencyKey("a,b"))
	_, update := c.Update(t.Context(), "one", "a", 1, client.WithUpdateID(" a"))
	for field, err := range map[string]error{
		"tags": list, "idempotencyKey": start, "updateId": update,
		"eventId": c.RaiseEvent(t.Context(), "one", "paid", 1, client.WithEventID("a,b")),
		"noteId":  c.Annotate(t.Context(), "one", "a", client.WithNoteID("a,b")),
	} {
		if e, invalid := errors.AsType[*provider.FieldError](err); !invalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if len(f.requests) > 0 {
		t.Errorf("%d requests", len(f.requests))
	}
}

// A call that starts an instance and sends an event or update runs inside the interceptors of both.
func TestDial_startWithEventOrUpdate_isInterceptedTwice(t *testing.T) {
	t.Parallel()
	var calls []perdure.ClientCall
	observe := client.WithInterceptors(perdure.Interceptor{
		ClientCall: func(ctx context.Context, c perdure.ClientCall, next func(context.Context) error) {
			calls = append(calls, c)
			_ = next(ctx)
		},
	})
	c := respond(t, responding(`{"instanceId":"one","started":true,"result":7}`), observe)
	one := client.WithInstanceID("one")
	if result, started, err := c.StartOrUpdate(t.Context(), "hello", 1, "a", 2, one); !started || err != nil ||
		string(result) != "7" {
		t.Errorf("%s, %v, %v", result, started, err)
	}
	c = respond(t, &fixed{
		status: http.StatusAccepted, contentType: "application/json", body: `{"instanceId":"one","started":true}`,
	}, observe)
	if started, err := c.StartOrRaiseEvent(t.Context(), "hello", 1, "paid", 2, one); !started || err != nil {
		t.Errorf("%v, %v", started, err)
	}
	want := []perdure.ClientCall{
		{Operation: "Start", InstanceID: "one", Name: "hello"},
		{Operation: "Update", InstanceID: "one", Name: "a"},
		{Operation: "Start", InstanceID: "one", Name: "hello"},
		{Operation: "Raise", InstanceID: "one", Name: "paid"},
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
