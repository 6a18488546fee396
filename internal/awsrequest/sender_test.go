package awsrequest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/internal/awsrequest"
)

// fakeHTTP responds to all requests with a response or an error.
type fakeHTTP struct {
	status int
	body   io.Reader
	err    error
	got    *http.Request
}

func (f *fakeHTTP) Do(r *http.Request) (*http.Response, error) {
	f.got = r
	if f.err != nil {
		return nil, f.err
	}
	return &http.Response{StatusCode: f.status, Body: io.NopCloser(f.body)}, nil
}

func responds(status int, body string) *fakeHTTP {
	return &fakeHTTP{status: status, body: strings.NewReader(body)}
}

// senderOf returns a Sender with the credentials of a session, at a fixed time.
func senderOf(f *fakeHTTP) *awsrequest.Sender {
	cfg := aws.Config{
		Region: "eu-west-1", HTTPClient: f,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "session"}, nil
		}),
	}
	return awsrequest.New(&cfg, func() time.Time { return time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC) })
}

func get() *awsrequest.Request {
	return &awsrequest.Request{
		Operation: "read object", Service: awsrequest.ServiceS3, Method: http.MethodGet, URL: "https://code.example/a%20b",
	}
}

// The expected signatures were calculated by botocore (S3SigV4Auth and SigV4Auth).
func TestSend_eachService_signsRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request   *awsrequest.Request
		signed    string
		signature string
	}{
		"object with a checksum": {
			&awsrequest.Request{
				Service: awsrequest.ServiceS3, Method: http.MethodPut, URL: "https://code.example/a%20b",
				Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte("code"), Checksum: true,
			},
			"content-length;content-type;host;x-amz-checksum-sha256;x-amz-content-sha256;x-amz-date;" +
				"x-amz-sdk-checksum-algorithm;x-amz-security-token",
			"98b545a885816784f7850ffa33948a14befec81e5ee5a2f26aac1c3bae192717",
		},
		"query API": {
			&awsrequest.Request{
				Service: "cloudformation", Method: http.MethodPost, URL: "https://cloudformation.example/a%20b",
				Body: []byte("Action=ListStacks"),
			},
			"content-length;host;x-amz-date;x-amz-security-token",
			"71ecadf3cdd7009cee14ee12e086e7796a0e5ffa2fcc6be0001cf09edebc0fd7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := responds(http.StatusOK, "done")
			if body, err := senderOf(f).Send(t.Context(), c.request, 4); err != nil || string(body) != "done" {
				t.Fatalf("got %q, %v", body, err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKID/20260701/eu-west-1/" + c.request.Service + "/aws4_request, " +
				"SignedHeaders=" + c.signed + ", Signature=" + c.signature
			if got := f.got.Header.Get("Authorization"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if sent, err := io.ReadAll(f.got.Body); err != nil || string(sent) != string(c.request.Body) {
				t.Errorf("sent %q, %v", sent, err)
			}
		})
	}
}

func TestSend_checksum_isInTheHeadersOfS3(t *testing.T) {
	t.Parallel()
	const sum, hash = "VpTQii5T/8rgwxA+Wtb2B2q9lg6x+KVldwQLwQKPcCs=",
		"5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"
	for _, with := range []bool{true, false} {
		f, r := responds(http.StatusOK, ""), get()
		r.Body, r.Checksum = []byte("code"), with
		if _, err := senderOf(f).Send(t.Context(), r, 0); err != nil {
			t.Fatal(err)
		}
		h := f.got.Header
		if got := h.Get("X-Amz-Content-Sha256"); got != hash {
			t.Errorf("got hash %s", got)
		}
		if got := h.Get("X-Amz-Checksum-Sha256"); (got == sum) != with ||
			(h.Get("X-Amz-Sdk-Checksum-Algorithm") == "SHA256") != with {
			t.Errorf("checksum %t: got headers %v", with, h)
		}
	}
}

// tornBody is a body whose connection breaks after the first bytes.
func tornBody() io.Reader { return io.MultiReader(strings.NewReader("do"), brokenConnection{}) }

type brokenConnection struct{}

func (brokenConnection) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestSend_eachFailure_isClassified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fake      *fakeHTTP
		transient bool
		want      string
	}{
		"no connection":  {&fakeHTTP{err: errors.New("connection reset")}, true, "read object: request send failed, connection reset"},
		"torn response":  {&fakeHTTP{status: http.StatusOK, body: tornBody()}, true, "read object: request send failed, unexpected EOF"},
		"large response": {responds(http.StatusOK, "12345"), false, "read object: response exceeds its limit of 4 bytes"},
		"error of S3": {
			responds(http.StatusForbidden, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"), false,
			"read object: AccessDenied: no",
		},
		"error of a query API": {
			responds(http.StatusBadRequest, "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>"), true,
			"read object: Throttling",
		},
		"error of a proxy": {responds(http.StatusBadGateway, "<html>"), true, "read object: HTTP status 502"},
		"no body":          {responds(http.StatusBadRequest, ""), false, "read object: HTTP status 400; check whether the AWS credentials have expired"},
		"expired session":  {responds(http.StatusBadRequest, "<Error><Code>ExpiredToken</Code></Error>"), false, "read object: ExpiredToken; renew the AWS credentials"},
		"wrong clock":      {responds(http.StatusForbidden, "<Error><Code>RequestTimeTooSkewed</Code></Error>"), false, "read object: RequestTimeTooSkewed; check the AWS credentials and the clock of this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := senderOf(c.fake).Send(t.Context(), get(), 4)
			if err == nil || err.Error() != c.want || awsrequest.IsTransient(err) != c.transient {
				t.Errorf("got %v, transient %t", err, awsrequest.IsTransient(err))
			}
		})
	}
}

