package deployment

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/awsrequest"
)

// buckets implements BucketAPI.
type buckets struct {
	*caller

	endpoint string // of an emulator, or empty
	owner    string // the account
}

func (b *buckets) named(name string) *bucket {
	return &bucket{caller: b.caller, name: name, endpoint: b.endpoint, owner: b.owner}
}

// ListBuckets implements BucketAPI.
func (b *buckets) ListBuckets(ctx context.Context, prefix string) (names []string, err error) {
	query := url.Values{"max-buckets": {"1000"}, "prefix": {prefix}}
	for {
		body, err := b.call(ctx, &awsrequest.Request{
			Operation: "list buckets", Service: awsrequest.ServiceS3, Method: http.MethodGet,
			URL: awsrequest.Endpoint(awsrequest.ServiceS3, b.region, b.endpoint) + "/?" + query.Encode(),
		})
		if err != nil {
			return nil, err
		}
		var out struct {
			Names []string `xml:"Buckets>Bucket>Name"`
			Token string   `xml:"ContinuationToken"`
		}
		if err := xml.Unmarshal(body, &out); err != nil {
			return nil, fmt.Errorf("list buckets: decode response: %w", err)
		}
		for _, name := range out.Names {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		if out.Token == "" {
			return names, nil
		}
		query.Set("continuation-token", out.Token)
	}
}

// EmptyBucket implements BucketAPI.
func (b *buckets) EmptyBucket(ctx context.Context, name string) error {
	for attempt := 1; ; attempt++ { // without progress
		body, err := b.named(name).send(ctx, &awsrequest.Request{
			Operation: "list objects of bucket", Method: http.MethodGet,
		}, "", "?versions=")
		if hasCode(err, codeNoBucket) {
			return nil
		}
		if err != nil {
			return err
		}
		var out struct {
			Versions []awsrequest.ObjectVersion `xml:"Version"`
			Markers  []awsrequest.ObjectVersion `xml:"DeleteMarker"`
		}
		if err := xml.Unmarshal(body, &out); err != nil {
			return fmt.Errorf("list objects of bucket %s: decode response: %w", name, err)
		}
		all := slices.Concat(out.Versions, out.Markers)
		if len(all) == 0 {
			return nil
		}
		failed, err := b.deleteObjects(ctx, name, all)
		if failed < len(all) {
			attempt = 1
		}
		switch {
		case err == nil:
		case failed == 0 || !isTransient(err) || attempt == maxAttempts: // the request itself was repeated
			return err
		default:
			if err := b.sleep(ctx, pauseAfter(attempt)); err != nil {
				return err
			}
		}
	}
}

const codeNoBucket = "NoSuchBucket"

// deleteObjects deletes the versions of a page, at most 1,000. It returns the number of those that were not deleted,
// with the error of one of them. If the request failed, this number is 0.
func (b *buckets) deleteObjects(
	ctx context.Context, name string, versions []awsrequest.ObjectVersion,
) (failed int, err error) {
	list, err := awsrequest.EncodeDeletion(versions)
	if err != nil {
		return 0, err
	}
	r := &awsrequest.Request{
		Operation: "delete objects of bucket", Method: http.MethodPost, Body: list,
		Header: map[string]string{contentType: "application/xml"},
	}
	body, err := b.named(name).send(ctx, r, "", "?delete=")
	if err != nil {
		return 0, err
	}
	return awsrequest.DecodeDeletion(r.Operation, body)
}

// DeleteBucket implements BucketAPI.
func (b *buckets) DeleteBucket(ctx context.Context, name string) error {
	r := &awsrequest.Request{Operation: "delete bucket", Method: http.MethodDelete}
	_, err := b.named(name).send(ctx, r, "", "")
	if hasCode(err, codeNoBucket) {
		return nil
	}
	return err
}
