package dynamo_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// earlyResponse responds when it has sent a request body, before it has checked the end of the body.
type earlyResponse struct {
	mu     sync.Mutex
	bodies map[string]io.ReadCloser // by the host of the request
}

func (e *earlyResponse) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.CopyN(io.Discard, r.Body, r.ContentLength); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies[strings.Split(r.URL.Host, ".")[0]] = r.Body
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"X-Amzn-Requestid": {"1"}}, Request: r,
		Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

// Package http regards an error at the end of a body as one of the connection, and closes it although the SDK is
// reading the response. The SDK has closed the body by then.
func TestNew_responseBeforeEndOfBody_connectionIsKept(t *testing.T) {
	t.Parallel()
	e := &earlyResponse{bodies: map[string]io.ReadCloser{}}
	p, err := dynamo.New(dynamo.HubConfig{
		Name: "orders", Table: "orders", InboxURL: "https://sqs.eu-west-1.amazonaws.com/1/inbox.fifo",
		TimersURL:  "https://sqs.eu-west-1.amazonaws.com/1/timers",
		WorkQueues: map[string]string{"default": "https://sqs.eu-west-1.amazonaws.com/1/default"},
	}, dynamo.FromConfig(aws.Config{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: e},
		Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadInstance(t.Context(), "x"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("ReadInstance: %v", err)
	}
	_, _ = p.CountWorkItems(t.Context()) // the response has no counts
	if len(e.bodies) != 2 {
		t.Errorf("requests to %v", e.bodies)
	}
	for host, body := range e.bodies {
		if _, err := io.Copy(io.Discard, body); err != nil {
			t.Errorf("%s: the end of the body returns %v", host, err)
		}
	}
}
