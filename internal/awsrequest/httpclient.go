package awsrequest

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// HTTPClient is the HTTP client of an SDK client. It keeps the SDK from losing responses, because it hides the method
// WriteTo of request bodies: the SDK closes the body of a request as soon as it has the response, and WriteTo of a
// closed body returns io.EOF (smithy-go 1.28.8). If package http has not checked the end of the body by then, because
// the process was short of CPU time, it closes the connection while the SDK reads the response. AWS has processed such
// a request: a lost response of SQS hides its messages for their visibility timeout.
type HTTPClient struct{ Next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c HTTPClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Next.Do(r) //nolint:wrapcheck // of the client that it wraps
}
