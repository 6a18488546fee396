package localcloud

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config returns a configuration for clients of the emulator at an endpoint. The clients share their connections.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		HTTPClient:  &http.Client{Transport: ownBody{http.DefaultTransport}},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// ownBody sends a copy of the body of each request. Without the copy, the connection is sometimes closed before the
// response ("use of closed network connection", see aws-sdk-go-v2 issue 2737). The SDK then retries the call. But
// messages of a lost ReceiveMessage response remain invisible until their visibility timeout ends.
type ownBody struct{ http.RoundTripper }

func (o ownBody) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read request body: %w", err)
		}
		if err := r.Body.Close(); err != nil {
			return nil, fmt.Errorf("close request body: %w", err)
		}
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return o.RoundTripper.RoundTrip(r)
}
