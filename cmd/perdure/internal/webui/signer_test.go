package webui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
	"github.com/perdure/perdure/internal/apiclient"
)

func TestAuthorizer_request_isSigned(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(echo())
	defer api.Close()
	dialed, err := apiclient.Dial(api.URL,
		sigv4.WithConfig(aws.Config{
			Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"),
		}),
		client.WithClock(func() time.Time { return time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC) }))
	if err != nil {
		t.Fatal(err)
	}
	s := &authorizer{api: dialed, next: http.DefaultTransport}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL+"/v1/jobs",
		strings.NewReader(`{"operation":"purge"}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Body.Close()
	var got struct {
		Body   string      `json:"body"`
		Header http.Header `json:"header"`
	}
	if err := json.NewDecoder(result.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if auth := got.Header.Get("Authorization"); !strings.HasPrefix(auth,
		"AWS4-HMAC-SHA256 Credential=AKID/20260701/eu-west-1/execute-api/aws4_request") ||
		got.Header.Get("X-Amz-Security-Token") != "session" || got.Body != `{"operation":"purge"}` {
		t.Errorf("%+v", got)
	}
}
