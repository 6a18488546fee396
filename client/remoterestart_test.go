package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// An empty version and missing tags are options too: without them, a restart keeps those of the ended instance.
func TestDial_restartWithEmptyOptions_doesNotDropThem(t *testing.T) {
	t.Parallel()
	f := &fixed{status: http.StatusAccepted, contentType: "application/json", body: `{"instanceId":"two"}`}
	c := respond(t, f)
	if id, err := c.Restart(t.Context(), "one", client.WithVersion("")); id != "two" || err != nil {
		t.Fatalf("got %q, error %v", id, err)
	}
	if _, err := c.Restart(t.Context(), "one", client.WithTags(nil)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"version":""}`, `{"tags":{}}`} {
		if body, err := io.ReadAll(f.requests[i].Body); string(body) != want {
			t.Errorf("got body %s, error %v, want %s", body, err, want)
		}
	}
}

// The API of an earlier release rejects the fields, so that the restart has no effect.
func TestDial_restartOptionsOfLaterRelease_returnNoRouteError(t *testing.T) {
	t.Parallel()
	for field, opt := range map[string]client.StartOption{
		"tags": client.WithTags(nil), "idempotencyKey": client.WithIdempotencyKey("k"),
	} {
		detail := field + " is not a field of this call"
		f := refused(http.StatusBadRequest, `{"code":"invalid_request","field":"`+field+`","detail":"`+detail+`"}`)
		_, err := respond(t, f).Restart(t.Context(), "one", opt)
		if _, unsupported := errors.AsType[*client.NoRouteError](err); !unsupported || len(f.requests) != 1 {
			t.Errorf("%s: got error %v after %d requests, want a NoRouteError", field, err, len(f.requests))
		}
		f = refused(http.StatusBadRequest,
			`{"code":"invalid_request","field":"`+field+`","detail":"`+field+` is too long"}`)
		_, err = respond(t, f).Restart(t.Context(), "one", opt)
		if wrong, is := errors.AsType[*provider.FieldError](err); !is || wrong.Field != field {
			t.Errorf("%s: got error %v, want a FieldError", field, err)
		}
	}
}

// strict is an API of an earlier release: it ignores the idempotency keys of notes, jobs and runs, and rejects unknown
// parameters. The first requests fail with other statuses.
type strict struct {
	fail     []int
	requests []*http.Request
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests = append(s.requests, r)
	status, contentType, body := http.StatusAccepted, "application/json", `{}`
	switch {
	case len(s.requests) <= len(s.fail):
		status, contentType, body = s.fail[len(s.requests)-1], "text/html", ""
	case r.URL.RawQuery != "":
		const problem = `{"code":"invalid_request","field":"requireKey","detail":"requireKey is not a parameter"}`
		status, contentType, body = http.StatusBadRequest, "application/problem+json", problem
	case strings.HasSuffix(r.URL.Path, "/notes"):
		status = http.StatusNoContent
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	return w.Result(), nil
}

// keyed has the calls whose keys earlier releases ignore, with and without a key of the caller.
func keyed(t *testing.T, s *strict) map[string]func(withKey bool) error {
	t.Helper()
	c := respond(t, s)
	a, err := admin.Dial("https://api.example.com", client.WithHTTPClient(&http.Client{Transport: s}),
		client.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() }))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(withKey bool) error{
		"note": func(withKey bool) error {
			var opts []client.AnnotateOption
			if withKey {
				opts = append(opts, client.WithNoteID("k"))
			}
			return c.Annotate(t.Context(), "one", "a", opts...)
		},
		"job": func(withKey bool) error {
			var opts []admin.StartJobOption
			if withKey {
				opts = append(opts, admin.WithJobKey("k"))
			}
			_, err := a.StartJob(t.Context(), admin.JobRequest{Operation: admin.OperationCancel, All: true}, opts...)
			return err
		},
		"run": func(withKey bool) error {
			var opts []client.TriggerOption
			if withKey {
				opts = append(opts, client.WithTriggerKey(ulid.MustNew(1, rand.Reader).String()))
			}
			_, err := c.Schedules().Trigger(t.Context(), "s", opts...)
			return err
		},
	}
}

// If the API ignores keys, a call with a key of the caller has no effect. Otherwise it is made once without a key, and
// it is not repeated.
func TestDial_apiIgnoresKeys_refusesKeyOfCaller(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"note", "job", "run"} {
		s := &strict{}
		err := keyed(t, s)[name](true)
		if _, unsupported := errors.AsType[*client.NoRouteError](err); !unsupported || len(s.requests) != 1 {
			t.Errorf("%s with a key: got error %v after %d requests", name, err, len(s.requests))
		}
		s = &strict{}
		if err := keyed(t, s)[name](false); err != nil || len(s.requests) != 2 ||
			s.requests[0].URL.RawQuery != "requireKey=true" || s.requests[1].Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s without a key: got error %v after %d requests", name, err, len(s.requests))
		}
		s = &strict{fail: []int{http.StatusTooManyRequests}} // of a gateway: the API did not receive the request
		if err := keyed(t, s)[name](false); err != nil || len(s.requests) != 3 {
			t.Errorf("%s after throttling: got error %v after %d requests", name, err, len(s.requests))
		}
		s = &strict{fail: []int{http.StatusGatewayTimeout}} // perhaps of a later release during a deployment
		err = keyed(t, s)[name](false)
		if failed, is := errors.AsType[*provider.Error](err); !is || !failed.Retryable || len(s.requests) != 2 {
			t.Errorf("%s after a lost response: got error %v after %d requests", name, err, len(s.requests))
		}
	}
}

// The ID in use is that of the new instance, and not that of the ended instance.
func TestDial_restartOfIDInUse_namesNewInstance(t *testing.T) {
	t.Parallel()
	const inUse = `{"status":409,"code":"instance_id_in_use","detail":"instance id is in use","existing":{` +
		`"orchestration":"hello","status":"Running","createdAt":"2026-07-01T03:00:00Z"`
	two := []client.StartOption{client.WithInstanceID("two")}
	for name, test := range map[string]struct {
		body, want string
		opts       []client.StartOption
	}{
		"derived ID":       {inUse + `,"instanceId":"one.restart-1"}}`, "one.restart-1", nil},
		"ID of the caller": {inUse + `,"instanceId":"two"}}`, "two", two},
		"earlier release":  {inUse + `}}`, "two", two},
	} {
		id, err := respond(t, refused(http.StatusConflict, test.body)).Restart(t.Context(), "one", test.opts...)
		e, exists := errors.AsType[*client.AlreadyExistsError](err)
		if !exists || e.InstanceID != test.want || id != test.want || e.Status != client.StatusRunning {
			t.Errorf("%s: got ID %q, error %+v, want the ID %q", name, id, err, test.want)
		}
	}
}
