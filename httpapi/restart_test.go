package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

func TestRestart(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, "/v1/orchestrations/hello", `{"instanceId":"one","input":7,"tags":{"team":"a"}}`).want(http.StatusAccepted)
	h.call(t, http.MethodPost, "/v1/instances/one/restart", "").wantProblem(http.StatusConflict, "instance_not_over", "instanceId")
	h.Append("one", history.Event{Kind: history.OrchestrationTerminated, Time: time.Date(2026, 7, 1, 3, 0, 1, 0, time.UTC)})

	first := h.call(t, http.MethodPost, "/v1/instances/one/restart", "")
	first.want(http.StatusAccepted)
	if at := first.Header().Get("Location"); !strings.HasPrefix(at, "/v1/instances/one.restart-") {
		t.Errorf("Location: %s", at)
	}
	if again := h.call(t, http.MethodPost, "/v1/instances/one/restart", "{}"); again.Body.String() != first.Body.String() {
		t.Errorf("again: %s", again.Body)
	}
	other := h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"instanceId":"two","version":"1.0.0","delay":"1h"}`)
	if other.want(http.StatusAccepted); !strings.Contains(other.Body.String(), `"instanceId":"two"`) {
		t.Errorf("under another id: %s", other.Body)
	}
	if in, err := h.ReadInstance(t.Context(), "two"); err != nil || in.Version != "1.0.0" || in.StartAt.IsZero() || in.Tags["team"] != "a" {
		t.Errorf("the other: %+v, %v", in, err)
	}

	h.call(t, http.MethodPost, "/v1/instances/nobody/restart", "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"delay":"soon"}`).wantProblem(http.StatusBadRequest, "invalid_request", "delay")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"input":1}`).wantProblem(http.StatusBadRequest, "invalid_request", "input")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"instanceId":""}`).wantProblem(http.StatusBadRequest, "invalid_request", "instanceId")
}
