package selftest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The client of a local cloud calls the endpoint with the host of the API, and signs for this host.
func TestDialAPI_localCloud_callsEndpointWithHostOfAPI(t *testing.T) {
	t.Parallel()
	var host, authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, authorization = r.Host, r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	api, err := dialAPI(&aws.Config{
		Region: region, BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
	}, "https://abc.execute-api.localhost")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Status(t.Context(), "x"); err == nil || host != "abc.execute-api.localhost" || authorization == "" {
		t.Errorf("got %v, host %q, authorization %q", err, host, authorization)
	}
}

func TestLocalTransport_request_isUnchanged(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	endpoint, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://abc.example/x?y=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&localTransport{endpoint}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if r.URL.String() != "https://abc.example/x?y=1" || response.StatusCode != http.StatusNotFound {
		t.Errorf("got %s, HTTP %d", r.URL, response.StatusCode)
	}
}