func TestSend_contextHasEnded_isNotTransient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := senderOf(&fakeHTTP{err: ctx.Err()}).Send(ctx, get(), 4)
	if _, cancelled := errors.AsType[*aws.RequestCanceledError](err); !cancelled || awsrequest.IsTransient(err) {
		t.Errorf("got %v", err)
	}
}

func TestSend_noCredentials_sendsNothing(t *testing.T) {
	t.Parallel()
	f := responds(http.StatusOK, "")
	cfg := aws.Config{HTTPClient: f, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no session") })}
	_, err := awsrequest.New(&cfg, time.Now).Send(t.Context(), get(), 4)
	if err == nil || err.Error() != "read object: retrieve AWS credentials: no session" || f.got != nil {
		t.Errorf("got %v", err)
	}
}

func TestSend_invalidURL_namesOperation(t *testing.T) {
	t.Parallel()
	r := get()
	r.URL = "https://%zz"
	if _, err := senderOf(responds(http.StatusOK, "")).Send(t.Context(), r, 4); err == nil ||
		!strings.HasPrefix(err.Error(), "read object: create request: ") {
		t.Errorf("got %v", err)
	}
}

// The certificate of S3 does not match the host of a bucket whose name has a dot.
func TestObjectURL_eachRegionAndBucket_isTheEndpointOfS3(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ endpoint, region, bucket, key, want string }{
		{"", "eu-west-1", "code", "a b/~c", "https://code.s3.eu-west-1.amazonaws.com/a%20b/~c"},
		{"", "eu-west-1", "my.code", "a", "https://s3.eu-west-1.amazonaws.com/my.code/a"},
		{"", "cn-north-1", "code", "", "https://code.s3.cn-north-1.amazonaws.com.cn/"},
		{"", "us-isob-east-1", "code", "", "https://code.s3.us-isob-east-1.sc2s.sgov.gov/"},
		{"http://127.0.0.1:4566/", "eu-west-1", "code", "a", "http://127.0.0.1:4566/code/a"},
	} {
		if got := awsrequest.ObjectURL(c.endpoint, c.region, c.bucket, c.key); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
