package deployment

import (
	"bytes"
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
		body, err := b.call(ctx, &request{
			operation: "list buckets", service: awsrequest.ServiceS3, method: http.MethodGet,
			url: endpointOf(awsrequest.ServiceS3, b.region, b.endpoint) + "/?" + query.Encode(),
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
	for attempt := 1; ; attempt++ {
		body, err := b.named(name).send(ctx, &request{
			operation: "list objects of bucket", method: http.MethodGet,
		}, "", "?versions=")
		if hasCode(err, codeNoBucket) {
			return nil
		}
		if err != nil {
			return err
		}
		var out struct {
			Versions []version `xml:"Version"`
			Markers  []version `xml:"DeleteMarker"`
		}
		if err := xml.Unmarshal(body, &out); err != nil {
			return fmt.Errorf("list objects of bucket %s: decode response: %w", name, err)
		}
		all := slices.Concat(out.Versions, out.Markers)
		if len(all) == 0 {
			return nil
		}
		err = b.deleteObjects(ctx, name, all)
		switch {
		case err == nil:
			attempt = 0
		case !isTransient(err) || attempt == maxAttempts:
			return err
		default:
			if err := b.sleep(ctx, pauseAfter(attempt)); err != nil {
				return err
			}
		}
	}
}

const codeNoBucket = "NoSuchBucket"

// version is a version of an object or a delete marker. In a bucket without versioning, its ID is "null".
type version struct {
	Key string `xml:"Key"`
	ID  string `xml:"VersionId"`
}

// deleteObjects deletes the versions of a page, at most 1,000.
func (b *buckets) deleteObjects(ctx context.Context, name string, versions []version) error {
	var list bytes.Buffer
	list.WriteString(`<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>`)
	for _, v := range versions {
		list.WriteString("<Object><Key>")
		_ = xml.EscapeText(&list, []byte(v.Key)) // a buffer returns no errors
		list.WriteString("</Key><VersionId>")
		_ = xml.EscapeText(&list, []byte(v.ID))
		list.WriteString("</VersionId></Object>")
	}
	list.WriteString("</Delete>")
	const operation = "delete objects of bucket"
	body, err := b.named(name).send(ctx, &request{
		operation: operation, method: http.MethodPost, body: list.Bytes(),
		header: map[string]string{contentType: "application/xml"},
	}, "", "?delete=")
	if err != nil {
		return err
	}
	var out struct {
		Errors []struct {
			Key     string `xml:"Key"`
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	if err := xml.Unmarshal(body, &out); err != nil {
		return fmt.Errorf("%s %s: decode response: %w", operation, name, err)
	}
	if len(out.Errors) > 0 {
		e, status := out.Errors[0], http.StatusOK
		if e.Code == "InternalError" || e.Code == "ServiceUnavailable" { // temporary, like a response with this code
			status = http.StatusServiceUnavailable
		}
		return &APIError{
			Operation: fmt.Sprintf("%s %s: object %s", operation, name, e.Key), Code: e.Code, Message: e.Message,
			Status: status,
		}
	}
	return nil
}

// DeleteBucket implements BucketAPI.
func (b *buckets) DeleteBucket(ctx context.Context, name string) error {
	_, err := b.named(name).send(ctx, &request{operation: "delete bucket", method: http.MethodDelete}, "", "")
	if hasCode(err, codeNoBucket) {
		return nil
	}
	return err
}
