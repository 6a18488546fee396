package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/perdure/perdure/history"
)

func TestPurge_endedInstance_isDeleted(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodDelete, over, "").want(http.StatusNoContent).wantBody("")
	h.call(t, http.MethodDelete, over, "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
	h.call(t, http.MethodGet, over, "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
	h.start(t, "over") // the ID can be used
}

func TestPurge_runningInstance_requiresForce(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for _, query := range []string{"", "?force=false"} {
		h.call(t, http.MethodDelete, inUse+query, "").wantProblem(http.StatusConflict, "instance_not_over",
			"instanceId")
		h.call(t, http.MethodGet, inUse, "").want(http.StatusOK)
	}
	h.call(t, http.MethodDelete, inUse+"?force=true", "").want(http.StatusNoContent)
	h.call(t, http.MethodGet, inUse, "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
}

// A purge cannot be undone, so the API rejects a mistyped parameter.
func TestPurge_invalidParameter_isRejected(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for query, field := range map[string]string{
		"force=": "force", "force=1": "force", "force=TRUE": "force", "force": "force",
		"force=true&force=false": "force", "Force=true": "Force",
	} {
		h.call(t, http.MethodDelete, over+"?"+query, "").wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
	h.call(t, http.MethodDelete, "/v1/instances/%00", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"instanceId")
	h.call(t, http.MethodDelete, "/v1/instances/~*", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"instanceId")
	h.call(t, http.MethodGet, over, "").want(http.StatusOK)
}

// After the web UI has read an instance, a later incarnation may start. A purge with the creation time of the earlier
// incarnation does not delete the later one.
func TestPurge_createdAtOfAnotherIncarnation_isRejected(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodDelete, over+"?createdAt=2001-01-01T00:00:00Z", "").wantProblem(http.StatusNotFound,
		"instance_not_found", "instanceId")
	h.call(t, http.MethodDelete, over+"?createdAt=yesterday", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"createdAt")
	var seen struct {
		CreatedAt string `json:"createdAt"`
	}
	if err := json.Unmarshal(h.call(t, http.MethodGet, over, "").want(http.StatusOK).Body.Bytes(), &seen); err != nil {
		t.Fatal(err)
	}
	h.call(t, http.MethodDelete, over+"?createdAt="+seen.CreatedAt, "").want(http.StatusNoContent)
}

func TestPurge_withChildren_deletesChildren(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.start(t, "child")
	h.SetParent("child", history.Parent{InstanceID: "one", ExecutionID: "x2", EventID: 3})
	h.Append("child", history.Event{Kind: history.OrchestrationCompleted, Time: began})
	h.Append("one", history.Event{Kind: history.SubOrchestrationScheduled, Time: began, InstanceID: "child"})
	h.call(t, http.MethodDelete, inUse+"?withChildren=true", "").wantProblem(http.StatusConflict, "instance_not_over",
		"instanceId")
	h.call(t, http.MethodDelete, inUse+"?withChildren=yes", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"withChildren")
	h.call(t, http.MethodDelete, inUse+"?withChildren=true&force=true", "").wantProblem(http.StatusBadRequest,
		"invalid_request", "withChildren")
	h.Append("one", history.Event{Kind: history.OrchestrationCompleted, Time: began})
	if h.call(t, http.MethodGet, "/v1/instances/child", "").Code != http.StatusOK {
		t.Error("a rejected purge deleted the child")
	}
	h.call(t, http.MethodDelete, inUse+"?withChildren=true", "").want(http.StatusNoContent)
	h.call(t, http.MethodGet, "/v1/instances/child", "").wantProblem(http.StatusNotFound, "instance_not_found",
		"instanceId")
}
