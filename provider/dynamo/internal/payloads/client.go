package payloads

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
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/perdure/perdure/provider"
)

// Client implements BucketAPI with the REST API of S3.
type Client struct {
	credentials aws.CredentialsProvider
	region      string
	endpoint    string // the endpoint of an emulator, or empty for AWS
	http        interface {
		Do(req *http.Request) (*http.Response, error)
	}
	signer *v4.Signer
	now    func() time.Time
}

// NewClient returns an S3 client with the region, credentials, endpoint and HTTP client of a configuration.
func NewClient(cfg aws.Config, now func() time.Time) *Client {
	b := &Client{
		credentials: cfg.Credentials, region: cfg.Region, http: cfg.HTTPClient, now: now,
		// in the form that S3 requires
		signer:   v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		endpoint: os.Getenv("AWS_ENDPOINT_URL_S3"),
	}
	if b.endpoint == "" && cfg.BaseEndpoint != nil {
		b.endpoint = *cfg.BaseEndpoint
	}
	if b.http == nil {
		b.http = awshttp.NewBuildableClient()
	}
	return b
}

// url returns the URL of an object, or of the bucket if the key is empty.
func (b *Client) url(bucket, key string) (*url.URL, error) {
	base := b.endpoint
	path := "/" + bucket + "/" + key
	if base == "" {
		suffix := domainOf(b.region)
		if base = "https://s3." + b.region + "." + suffix; !strings.Contains(bucket, ".") {
			base = "https://" + bucket + ".s3." + b.region + "." + suffix
			path = "/" + key
		}
	}
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil {
		return nil, fmt.Errorf("dynamo: resolve S3 endpoint: %w", err)
	}
	u.Path += path
	u.RawPath = httpbinding.EscapePath(u.Path, false) // the path in its signed form
	return u, nil
}

// partitions has the DNS suffixes of the partitions of AWS that do not use amazonaws.com, by the prefix of their
// regions.
var partitions = map[string]string{
	"cn-": "amazonaws.com.cn", "eusc-": "amazonaws.eu", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov",
	"us-isof-": "csp.hci.ic.gov", "eu-isoe-": "cloud.adc-e.uk",
}

// domainOf returns the DNS suffix of the endpoints of a region.
func domainOf(region string) string {
	for prefix, suffix := range partitions {
		if strings.HasPrefix(region, prefix) {
			return suffix
		}
	}
	return "amazonaws.com"
}

// request is an unsigned request to S3.
type request struct {
	method, bucket, key string
	query               url.Values
	header              map[string]string
	body                []byte
}

// send makes a signed request and returns the body of the response, up to most bytes.
func (b *Client) send(ctx context.Context, r *request, most int64) ([]byte, error) {
	u, err := b.url(r.bucket, r.key)
	if err != nil {
		return nil, err
	}
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("dynamo: create S3 request: %w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	if len(r.body) > 0 {
		req.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	}
	credentials, err := b.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("dynamo: retrieve credentials for S3: %w", err)
	}
	if err := b.signer.SignHTTP(ctx, credentials, req, hash, "s3", b.region, b.now()); err != nil {
		return nil, fmt.Errorf("dynamo: sign S3 request: %w", err)
	}

	response, err := b.http.Do(req)
	if err != nil {
		return nil, interruptedCall(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusMultipleChoices {
		most = responseLimit
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, interruptedCall(ctx, err)
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, decodeError(response.StatusCode, body)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("dynamo: S3 response exceeds %d bytes: %w", most, provider.ErrCorrupt)
	default:
		return body, nil
	}
}

// interruptedCall returns the error of a call without a complete response. The provider repeats such a call, unless its
// context has ended.
func interruptedCall(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &aws.RequestCanceledError{Err: err}
	}
	return &smithyhttp.RequestSendError{Err: err}
}

// bucketError is an error response of S3 in the form of the SDK's errors. Its code and status determine whether the
// provider repeats the call.
type bucketError struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Message string   `xml:"Message"`
	status  int
}

// decodeError decodes an error response of S3. A response to a HEAD request, or from a proxy, has no error in its
// body.
func decodeError(status int, body []byte) error {
	e := &bucketError{}
	_ = xml.Unmarshal(body, e)
	e.status = status
	if e.Code == "NoSuchKey" || e.Code == "" && status == http.StatusNotFound {
		return provider.ErrNotFound
	}
	return e
}

// Error implements error.
func (e *bucketError) Error() string {
	return fmt.Sprintf("S3: %d %s: %s", e.status, e.Code, e.Message)
}

// ErrorCode, ErrorMessage and ErrorFault implement smithy.APIError.
func (e *bucketError) ErrorCode() string { return e.Code }

