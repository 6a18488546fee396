package dynamo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func newCaller(t *testing.T, request func(context.Context) (string, error)) *Provider {
	t.Helper()
	p, err := New(HubConfig{Name: "h", Table: "t", InboxURL: "u"}, Clients{}, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	p.caller.Read = request
	return p
}

func TestCaller_concurrentStarts_callSTSOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		p := newCaller(t, func(context.Context) (string, error) {
			calls++
			time.Sleep(time.Second)
			return "alice", nil
		})
		var starts sync.WaitGroup
		for range 1000 {
			starts.Go(func() {
				if got := p.Caller(t.Context()); got != "alice" {
					t.Errorf("caller %q", got)
				}
			})
		}
		starts.Wait()
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
	})
}

// If STS does not respond, one call takes two seconds longer and no call fails. STS is called again after a while.
func TestCaller_stsDoesNotRespond_isEmptyAndReadAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		p := newCaller(t, func(ctx context.Context) (string, error) { calls++; <-ctx.Done(); return "", ctx.Err() })
		began := time.Now()
		for range 100 {
			if got := p.Caller(t.Context()); got != "" {
				t.Errorf("caller %q", got)
			}
		}
		if took := time.Since(began); took != 2*time.Second || calls != 1 {
			t.Errorf("%d calls in %v", calls, took)
		}
		time.Sleep(10 * time.Minute)
		p.caller.Read = func(context.Context) (string, error) { calls++; return "alice", nil }
		if got := p.Caller(t.Context()); got != "alice" || calls != 2 {
			t.Errorf("caller %q after ten minutes, %d calls", got, calls)
		}
		if got := newCaller(t, nil).Caller(t.Context()); got != "" {
			t.Errorf("caller %q without Open", got)
		}
	})
}

// respondWith is an HTTP client that returns one response.
type respondWith struct {
	status int
	body   string
	calls  *[]string
}

func (a respondWith) Do(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	*a.calls = append(*a.calls, string(b))
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"text/xml"}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, err
}

func TestCallerFromSTS_response_returnsARNOrError(t *testing.T) {
	t.Parallel()
	var calls []string
	cfg := func(status int, body string) aws.Config {
		return aws.Config{
			Region: "eu-central-1", HTTPClient: respondWith{status, body, &calls},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
			}),
		}
	}
	got, err := callerFromSTS(cfg(http.StatusOK,
		`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/alice</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`))(t.Context())
	if err != nil || got != "arn:aws:iam::123456789012:user/alice" || len(calls) != 1 ||
		!strings.Contains(calls[0], "Action=GetCallerIdentity") {
		t.Errorf("caller %q, error %v, requests %q", got, err, calls)
	}
	if _, err := callerFromSTS(cfg(http.StatusServiceUnavailable, ""))(t.Context()); err == nil || len(calls) != 2 ||
		errors.Is(err, context.Canceled) {
		t.Errorf("error %v, requests %q", err, calls)
	}
}
