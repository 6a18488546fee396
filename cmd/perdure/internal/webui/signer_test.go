package webui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
)

func TestServiceOf_hostName_returnsServiceAndRegion(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"a1b2.execute-api.eu-west-1.amazonaws.com":     "execute-api eu-west-1",
		"a1b2.execute-api.cn-north-1.amazonaws.com.cn": "execute-api cn-north-1",
		"abc.lambda-url.us-east-1.on.aws":              "lambda us-east-1", "localhost": " ", "127.0.0.1": " ",
		"execute-api.example.com": " ", "a.execute-api.eu-west-1.example.com": " ",
		"s3.eu-west-1.amazonaws.com": " ", "api.example.com": " ",
	} {
		if service, region := serviceOf(host); service+" "+region != want {
			t.Errorf("%s: %s %s, want %s", host, service, region, want)
		}
	}
}

func TestSigner_request_isSigned(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(echo())
	defer api.Close()
	to, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{
		credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"), service: "execute-api",
		region: "eu-west-1", next: http.DefaultTransport,
		now: func() time.Time { return time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC) },
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.String()+"/v1/jobs",
		strings.NewReader(`{"operation":"purge"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Body   string      `json:"body"`
		Header http.Header `json:"header"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if auth := got.Header.Get("Authorization"); !strings.HasPrefix(auth,
		"AWS4-HMAC-SHA256 Credential=AKID/20260701/eu-west-1/execute-api/aws4_request") ||
		got.Header.Get("X-Amz-Security-Token") != "session" || got.Body != `{"operation":"purge"}` {
		t.Errorf("%+v", got)
	}
}
