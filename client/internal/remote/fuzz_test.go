package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/provider"
)

// responding is an API whose responses have the same body, of the media type that the request accepts.
type responding string

func (body responding) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": r.Header["Accept"]},
		Body: io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

func (body responding) dial(t *testing.T) *apiclient.Client {
	t.Helper()
	c, err := apiclient.Dial("https://api.example.com", apiclient.OptionFunc(func(c *apiclient.Config) error {
		c.HTTPClient = &http.Client{Transport: body}
		c.Sleep = func(context.Context, time.Duration) error { return nil }
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantTyped fails the test unless err is an error that callers can distinguish.
func wantTyped(t *testing.T, err error) {
	t.Helper()
	_, typed := errors.AsType[*provider.Error](err)
	if !typed && !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrCorrupt) {
		t.Errorf("error is not typed: %v", err)
	}
}

// FuzzPending checks that any response of an API has the pending items of the instance, or results in a typed error.
func FuzzPending(f *testing.F) {
	for _, s := range []string{
		`{"instanceId":"one","executionId":"x","pending":{"activities":[{"id":3}]}}`, `{"executionId":"y"}`, `{"pending":[]}`,
		`{"pending":{"unread":{"code":"corrupt_history","detail":"d"}}}`, `{"pending":{"unread":5}}`, `{"pending":null}`,
		`{"instanceId":"other"}`, `[]`, ``,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := Reader[provider.Execution, map[string]any]{Hub: New(responding(body).dial(t), nil)}
		if _, err := r.Pending(t.Context(), history.ExecutionRef{InstanceID: "one"}, 10); err != nil {
			wantTyped(t, err)
		}
	})
}

// FuzzReadTail checks that any stream of server-sent events results in events, in the order of the stream, or in an
// error of the provider. No event follows an error or a continue-as-new.
func FuzzReadTail(f *testing.F) {
	event, err := json.Marshal(history.Event{ID: 2, Kind: history.TurnStarted, Time: time.Unix(1, 0).UTC()})
	if err != nil {
		f.Fatal(err)
	}
	next := `{"id":3,"kind":"OrchestrationContinuedAsNew","time":"2026-01-02T12:00:00Z","executionId":"x2"}`
	const end = "id: x.end\nevent: end\ndata: {\"status\":\"Completed\"}\n\n"
	message := "id: x.2\nevent: TurnStarted\ndata: " + string(event) + "\n\n"
	for _, s := range []string{
		"retry: 1000\n\n: keep-alive\n\n" + message + end,
		message + "id: x2.0\nevent: OrchestrationContinuedAsNew\ndata: " + next + "\n\n" + message,
		message + "event: problem\ndata: {\"code\":\"unavailable\",\"detail\":\"d\",\"retryable\":true}\n\n",
		"event: problem\ndata: x\n\n", "event: TurnStarted\ndata: {\n\n", "event: TurnStarted\n\n", "\n\n\n\n", "",
		strings.ReplaceAll(message, "\n", "\r\n"),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		at, n, ended := provider.Tail{Event: 1}, int64(1), false
		for e, err := range NewTail(responding(stream).dial(t)).ReadTail(t.Context(), "one", "x", &at) {
			if ended {
				t.Fatalf("event %+v, error %v after the end", e, err)
			}
			ended = err != nil || e.Kind == history.OrchestrationContinuedAsNew
			if err == nil {
				if n++; at.Event != e.ID || e.ID != n {
					t.Errorf("event %d at %d, want %d", e.ID, at.Event, n)
				}
				continue
			}
			wantTyped(t, err)
		}
	})
}
