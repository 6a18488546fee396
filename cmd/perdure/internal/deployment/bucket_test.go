package deployment

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/awsrequest"
)

// bucketOf returns the bucket of the tool, or the one that a user chose if owner is empty.
func bucketOf(s *service, c *caller, owner string) *bucket {
	return &bucket{caller: c, name: "code", endpoint: s.URL, owner: owner}
}

// paths returns the requests of a service.
func (s *service) paths() (all []string) {
	for _, r := range s.requests {
		all = append(all, r.Method+" "+r.URL.RequestURI())
	}
	return all
}

func TestEnsure_missingBucket_isCreatedAndConfigured(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{404, ""}, response{200, ""},
		response{404, `<Error><Code>NoSuchTagSet</Code></Error>`}, response{200, ""})
	if err := bucketOf(s, c, "123456789012").Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HEAD /code/", "PUT /code/", "GET /code/?tagging=", "PUT /code/?publicAccessBlock=", "PUT /code/?encryption=",
		"PUT /code/?tagging=",
	}
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	if !strings.Contains(s.bodies[1], "<LocationConstraint>eu-west-1</LocationConstraint>") {
		t.Errorf("body %s", s.bodies[1])
	}
	for i, r := range s.requests {
		if got := r.Header.Get("X-Amz-Expected-Bucket-Owner"); (got == "123456789012") == (i == 1) {
			t.Errorf("%s has the owner %q", s.paths()[i], got)
		}
	}
}

// A run that was interrupted between the creation and the settings is completed by the next one.
func TestEnsure_bucketWithoutTags_isConfigured(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, ""}, response{404, `<Error><Code>NoSuchTagSet</Code></Error>`}, response{200, ""})
	if err := bucketOf(s, c, "123456789012").Ensure(t.Context()); err != nil || len(s.requests) != 5 {
		t.Errorf("got %v after %v", err, s.paths())
	}
}

func TestEnsure_configuredBucket_isNotChanged(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, ""}, response{200, `<Tagging><TagSet/></Tagging>`})
	if err := bucketOf(s, c, "123456789012").Ensure(t.Context()); err != nil || len(s.requests) != 2 {
		t.Errorf("got %v after %v", err, s.paths())
	}
}

func TestEnsure_bucketOfUser_isOnlyChecked(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusOK:               "",
		http.StatusNotFound:         "bucket code does not exist",
		http.StatusForbidden:        "no access to bucket code",
		http.StatusMovedPermanently: "bucket code is not in region eu-west-1",
	} {
		s, c := newService(t, response{status, ""})
		err := bucketOf(s, c, "").Ensure(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || len(s.requests) != 1 {
			t.Errorf("%d: got %v after %v", status, err, s.paths())
		}
		if owner := s.requests[0].Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" {
			t.Errorf("owner %s", owner)
		}
	}
}

func TestEnsure_nameIsTaken_fails(t *testing.T) {
	t.Parallel()
	for name, responses := range map[string][]response{
		"known at the check":    {{403, ""}},
		"known at the creation": {{404, ""}, {409, `<Error><Code>BucketAlreadyExists</Code></Error>`}},
	} {
		s, c := newService(t, responses...)
		err := bucketOf(s, c, "123456789012").Ensure(t.Context())
		if err == nil || !strings.Contains(err.Error(), "another account; choose another one with --bucket") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEnsure_concurrentCreation_succeeds(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{404, ""}, response{409, `<Error><Code>OperationAborted</Code></Error>`},
		response{409, `<Error><Code>BucketAlreadyOwnedByYou</Code></Error>`}, response{200, "<Tagging/>"})
	if err := bucketOf(s, c, "123456789012").Ensure(t.Context()); err != nil || len(s.requests) != 4 {
		t.Errorf("got %v after %v", err, s.paths())
	}
}

func TestHas_statuses_reportObject(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{200: true, 404: false, 403: false} {
		s, c := newService(t, response{status, ""})
		if got, err := bucketOf(s, c, "1").Has(t.Context(), "functions/a.zip"); got != want || err != nil {
			t.Errorf("%d: got %t, %v", status, got, err)
		}
	}
	s, c := newService(t, response{400, ""}) // an expired token; the response has no body
	if _, err := bucketOf(s, c, "1").Has(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v", err)
	}
}

func TestPut_object_hasChecksum(t *testing.T) {
	t.Parallel()
	s, c := newService(t, response{200, ""})
	if err := bucketOf(s, c, "1").Put(t.Context(), "functions/a.zip", "application/zip", []byte("code")); err != nil {
		t.Fatal(err)
	}
	if h := s.requests[0].Header; s.paths()[0] != "PUT /code/functions/a.zip" || s.bodies[0] != "code" ||
		h.Get("X-Amz-Checksum-Sha256") == "" || h.Get("Content-Type") != "application/zip" {
		t.Errorf("%v %v", s.paths(), h)
	}
}

func TestBucketURL_withoutEndpoint_isRegional(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"code":     "https://code.s3.eu-west-1.amazonaws.com/templates/a%20b.json",
		"my.stuff": "https://s3.eu-west-1.amazonaws.com/my.stuff/templates/a%20b.json",
	} {
		b := &bucket{caller: &caller{region: "eu-west-1"}, name: name}
		if got := b.URL("templates/a b.json"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := awsrequest.Endpoint("cloudformation", "cn-north-1", ""); got != "https://cloudformation.cn-north-1.amazonaws.com.cn" {
		t.Errorf("got %s", got)
	}
}
