package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// fakeS3 is a fake of S3 that returns the same response to all requests.
type fakeS3 struct {
	next response
	got  []*http.Request
}

// response is a response of S3, or the error of a call without a response.
type response struct {
	status int
	body   string
	torn   bool // the end of the body is lost
	lost   error
}

func (a *fakeS3) Do(req *http.Request) (*http.Response, error) {
	a.got = append(a.got, req)
	if a.next.lost != nil {
		return nil, a.next.lost
	}
	var body io.Reader = strings.NewReader(a.next.body)
	if a.next.torn {
		body = io.MultiReader(body, errorReader{})
	}
	return &http.Response{StatusCode: a.next.status, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

func mentions(status int, body string) response { return response{status: status, body: body} }

func refuses(status int, code string) response {
	return mentions(status, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
}

func getsLost() response { return response{lost: errors.New("read tcp: connection reset by peer")} }

func breaksOff() response { return response{status: http.StatusOK, body: "da", torn: true} }

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func bucketOf(t *testing.T, region string, next response) (dynamo.BucketAPI, *fakeS3) {
	t.Helper()
	cfg, a := configOf(region, next)
	return dynamo.NewBucket(cfg), a
}

func configOf(region string, next response) (aws.Config, *fakeS3) {
	a := &fakeS3{next: next}
	return aws.Config{
		Region: region, HTTPClient: a,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	}, a
}

// again reports whether the SDK and the provider retry a call after an error.
func again(err error) bool {
	for _, r := range append(retry.DefaultRetryables,
		retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}) {
		if is := r.IsErrorRetryable(err); is != aws.UnknownTernary {
			return is == aws.TrueTernary
		}
	}
	return false
}

// Calls without a response and temporary errors are retried. Rejected calls are not retried.
func TestGetObject_eachErrorOfS3_isRetryableOrPermanent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next           response
		again, missing bool
	}{
		"a connection that is lost":   {getsLost(), true, false},
		"a response that breaks off":  {breaksOff(), true, false},
		"throttling":                  {refuses(http.StatusServiceUnavailable, "SlowDown"), true, false},
		"an error of S3":              {refuses(http.StatusInternalServerError, "InternalError"), true, false},
		"a response of a proxy":       {mentions(http.StatusBadGateway, "<html>"), true, false},
		"no right":                    {refuses(http.StatusForbidden, "AccessDenied"), false, false},
		"no bucket":                   {refuses(http.StatusNotFound, "NoSuchBucket"), false, false},
		"no object":                   {refuses(http.StatusNotFound, "NoSuchKey"), false, true},
		"no object, without its code": {mentions(http.StatusNotFound, ""), false, true},
		"more than requested":         {mentions(http.StatusOK, "12345"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := bucketOf(t, "eu-central-1", c.next)
			_, err := b.GetObject(t.Context(), "bucket", "hub/x/00/e/hash", 4)
			if err == nil || again(err) != c.again || errors.Is(err, provider.ErrNotFound) != c.missing {
				t.Errorf("error %v: retryable %v, missing %v", err, again(err), errors.Is(err, provider.ErrNotFound))
			}
		})
	}
}

func TestGetObject_contextIsCancelled_isNotRetried(t *testing.T) {
	t.Parallel()
	b, _ := bucketOf(t, "eu-central-1", getsLost())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.GetObject(ctx, "bucket", "key", 4); err == nil || again(err) {
		t.Errorf("%v", err)
	}
}

// S3 starts some responses with status 200 before the operation has ended. The body may report an error.
func TestBucket_errorInResponseWithStatus200_isRetryable(t *testing.T) {
	t.Parallel()
	b, _ := bucketOf(t, "eu-central-1", refuses(http.StatusOK, "InternalError"))
	if err := b.CopyObject(t.Context(), "bucket", "from", "to"); err == nil || !again(err) {
		t.Errorf("copy: %v", err)
	}
	b, _ = bucketOf(t, "eu-central-1",
		mentions(http.StatusOK, "<DeleteResult><Error><Key>one</Key><Code>SlowDown</Code></Error></DeleteResult>"))
	if err := b.DeleteObjects(t.Context(), "bucket", []string{"one", "two"}); err == nil || !again(err) ||
		!strings.Contains(err.Error(), "one") {
		t.Errorf("deletion: %v", err)
	}
}

// The region and the bucket determine the URL. The signature includes the hash of the body.
func TestPutObject_regionAndBucket_determineURLAndSignature(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ region, bucket, url string }{
		{"eu-central-1", "payloads", "https://payloads.s3.eu-central-1.amazonaws.com/hub/x/00/e/1"},
		// the certificate of S3 does not match a name with a dot
		{"eu-central-1", "pay.loads", "https://s3.eu-central-1.amazonaws.com/pay.loads/hub/x/00/e/1"},
		{"cn-north-1", "payloads", "https://payloads.s3.cn-north-1.amazonaws.com.cn/hub/x/00/e/1"},
		{"us-gov-west-1", "payloads", "https://payloads.s3.us-gov-west-1.amazonaws.com/hub/x/00/e/1"},
		{"eusc-de-east-1", "payloads", "https://payloads.s3.eusc-de-east-1.amazonaws.eu/hub/x/00/e/1"},
		{"us-iso-east-1", "payloads", "https://payloads.s3.us-iso-east-1.c2s.ic.gov/hub/x/00/e/1"},
		{"us-isob-east-1", "payloads", "https://payloads.s3.us-isob-east-1.sc2s.sgov.gov/hub/x/00/e/1"},
	} {
		b, a := bucketOf(t, c.region, mentions(http.StatusOK, ""))
		if err := b.PutObject(t.Context(), c.bucket, "hub/x/00/e/1", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		req := a.got[0]
		if req.URL.String() != c.url {
			t.Errorf("%s, want %s", req.URL, c.url)
		}
		sent, err := io.ReadAll(req.Body)
		if signed := req.Header.Get("Authorization"); err != nil || !bytes.Equal(sent, []byte("{}")) ||
			!strings.Contains(signed, "x-amz-content-sha256") || !strings.Contains(signed, "/"+c.region+"/s3/") {
			t.Errorf("sent %q, error %v, signed %s", sent, err, signed)
		}
	}
}
