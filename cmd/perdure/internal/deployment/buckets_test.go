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

// objects returns a page of a bucket without versioning.
func objects(keys ...string) response {
	body := `<ListVersionsResult>`
	for _, key := range keys {
		body += `<Version><Key>` + key + `</Key><VersionId>null</VersionId></Version>`
	}
	return response{200, body + `</ListVersionsResult>`}
}

func TestEmptyBucket_pages_areDeletedUntilEmpty(t *testing.T) {
	t.Parallel()
	s, c := newService(t, objects("a&amp;b", "c"), response{200, `<DeleteResult/>`}, objects("d"),
		response{200, `<DeleteResult/>`}, objects())
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /code/?versions=", "POST /code/?delete=", "GET /code/?versions=", "POST /code/?delete=", "GET /code/?versions=",
	}
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	if !strings.Contains(s.bodies[1], "<Object><Key>a&amp;b</Key><VersionId>null</VersionId></Object><Object><Key>c</Key>") {
		t.Errorf("body %s", s.bodies[1])
	}
	for i, r := range s.requests {
		if r.Header.Get("X-Amz-Expected-Bucket-Owner") != "123456789012" ||
			r.Method == http.MethodPost && r.Header.Get("X-Amz-Checksum-Sha256") == "" {
			t.Errorf("request %d has the headers %v", i, r.Header)
		}
	}
}

// A policy of the account enables versioning of new buckets.
func TestEmptyBucket_versions_areDeletedWithDeleteMarkers(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, `<ListVersionsResult><Version><Key>a</Key><VersionId>1</VersionId></Version>` +
		`<DeleteMarker><Key>a</Key><VersionId>2</VersionId></DeleteMarker></ListVersionsResult>`},
		response{200, `<DeleteResult/>`}, objects())
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1", "2"} {
		if !strings.Contains(s.bodies[1], "<Object><Key>a</Key><VersionId>"+version+"</VersionId></Object>") {
			t.Errorf("version %s is not in %s", version, s.bodies[1])
		}
	}
}

func TestEmptyBucket_objectNotDeleted_fails(t *testing.T) {
	t.Parallel()
	s, c := newService(t, objects("a"),
		response{200, `<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`})
	err := bucketsOf(s, c).EmptyBucket(t.Context(), "code")
	if !hasCode(err, "AccessDenied") || !strings.Contains(err.Error(), "bucket code: AccessDenied: object a (1 failed): no") {
		t.Errorf("got %v", err)
	}
}

// S3 throttles the deletion of single objects in a successful response.
func TestEmptyBucket_objectsThrottled_areDeletedLater(t *testing.T) {
	t.Parallel()
	list := objects("a")
	failed := func(code string) response {
		return response{200, `<DeleteResult><Error><Key>a</Key><Code>` + code + `</Code></Error></DeleteResult>`}
	}
	s, c := newService(t, list, failed("SlowDown"), list, failed("InternalError"), list, response{200, `<DeleteResult/>`},
		objects())
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

// A page on which some objects are deleted is progress, however long S3 throttles the others.
func TestEmptyBucket_someObjectsThrottledForLong_areAllDeleted(t *testing.T) {
	t.Parallel()
	const throttled = `<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code></Error></DeleteResult>`
	s, c := newService(t)
	for range 3 * maxAttempts {
		s.responses = append(s.responses, objects("a", "b"), response{200, throttled})
	}
	s.responses = append(s.responses, objects())
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); err != nil || len(s.slept) != 3*maxAttempts {
		t.Errorf("got %v, %d pauses", err, len(s.slept))
	}
}

func TestEmptyBucket_requestRejectedForLong_isNotRepeatedAgain(t *testing.T) {
	t.Parallel()
	s, c := newService(t, objects("a"))
	for range 2 * maxAttempts {
		s.responses = append(s.responses, response{503, `<Error><Code>SlowDown</Code></Error>`})
	}
	if err := bucketsOf(s, c).EmptyBucket(t.Context(), "code"); !hasCode(err, "SlowDown") ||
		len(s.paths()) != 1+maxAttempts {
		t.Errorf("got %v after %d requests", err, len(s.paths()))
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
