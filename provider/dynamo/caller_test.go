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

func newCaller(t *testing.T, ask func(context.Context) (string, error)) *Provider {
	t.Helper()
	p, err := New(HubConfig{Name: "h", Table: "t", InboxURL: "u"}, Clients{}, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	p.caller.Read = ask
	return p
}

func TestCaller_concurrentStarts_callSTSOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newCaller(t, func(context.Context) (string, error) {
			asked++
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
		if asked != 1 {
			t.Errorf("%d calls, want 1", asked)
		}
	})
}

// If STS does not respond, one call takes two seconds longer and no call fails. STS is called again after a while.
func TestCaller_stsDoesNotRespond_isEmptyAndReadAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newCaller(t, func(ctx context.Context) (string, error) { asked++; <-ctx.Done(); return "", ctx.Err() })
		began := time.Now()
		for range 100 {
			if got := p.Caller(t.Context()); got != "" {
				t.Errorf("caller %q", got)
			}
		}
		if took := time.Since(began); took != 2*time.Second || asked != 1 {
			t.Errorf("%d calls in %v", asked, took)
		}
		time.Sleep(10 * time.Minute)
		p.caller.Read = func(context.Context) (string, error) { asked++; return "alice", nil }
		if got := p.Caller(t.Context()); got != "alice" || asked != 2 {
			t.Errorf("caller %q after ten minutes, %d calls", got, asked)
		}
		if got := newCaller(t, nil).Caller(t.Context()); got != "" {
			t.Errorf("caller %q without Open", got)
		}
	})
}

// answering is an HTTP client that returns one response.
type answering struct {
	status int
	body   string
	asked  *[]string
}

func (a answering) Do(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	*a.asked = append(*a.asked, string(b))
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"text/xml"}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, err
}

func TestCallerFromSTS_response_returnsARNOrError(t *testing.T) {
	t.Parallel()
	var asked []string
	cfg := func(status int, body string) aws.Config {
		return aws.Config{
			Region: "eu-central-1", HTTPClient: answering{status, body, &asked},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
			}),
		}
	}
	got, err := callerFromSTS(cfg(http.StatusOK,
		`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/alice</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`))(t.Context())
	if err != nil || got != "arn:aws:iam::123456789012:user/alice" || len(asked) != 1 ||
		!strings.Contains(asked[0], "Action=GetCallerIdentity") {
		t.Errorf("caller %q, error %v, requests %q", got, err, asked)
	}
	if _, err := callerFromSTS(cfg(http.StatusServiceUnavailable, ""))(t.Context()); err == nil || len(asked) != 2 ||
		errors.Is(err, context.Canceled) {
		t.Errorf("error %v, requests %q", err, asked)
	}
}
