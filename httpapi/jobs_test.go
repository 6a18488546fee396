package httpapi_test

import (
	"net/http"
	"testing"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	h := standing(t)
	h.call(t, http.MethodPost, jobs, `{"operation":"cancel","filter":{"name":"hello"},"dryRun":true}`).want(http.StatusOK)
	a := h.call(t, http.MethodPost, jobs, `{"operation":"purge","filter":{"statuses":["Running"],"tags":{"a":"b"},"updatedBefore":"2026-01-02T00:00:00Z"},"force":true}`).want(http.StatusAccepted)
	at := a.Header().Get("Location")
	h.call(t, http.MethodGet, at, "").want(http.StatusOK)
	h.call(t, http.MethodGet, jobs, "").want(http.StatusOK)
	h.call(t, http.MethodPost, at+"/cancel", "").want(http.StatusOK)
	h.call(t, http.MethodGet, jobs+"/nobody", "").wantProblem(http.StatusNotFound, "job_not_found", "jobId")
	h.call(t, http.MethodPost, jobs+"/nobody/cancel", "").wantProblem(http.StatusNotFound, "job_not_found", "jobId")
	for body, field := range map[string]string{
		`{"operation":"purge"}`:                                       "all",
		`{"operation":"purge","filter":{}}`:                           "all",
		`{"operation":"purge","all":true,"filter":{"name":"a"}}`:      "all",
		`{"operation":"pause","all":true}`:                            "operation",
		`{"operation":"purge","filter":{"statuses":["Running"]}}`:     "status",
		`{"operation":"purge","filter":{"nam":"a"}}`:                  "nam",
		`{"operation":"cancel","all":true,"force":true}`:              "force",
		`{"operation":"purge","all":true,"message":"why"}`:            "message",
		`{"operation":"purge","filter":{"name":"a"},"name":"b"}`:      "name",
		`{"operation":"purge","filter":{"startedAfter":"yesterday"}}`: "startedAfter",
	} {
		h.call(t, http.MethodPost, jobs, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
}
