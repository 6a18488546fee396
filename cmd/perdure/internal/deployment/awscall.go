package deployment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Limits of a call. The pauses between its attempts add up to about three minutes.
const (
	maxAttempts   = 12
	firstPause    = 200 * time.Millisecond
	longestPause  = 20 * time.Second
	callTimeout   = 2 * time.Minute // of an attempt; the largest upload has about 20 MB
	responseLimit = 16 << 20
)

// APIError is an error response of AWS.
type APIError struct {
	// Operation is the operation that failed, for example "create change set".
	Operation string
	// Code is the error code of AWS. It is empty if the response has no body.
	Code    string
	Message string
	Status  int // the HTTP status
}

// Error implements error.
func (e *APIError) Error() string {
	text := e.Operation + ": " + e.Code
	if e.Code == "" {
		text += fmt.Sprintf("HTTP status %d", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch {
	case e.Code == "" && e.Status == http.StatusBadRequest: // the response to a HEAD request has no body
		text += "; check whether the AWS credentials have expired"
	case slices.Contains([]string{"ExpiredToken", "ExpiredTokenException"}, e.Code):
		text += "; renew the AWS credentials, then run the command again"
	case slices.Contains([]string{"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"}, e.Code):
		text += "; check the AWS credentials and the clock of this machine"
	}
	return text
}

// hasCode reports whether an error is a response of AWS with one of the codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*APIError](err)
	return ok && slices.Contains(codes, e.Code)
}

// isTransient reports whether the same request may succeed later.
func isTransient(err error) bool {
	e, ok := errors.AsType[*APIError](err)
	if !ok {
		_, noResponse := errors.AsType[*responseError](err)
		return noResponse
	}
	_, throttled := retry.DefaultThrottleErrorCodes[e.Code]
	return throttled || e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests ||
		slices.Contains([]string{"OperationAborted", "RequestTimeout", "RequestTimeoutException"}, e.Code)
}

// responseError reports a request without a complete response. AWS may have processed the request.
type responseError struct{ cause error }

func (e *responseError) Error() string { return e.cause.Error() }
func (e *responseError) Unwrap() error { return e.cause }

// caller makes signed calls to AWS and repeats calls that failed temporarily. It is small, because the packages of the
// SDK for CloudFormation and S3 would double the time to compile this tool.
type caller struct {
	credentials aws.CredentialsProvider
	region      string
	http        interface {
		Do(req *http.Request) (*http.Response, error)
	}
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
}

func newCaller(
	cfg *aws.Config, now func() time.Time, sleep func(ctx context.Context, d time.Duration) error,
) *caller {
	c := &caller{credentials: cfg.Credentials, region: cfg.Region, http: cfg.HTTPClient, now: now, sleep: sleep}
	if c.http == nil {
		c.http = awshttp.NewBuildableClient()
	}
	return c
}

const contentType = "Content-Type"

// request is an unsigned request to an AWS service.
type request struct {
	operation    string // for errors
	service      string // for the signature
	method, url  string
	header       map[string]string
	body         []byte
	withChecksum bool // adds the checksum headers of S3
}

// call makes a call and returns the body of the response.
func (c *caller) call(ctx context.Context, r *request) ([]byte, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		body, err := c.send(ctx, r)
		if err == nil {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", r.operation, context.Cause(ctx))
		}
		if !isTransient(err) || attempt == maxAttempts {
			return nil, err
		}
		if err := c.sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return nil, fmt.Errorf("%s: %w", r.operation, err)
		}
		pause = min(2*pause, longestPause)
	}
}

// send makes one attempt.
func (c *caller) send(ctx context.Context, r *request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.operation, err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if err := c.sign(ctx, req, r); err != nil {
		return nil, err
	}
	response, err := c.http.Do(req)
	if err != nil {
		return nil, &responseError{fmt.Errorf("%s: %w", r.operation, err)}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, responseLimit))
	if err != nil {
		return nil, &responseError{fmt.Errorf("%s: %w", r.operation, err)}
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, decodeError(r.operation, response.StatusCode, body)
	}
	return body, nil
}

func (c *caller) sign(ctx context.Context, req *http.Request, r *request) error {
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("%s: retrieve AWS credentials: %w", r.operation, err)
	}
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	if r.service == serviceS3 {
		req.Header.Set("X-Amz-Content-Sha256", hash)
	}
	if r.withChecksum {
		req.Header.Set("X-Amz-Sdk-Checksum-Algorithm", "SHA256")
		req.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = r.service == serviceS3 })
	if err := signer.SignHTTP(ctx, credentials, req, hash, r.service, c.region, c.now()); err != nil {
		return fmt.Errorf("%s: sign request: %w", r.operation, err)
	}
	return nil
}

// decodeError decodes an error response. S3 has the error as root element, CloudFormation below it.
func decodeError(operation string, status int, body []byte) error {
	var decoded struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
		Error   struct {
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	_ = xml.Unmarshal(body, &decoded) // a proxy may return another format
	e := &APIError{Operation: operation, Code: decoded.Code, Message: decoded.Message, Status: status}
	if e.Code == "" {
		e.Code, e.Message = decoded.Error.Code, decoded.Error.Message
	}
	return e
}

// dnsSuffix returns the DNS suffix of the endpoints of a region.
func dnsSuffix(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}
