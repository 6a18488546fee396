package webui

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/perdure/perdure/internal/apiclient"
)

// authorizer adds the credentials of a client of the API to requests.
type authorizer struct {
	api  *apiclient.Client
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		_ = r.Body.Close() // the body has been read
	}

	out := r.Clone(r.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	for _, name := range []string{"X-Forwarded-For", "Connection", "Accept-Encoding"} {
		out.Header.Del(name) // gateways change these headers, so the signature must not include them
	}
	if a.api.Authenticate != nil {
		if err := a.api.Authenticate(r.Context(), out, body); err != nil {
			return nil, fmt.Errorf("authorize the request: %w", err)
		}
	}
	return a.next.RoundTrip(out)
}
