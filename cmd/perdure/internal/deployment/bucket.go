package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/perdure/perdure/internal/awsrequest"
)

// CodeStore stores the code of functions and templates in a bucket.
type CodeStore interface {
	// Ensure creates the bucket and its settings if they do not exist. It does not change a bucket that the user chose.
	Ensure(ctx context.Context) error
	// Has reports whether an object exists. Objects do not change, because their keys are hashes of their content.
	Has(ctx context.Context, key string) (bool, error)
	Put(ctx context.Context, key, mediaType string, body []byte) error
	// Bucket is the name of the bucket.
	Bucket() string
	// URL returns the URL of an object for CloudFormation.
	URL(key string) string
}

// bucketTag marks a bucket with complete settings.
const bucketTag = "perdure:bucket"

// bucket implements CodeStore with the REST API of S3.
type bucket struct {
	*caller

	name     string
	endpoint string // of an emulator, or empty
	// owner is the account of the default bucket. Every request names it, because anyone can create a bucket with a
	// name that can be guessed. It is empty for a bucket that the user chose.
	owner string
}

// defaultBucket returns the name of the bucket that the tool creates.
func defaultBucket(account, region string) string { return "perdure-deploy-" + account + "-" + region }

// Bucket implements CodeStore.
func (b *bucket) Bucket() string { return b.name }

// URL implements CodeStore.
func (b *bucket) URL(key string) string {
	return awsrequest.ObjectURL(b.endpoint, b.region, b.name, key)
}

// send makes a call for an object, or for the bucket if the key is empty.
func (b *bucket) send(ctx context.Context, r *awsrequest.Request, key, query string) ([]byte, error) {
	r.Operation += " " + b.name
	r.Service, r.URL = awsrequest.ServiceS3, b.URL(key)+query
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	if creates := key == "" && query == "" && r.Method == http.MethodPut; !creates {
		r.Checksum = len(r.Body) > 0
		if b.owner != "" {
			r.Header["X-Amz-Expected-Bucket-Owner"] = b.owner
		}
	}
	return b.call(ctx, r)
}

// Ensure implements CodeStore.
func (b *bucket) Ensure(ctx context.Context) error {
	_, err := b.send(ctx, &awsrequest.Request{Operation: "check bucket", Method: http.MethodHead}, "", "")
	e, refused := errors.AsType[*APIError](err)
	switch {
	case err == nil:
	case !refused:
		return err
	case e.Status == http.StatusNotFound && b.owner != "":
		if err := b.create(ctx); err != nil {
			return err
		}
	default:
		return b.explain(e)
	}
	if b.owner == "" {
		return nil
	}
	return b.configure(ctx)
}

// explain returns the cause of a refused check. The response to a HEAD request has no message.
func (b *bucket) explain(e *APIError) error {
	switch e.Status {
	case http.StatusNotFound:
		return fmt.Errorf("bucket %s does not exist; create it or omit --bucket", b.name)
	case http.StatusMovedPermanently:
		return fmt.Errorf("bucket %s is not in region %s; the code of a function must be in its region", b.name,
			b.region)
	case http.StatusForbidden:
		return fmt.Errorf("no access to bucket %s: the credentials lack s3:ListBucket, or the bucket belongs to "+
			"another account; choose another one with --bucket", b.name)
	default:
		return e
	}
}

func (b *bucket) create(ctx context.Context) error {
	r := &awsrequest.Request{Operation: "create bucket", Method: http.MethodPut}
	if b.region != "us-east-1" { // which S3 rejects as a constraint
		r.Body = fmt.Appendf(nil, `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`+
			`<LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>`, b.region)
	}
	_, err := b.send(ctx, r, "", "")
	switch {
	case hasCode(err, "BucketAlreadyOwnedByYou"): // a concurrent deployment or a lost response
		return nil
	case hasCode(err, "BucketAlreadyExists"):
		return fmt.Errorf("bucket %s belongs to another account; choose another one with --bucket", b.name)
	default:
		return err
	}
}

// configure adds the settings of the bucket, and then a tag. A bucket without the tag is the result of an interrupted
// run.
func (b *bucket) configure(ctx context.Context) error {
	r := &awsrequest.Request{Operation: "read tags of bucket", Method: http.MethodGet}
	_, err := b.send(ctx, r, "", "?tagging=")
	if !hasCode(err, "NoSuchTagSet") {
		return err
	}
	for _, setting := range []struct{ query, body string }{
		{"?publicAccessBlock=", `<PublicAccessBlockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
			`<BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls>` +
			`<BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets>` +
			`</PublicAccessBlockConfiguration>`},
		{"?encryption=", `<ServerSideEncryptionConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
			`<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>` +
			`</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`},
		{"?tagging=", `<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet><Tag><Key>` + bucketTag +
			`</Key><Value>deploy</Value></Tag></TagSet></Tagging>`},
	} {
		_, err := b.send(ctx, &awsrequest.Request{
			Operation: "configure bucket", Method: http.MethodPut, Body: []byte(setting.body),
			Header: map[string]string{contentType: "application/xml"},
		}, "", setting.query)
		if err != nil {
			return err
		}
	}
	return nil
}

// Has implements CodeStore. Without s3:ListBucket, S3 responds to a missing key with status 403, and Put reports a
// missing permission.
func (b *bucket) Has(ctx context.Context, key string) (bool, error) {
	_, err := b.send(ctx, &awsrequest.Request{Operation: "check object in bucket", Method: http.MethodHead}, key, "")
	e, refused := errors.AsType[*APIError](err)
	if refused && (e.Status == http.StatusNotFound || e.Status == http.StatusForbidden) {
		return false, nil
	}
	return err == nil, err
}

// Put implements CodeStore.
func (b *bucket) Put(ctx context.Context, key, mediaType string, body []byte) error {
	_, err := b.send(ctx, &awsrequest.Request{
		Operation: "upload to bucket", Method: http.MethodPut, Body: body,
		Header: map[string]string{contentType: mediaType},
	}, key, "")
	return err
}
