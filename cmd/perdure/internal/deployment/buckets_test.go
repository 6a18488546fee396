package deployment

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func bucketsOf(s *service, c *caller) *buckets { return &buckets{c, s.URL, "123456789012"} }

// S3 rejects requests without pages if the account may have more than 10,000 buckets.
func TestListBuckets_prefix_selectsFromAllPages(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, `<ListAllMyBucketsResult><Buckets><Bucket><Name>a-1</Name></Bucket><Bucket>` +
		`<Name>b</Name></Bucket></Buckets><ContinuationToken>t+1</ContinuationToken></ListAllMyBucketsResult>`},
		response{200, `<ListAllMyBucketsResult><Buckets><Bucket><Name>a-2</Name></Bucket></Buckets></ListAllMyBucketsResult>`})
	names, err := bucketsOf(s, c).ListBuckets(t.Context(), "a-")
	if err != nil || !slices.Equal(names, []string{"a-1", "a-2"}) {
		t.Errorf("got %v, %v", names, err)
	}
	want := []string{
		"GET /?max-buckets=1000&prefix=a-", "GET /?continuation-token=t%2B1&max-buckets=1000&prefix=a-",
	}
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

func TestEmptyBucket_pages_areDeletedUntilEmpty(t *testing.T) {
	t.Parallel()
	s, c := newService(t,
		response{200, `<ListBucketResult><Contents><Key>a&amp;b</Key></Contents><Contents><Key>c</Key></Contents></ListBucketResult>`},
		response{200, `<DeleteResult/>`},
		response{200, `<ListBucketResult><Contents><Key>d</Key></Contents></ListBucketResult>`}, response{200, `<DeleteResult/>`},
		response{200, `<ListBucketResult/>`})
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /code/?list-type=2", "POST /code/?delete=", "GET /code/?list-type=2", "POST /code/?delete=",
		"GET /code/?list-type=2",
	}
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	if !strings.Contains(s.bodies[1], "<Object><Key>a&amp;b</Key></Object><Object><Key>c</Key></Object>") {
		t.Errorf("body %s", s.bodies[1])
	}
	for i, r := range s.requests {
		if r.Header.Get("X-Amz-Expected-Bucket-Owner") != "123456789012" ||
			r.Method == http.MethodPost && r.Header.Get("X-Amz-Checksum-Sha256") == "" {
			t.Errorf("request %d has the headers %v", i, r.Header)
		}
	}
}

func TestEmptyBucket_objectNotDeleted_fails(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, `<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>`},
		response{200, `<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`})
	err := bucketsOf(s, c).EmptyBucket(t.Context(), "code")
	if !hasCode(err, "AccessDenied") || !strings.Contains(err.Error(), "bucket code: object a: AccessDenied: no") {
		t.Errorf("got %v", err)
	}
}

// S3 throttles the deletion of single objects in a successful response.
func TestEmptyBucket_objectsThrottled_areDeletedLater(t *testing.T) {
	t.Parallel()
	list := response{200, `<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>`}
	failed := func(code string) response {
		return response{200, `<DeleteResult><Error><Key>a</Key><Code>` + code + `</Code></Error></DeleteResult>`}
	}
	s, c := newService(t, list, failed("SlowDown"), list, failed("InternalError"), list, response{200, `<DeleteResult/>`},
		response{200, `<ListBucketResult/>`})
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); err != nil || len(s.slept) != 2 {
		t.Errorf("got %v after %v, pauses %v", err, s.paths(), s.slept)
	}
	s, c = newService(t, list)
	s.responses = nil
	for range maxAttempts + 1 {
		s.responses = append(s.responses, list, failed("SlowDown"))
	}
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); !hasCode(err, "SlowDown") || len(s.slept) != maxAttempts-1 {
		t.Errorf("throttled for long: got %v, %d pauses", err, len(s.slept))
	}
}

func TestBuckets_missingBucket_succeeds(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{404, `<Error><Code>NoSuchBucket</Code></Error>`})
	b := bucketsOf(s, c)
	if err := b.EmptyBucket(t.Context(), "code"); err != nil {
		t.Errorf("empty: %v", err)
	}
	if err := b.DeleteBucket(t.Context(), "code"); err != nil {
		t.Errorf("delete: %v", err)
	}
}
