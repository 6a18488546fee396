package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// losing is a transport that loses the first response, and responds with a problem to later requests.
type losing struct {
	requests int
	status   int
	code     string
}

func (l *losing) RoundTrip(*http.Request) (*http.Response, error) {
	l.requests++
	w := httptest.NewRecorder()
	if l.requests == 1 {
		w.WriteHeader(http.StatusGatewayTimeout)
		return w.Result(), nil
	}
	w.WriteHeader(l.status)
	_, _ = fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"token not accepted"}`, l.status, l.code)
	return w.Result(), nil
}

// The first request has sent the outcome, which then ended the execution or started the next attempt.
func TestDial_responseToOutcomeIsLost_repetitionSucceeds(t *testing.T) {
	t.Parallel()
	complete := func(c *client.Client) error { return c.CompleteActivity(t.Context(), "c1.x", 7) }
	fail := func(c *client.Client) error { return c.FailActivity(t.Context(), "c1.x", errors.New("no")) }
	for name, test := range map[string]struct {
		call   func(c *client.Client) error
		status int
		code   string
		fails  bool
	}{
		"complete, activity ended":  {complete, http.StatusConflict, "activity_over", false},
		"complete, execution ended": {complete, http.StatusGone, "execution_over", false},
		"complete, next attempt":    {complete, http.StatusConflict, "superseded", true},
		"fail, activity ended":      {fail, http.StatusConflict, "activity_over", false},
		"fail, execution ended":     {fail, http.StatusGone, "execution_over", false},
		"fail, next attempt":        {fail, http.StatusConflict, "superseded", false},
	} {
		l := &losing{status: test.status, code: test.code}
		c := respond(t, l)
		if err := test.call(c); (err != nil) != test.fails || l.requests != 2 {
			t.Errorf("%s: got error %v after %d requests", name, err, l.requests)
		}
	}
}

type declinedError struct{}

func (declinedError) Error() string { return "declined" }

type chargeError struct{ cause error }

func (e chargeError) Error() string { return "charge: " + e.cause.Error() }

func (e chargeError) Unwrap() error { return e.cause }

type auditError struct{}

func (auditError) Error() string { return "audit" }

// Retry policies match the types of the causes and of joined errors.
func TestDial_failActivity_sendsTypesOfCausesAndJoinedErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	direct := connect(s.Provider)
	mustStart(t, direct, "one")
	s.Append("one", history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"})
	in, err := s.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	s.SetCompletionToken("c1.two", &provider.WorkItem{
		InstanceID: "one", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 2, Attempt: 1, Queue: "default",
	})
	for _, cause := range []error{
		chargeError{declinedError{}}, errors.Join(chargeError{declinedError{}}, auditError{}), declinedError{},
	} {
		var got [][]string
		for _, c := range []*client.Client{direct, s.client} {
			if err := c.FailActivity(t.Context(), "c1.two", cause); err != nil {
				t.Fatal(err)
			}
			sent := s.Sent()
			got = append(got, slices.Sorted(sent[len(sent)-1].Outcomes[0].Error.Types()))
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("types of %v (-direct +remote):\n%s", cause, diff)
		}
	}
}

// An API of an earlier release does not know the causes of an error. The client then sends the error without them.
func TestDial_failActivityOnEarlierRelease_sendsErrorWithoutCauses(t *testing.T) {
	t.Parallel()
	f := refused(http.StatusBadRequest,
		`{"status":400,"code":"invalid_request","detail":"cause is not a field of this call","field":"cause"}`)
	if err := respond(t, f).FailActivity(t.Context(), "c1.x", chargeError{declinedError{}}); err == nil ||
		len(f.requests) != 2 || f.requests[1].ContentLength >= f.requests[0].ContentLength {
		t.Errorf("got error %v after %d requests", err, len(f.requests))
	}
}
