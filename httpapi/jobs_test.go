package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestStartJob_repeatedKey_returnsTheSameJob(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	locations := map[string]bool{}
	for _, key := range []string{"k", "k", "l"} {
		a := h.call(t, http.MethodPost, jobs, `{"operation":"cancel","all":true}`, "Idempotency-Key", key)
		locations[a.want(http.StatusAccepted).Header().Get("Location")] = true
	}
	if len(locations) != 2 {
		t.Errorf("jobs %v", locations)
	}
}

func TestJobs_validRequestsSucceed_invalidOnesAreRejected(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPost, jobs,
		`{"operation":"cancel","filter":{"name":"hello"},"dryRun":true}`).want(http.StatusOK)
	a := h.call(t, http.MethodPost, jobs,
		`{"operation":"purge","filter":{"statuses":["Running"],"tags":{"a":"b"},"updatedBefore":"2026-01-02T00:00:00Z"},"force":true}`).want(http.StatusAccepted)
	at := a.Header().Get("Location")
	h.call(t, http.MethodGet, at, "").want(http.StatusOK)
	h.call(t, http.MethodGet, jobs, "").want(http.StatusOK)
	h.call(t, http.MethodPost, at+"/cancel", "").want(http.StatusOK)
	h.call(t, http.MethodGet, jobs+"/missing", "").wantProblem(http.StatusNotFound, "job_not_found", "jobId")
	h.call(t, http.MethodPost, jobs+"/missing/cancel", "").wantProblem(http.StatusNotFound, "job_not_found", "jobId")
	for body, field := range map[string]string{
		`{"operation":"purge"}`:                                       "all",
		`{"operation":"purge","filter":{}}`:                           "all",
		`{"operation":"purge","all":true,"filter":{"name":"a"}}`:      "all",
		`{"operation":"pause","all":true}`:                            "operation",
		`{"operation":"purge","filter":{"statuses":["Running"]}}`:     "statuses",
		`{"operation":"purge","filter":{"statuses":["running"]}}`:     "statuses",
		`{"operation":"purge","filter":{"name":""},"all":true}`:       "name",
		`{"operation":"cancel","filter":{"name":"a","parent":""}}`:    "parent",
		`{"operation":"purge","filter":{"nam":"a"}}`:                  "nam",
		`{"operation":"purge","filter":{"parent":1}}`:                 "parent",
		`{"operation":"cancel","all":true,"force":true}`:              "force",
		`{"operation":"purge","all":true,"message":"why"}`:            "message",
		`{"operation":"purge","filter":{"name":"a"},"name":"b"}`:      "name",
		`{"operation":"purge","filter":{"startedAfter":"yesterday"}}`: "startedAfter",
	} {
		h.call(t, http.MethodPost, jobs, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
}

// The clock of a caller may be wrong. A dry run therefore returns the latest start time that the hub has counted.
func TestStartJob_dryRun_returnsStartedBefore(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	var counted struct {
		StartedBefore time.Time `json:"startedBefore"`
	}
	a := h.call(t, http.MethodPost, jobs,
		`{"operation":"cancel","filter":{"name":"hello","startedBefore":"2999-01-01T00:00:00Z"},"dryRun":true}`).
		want(http.StatusOK)
	if err := json.Unmarshal(a.Body.Bytes(), &counted); err != nil || counted.StartedBefore.IsZero() ||
		counted.StartedBefore.After(time.Now()) {
		t.Errorf("%v, %v", counted, err)
	}
}

// Because of its offset, a time may be outside the years 0000 to 9999 in UTC. No response can represent such a time.
func TestTimeFilter_yearWithoutFourDigitsInUTC_isRejected(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	const late, early = "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"
	for _, at := range []string{late, early} {
		for _, field := range []string{"startedAfter", "startedBefore", "updatedBefore"} {
			h.call(t, http.MethodPost, jobs,
				`{"operation":"cancel","filter":{"`+field+`":"`+at+
					`"},"dryRun":true}`).wantProblem(http.StatusBadRequest, "invalid_request", field)
		}
		for _, field := range []string{"startedAfter", "startedBefore"} {
			h.call(t, http.MethodGet, "/v1/instances?"+field+"="+url.QueryEscape(at),
				"").wantProblem(http.StatusBadRequest, "invalid_request", field)
		}
	}
}

// The problem names the query parameter, which is tag and not tags.
func TestListInstances_invalidTag_problemNamesTag(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodGet, "/v1/instances?tag="+strings.Repeat("k", 200)+"=v", "").wantProblem(http.StatusBadRequest,
		"invalid_request", "tag")
}
