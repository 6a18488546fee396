package payloadstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider"
)

// Client implements BucketAPI with the REST API of S3.
type Client struct {
	sender   *awsrequest.Sender
	region   string
	endpoint string // the endpoint of an emulator, or empty for AWS
}

// NewClient returns an S3 client with the region, credentials, endpoint and HTTP client of a configuration.
func NewClient(cfg aws.Config, now func() time.Time) *Client {
	return &Client{
		sender: awsrequest.New(&cfg, now), region: cfg.Region,
		endpoint: cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), aws.ToString(cfg.BaseEndpoint)),
	}
}

// request is an unsigned request to S3.
type request struct {
	method, bucket, key string
	query               url.Values
	header              map[string]string
	body                []byte
}

// operation is the name of requests in errors. Store adds the operation of S3.
const operation = "S3"

// send makes a signed request and returns the body of the response, up to most bytes.
func (b *Client) send(ctx context.Context, r *request, most int64) ([]byte, error) {
	address := awsrequest.ObjectURL(b.endpoint, b.region, r.bucket, r.key)
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	body, err := b.sender.Send(ctx, &awsrequest.Request{
		Operation: operation, Service: awsrequest.ServiceS3, Method: r.method, URL: address, Header: r.header,
		Body: r.body, Checksum: len(r.body) > 0,
	}, most)
	switch {
	case errors.Is(err, awsrequest.ErrTooLarge):
		return nil, fmt.Errorf("dynamo: %w: %w", err, provider.ErrCorrupt)
	case isMissingObject(err):
		return nil, provider.ErrNotFound
	default:
		return body, err
	}
}

// isMissingObject reports whether an object does not exist. A response to a HEAD request, or from a proxy, has no code.
func isMissingObject(err error) bool {
	e, ok := errors.AsType[*awsrequest.APIError](err)
	return ok && (e.Code == "NoSuchKey" || e.Code == "" && e.Status == http.StatusNotFound)
}

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
		return awsrequest.DecodeError(operation, http.StatusInternalServerError, body)
	}
	return nil
}

// DeleteObjects implements BucketAPI.
func (b *Client) DeleteObjects(ctx context.Context, bucket string, keys []string) error {
	objects := make([]awsrequest.ObjectVersion, len(keys))
	for i, key := range keys {
		objects[i].Key = key
	}
	body, err := awsrequest.EncodeDeletion(objects)
	if err != nil {
		return fmt.Errorf("dynamo: %w", err)
	}
	response, err := b.send(ctx, &request{
		method: http.MethodPost, bucket: bucket, query: url.Values{"delete": {""}}, body: body,
		header: map[string]string{"Content-Type": "application/xml"},
	}, responseLimit)
	if err != nil {
		return err
	}
	_, err = awsrequest.DecodeDeletion(operation, response)
	return err
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
			err = &awsrequest.APIError{Operation: operation, Code: "NoSuchBucket", Status: http.StatusNotFound}
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
