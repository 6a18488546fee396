package localcloud

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config is for clients of an emulator. They share their connections.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		HTTPClient:  &http.Client{Transport: ownBody{http.DefaultTransport}},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// ownBody sends a copy of each request's body. Without it an answer is now and then cut off ("use of closed network
// connection"; aws-sdk-go-v2 issue 2737 reports the same). The SDK repeats the call then, but what a lost
// ReceiveMessage has locked stays away until its visibility ends.
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
