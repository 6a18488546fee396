// Package awsrequest makes signed requests to AWS without the clients of the SDK, which are large. It supports the REST
// API of S3 and query APIs, for example that of CloudFormation. HTTPClient is for the clients of the SDK.
package awsrequest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ServiceS3 is the service in the signature of a request to S3.
const ServiceS3 = "s3"

// ErrTooLarge means that a response exceeds its limit.
var ErrTooLarge = errors.New("response exceeds its limit")

// mostErrorBytes is the size of error responses that a Sender reads.
const mostErrorBytes = 1 << 20

// Request is an unsigned request.
type Request struct {
	// Operation names the request in errors, for example "create change set".
	Operation string
	// Service is the service in the signature. Without it, the request is not signed.
	Service     string
	Method, URL string
	Header      map[string]string
	Body        []byte
	// Checksum adds the checksum of the body in the headers of S3.
	Checksum bool
}

// Query returns a request to a query API. values has the action, the version of the API and the parameters.
func Query(operation, service, endpoint string, values url.Values) *Request {
	return &Request{
		Operation: operation, Service: service, Method: http.MethodPost, URL: endpoint + "/",
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
		Body:   []byte(values.Encode()),
	}
}

// Response is a response to a request.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Sender sends requests. It is safe for concurrent use.
type Sender struct {
	credentials aws.CredentialsProvider
	region      string
	http        aws.HTTPClient
	signer      *v4.Signer
	now         func() time.Time
}

// New returns a Sender with the credentials, the region and the HTTP client of a configuration.
func New(cfg *aws.Config, now func() time.Time) *Sender {
	s := &Sender{
		credentials: cfg.Credentials, region: cfg.Region, http: cfg.HTTPClient, signer: v4.NewSigner(), now: now,
	}
	if s.http == nil {
		s.http = awshttp.NewBuildableClient()
	}
	return s
}

// Send sends a request once, and returns the body of the response, which has up to most bytes. It returns an APIError
// for an error response, and ErrTooLarge for a larger response. Without a complete response, it returns an error of the
// SDK: RequestCanceledError if ctx has ended, or else RequestSendError. AWS may have processed such a request.
func (s *Sender) Send(ctx context.Context, r *Request, most int64) ([]byte, error) {
	response, err := s.Do(ctx, r, most)
	if err != nil {
		return nil, err
	}
	if failed(response.Status) {
		return nil, DecodeError(r.Operation, response.Status, response.Body)
	}
	return response.Body, nil
}

func failed(status int) bool { return status >= http.StatusMultipleChoices }

// Do is like Send, and returns an error response like other ones. It has the first MiB of its body.
func (s *Sender) Do(ctx context.Context, r *Request, most int64) (*Response, error) {
	req, err := s.signed(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(req)
	if err != nil {
		return nil, interrupted(ctx, r, err)
	}
	defer func() { _ = response.Body.Close() }()
	if failed(response.StatusCode) {
		most = mostErrorBytes
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, interrupted(ctx, r, err)
	case int64(len(body)) > most && !failed(response.StatusCode):
		return nil, fmt.Errorf("%s: %w of %d bytes", r.Operation, ErrTooLarge, most)
	default:
		return &Response{response.StatusCode, response.Header, body}, nil
	}
}

// interrupted returns the error of a request without a complete response.
func interrupted(ctx context.Context, r *Request, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", r.Operation, &aws.RequestCanceledError{Err: err})
	}
	return fmt.Errorf("%s: %w", r.Operation, &smithyhttp.RequestSendError{Err: err})
}

// signed returns a request with its signature, if it has a service.
func (s *Sender) signed(ctx context.Context, r *Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%s: create request: %w", r.Operation, err)
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if r.Service == "" {
		return req, nil
	}
	sum := sha256.Sum256(r.Body)
	hash := hex.EncodeToString(sum[:])
	if r.Service == ServiceS3 {
		req.Header.Set("X-Amz-Content-Sha256", hash)
	}
	if r.Checksum {
		req.Header.Set("X-Amz-Sdk-Checksum-Algorithm", "SHA256")
		req.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	}
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: retrieve AWS credentials: %w", r.Operation, err)
	}
	err = s.signer.SignHTTP(ctx, credentials, req, hash, r.Service, s.region, s.now(), func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = r.Service == ServiceS3 // S3 requires the path as it is sent
	})
	if err != nil {
		return nil, fmt.Errorf("%s: sign request: %w", r.Operation, err)
	}
	return req, nil
}
