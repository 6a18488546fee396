package sigv4_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
)

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

// recorder is a transport that keeps the last request and its body.
type recorder struct {
	request *http.Request
	body    string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	r.request, r.body = request, string(body)
	return &http.Response{
		StatusCode: http.StatusAccepted, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"instanceId":"one"}`)),
	}, err
}

func config(region string) aws.Config {
	return aws.Config{Region: region, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "session"}, nil
		})}
}

// The host of the endpoint determines the scope of the signature, unless options do.
func TestWithConfig_host_determinesServiceAndRegion(t *testing.T) {
	t.Parallel()
	for endpoint, tt := range map[string]struct {
		opts  []sigv4.Option
		scope string
	}{
		"https://a.execute-api.eu-west-1.amazonaws.com/prod": {nil, "eu-west-1/execute-api"},
		"https://a.execute-api.cn-north-1.amazonaws.com.cn":  {nil, "cn-north-1/execute-api"},
		"https://a.lambda-url.us-east-2.on.aws":              {nil, "us-east-2/lambda"},
		"https://api.example.com":                            {nil, "ap-south-1/execute-api"},
		"https://a.lambda-url.us-east-2.on.aws.example.com":  {nil, "ap-south-1/execute-api"},
		"https://lambda.example.com": {
			[]sigv4.Option{sigv4.WithService(sigv4.ServiceLambda), sigv4.WithRegion("eu-north-1")}, "eu-north-1/lambda",
		},
	} {
		r := &recorder{}
		c, err := client.Dial(endpoint, sigv4.WithConfig(config("ap-south-1"), tt.opts...),
			client.WithHTTPClient(&http.Client{Transport: r}), client.WithClock(func() time.Time { return began }))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RaiseEvent(t.Context(), "one", "paid", 7, client.WithEventID("k")); err != nil {
			t.Fatal(err)
		}
		got := r.request.Header.Get("Authorization")
		if want := "AWS4-HMAC-SHA256 Credential=AKID/20260701/" + tt.scope + "/aws4_request"; !strings.HasPrefix(got,
			want) {
			t.Errorf("%s: %s, want %s", endpoint, got, want)
		}
		for _, signed := range []string{"host", "content-type", "idempotency-key", "x-amz-security-token"} {
			if !strings.Contains(got, signed) {
				t.Errorf("%s: %s is not signed: %s", endpoint, signed, got)
			}
		}
		if r.body != "7" {
			t.Errorf("%s: body %q", endpoint, r.body)
		}
	}
}

func TestWithConfig_missingCredentialsOrRegion_isRejected(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]aws.Config{"credentials": {Region: "eu-west-1"}, "region": config("")} {
		_, err := client.Dial("https://api.example.com", sigv4.WithConfig(cfg))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithConfig_credentialsExpired_returnsTheirError(t *testing.T) {
	t.Parallel()
	expired := errors.New("session expired")
	cfg := config("eu-west-1")
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, expired
	})
	c, err := client.Dial("https://api.example.com", sigv4.WithConfig(cfg),
		client.WithHTTPClient(&http.Client{Transport: &recorder{}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context(), "one"); !errors.Is(err, expired) {
		t.Errorf("error %v", err)
	}
}