// ErrorMessage implements smithy.APIError.
func (e *bucketError) ErrorMessage() string { return e.Message }

// ErrorFault implements smithy.APIError.
func (e *bucketError) ErrorFault() smithy.ErrorFault {
	if e.status >= http.StatusInternalServerError {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// HTTPStatusCode returns the HTTP status, like the SDK's response errors.
func (e *bucketError) HTTPStatusCode() int { return e.status }

// responseLimit is the size limit of responses other than objects. The largest response is a list of 1,000 keys with
// about 400 KB.
const responseLimit = 4 << 20

// PutObject implements BucketAPI.
func (b *Client) PutObject(ctx context.Context, bucket, key string, data []byte) error {
	_, err := b.send(
		ctx,
		&request{
			method: http.MethodPut,
			bucket: bucket,
			key:    key,
			body:   data,
			header: map[string]string{"Content-Type": "application/octet-stream"},
		},
		responseLimit,
	)
	return err
}

// GetObject implements BucketAPI.
func (b *Client) GetObject(ctx context.Context, bucket, key string, most int64) ([]byte, error) {
	return b.send(ctx, &request{method: http.MethodGet, bucket: bucket, key: key}, most)
}

// CopyObject implements BucketAPI. S3 can report the failure of a copy in a response with status 200.
func (b *Client) CopyObject(ctx context.Context, bucket, from, to string) error {
	source := httpbinding.EscapePath("/"+bucket+"/"+from, false)
	body, err := b.send(
		ctx,
		&request{
			method: http.MethodPut,
			bucket: bucket,
			key:    to,
			header: map[string]string{"X-Amz-Copy-Source": source},
		},
		responseLimit,
	)
	if err != nil {
		return err
	}
	if bytes.Contains(body, []byte("<Error>")) {
		return decodeError(http.StatusInternalServerError, body)
	}
	return nil
}

type deleteRequest struct {
	XMLName xml.Name        `xml:"Delete"`
	Quiet   bool            `xml:"Quiet"`
	Objects []deletedObject `xml:"Object"`
}

type deletedObject struct {
	Key string `xml:"Key"`
}

// DeleteObjects implements BucketAPI.
func (b *Client) DeleteObjects(ctx context.Context, bucket string, keys []string) error {
	d := deleteRequest{Quiet: true, Objects: make([]deletedObject, len(keys))}
	for i, key := range keys {
		d.Objects[i].Key = key
	}
	body, err := xml.Marshal(d)
	if err != nil {
		return fmt.Errorf("dynamo: encode keys to delete: %w", err)
	}
	response, err := b.send(ctx, &request{
		method: http.MethodPost, bucket: bucket, query: url.Values{"delete": {""}}, body: body,
		header: map[string]string{"Content-Type": "application/xml", "X-Amz-Sdk-Checksum-Algorithm": "SHA256"},
	}, responseLimit)
	if err != nil {
		return err
	}
	var failed struct {
		Errors []struct {
			Key     string `xml:"Key"`
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	if err := xml.Unmarshal(response, &failed); err != nil && len(bytes.TrimSpace(response)) > 0 {
		return fmt.Errorf("dynamo: decode S3 response: %w", err)
	}
	for _, f := range failed.Errors {
		return &bucketError{
			Code:    f.Code,
			Message: fmt.Sprintf("%s (%d of %d keys failed): %s", f.Key, len(failed.Errors), len(keys), f.Message),
			status:  http.StatusOK,
		}
	}
	return nil
}

// ListObjects implements BucketAPI.
func (b *Client) ListObjects(ctx context.Context, bucket, prefix, after string) ([]provider.StoredPayload, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}, "max-keys": {strconv.Itoa(provider.PayloadBatchSize)}}
	if after != "" {
		query.Set("start-after", after)
	}
	response, err := b.send(ctx, &request{method: http.MethodGet, bucket: bucket, query: query}, responseLimit)
	if err != nil {
		if errors.Is(err, provider.ErrNotFound) { // the bucket does not exist
			err = &bucketError{Code: "NoSuchBucket", status: http.StatusNotFound}
		}
		return nil, err
	}
	var list struct {
		Contents []struct {
			Key          string    `xml:"Key"`
			LastModified time.Time `xml:"LastModified"`
		} `xml:"Contents"`
	}
	if err := xml.Unmarshal(response, &list); err != nil {
		return nil, fmt.Errorf("dynamo: decode S3 response: %w", err)
	}
	all := make([]provider.StoredPayload, len(list.Contents))
	for i, c := range list.Contents {
		all[i] = provider.StoredPayload{Key: c.Key, StoredAt: c.LastModified}
	}
	return all, nil
}
