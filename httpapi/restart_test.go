package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

func TestRestart_endedInstance_startsNewInstance(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, "/v1/orchestrations/hello",
		`{"instanceId":"one","input":7,"tags":{"team":"a"}}`).want(http.StatusAccepted)
	h.call(t, http.MethodPost, "/v1/instances/one/restart", "").wantProblem(http.StatusConflict, "instance_not_over",
		"instanceId")
	h.Append("one", history.Event{
		Kind: history.OrchestrationTerminated, Time: time.Date(2026, 7, 1, 3, 0, 1, 0, time.UTC),
	})

	first := h.call(t, http.MethodPost, "/v1/instances/one/restart", "")
	first.want(http.StatusAccepted)
	if at := first.Header().Get("Location"); !strings.HasPrefix(at, "/v1/instances/one.restart-") {
		t.Errorf("Location: %s", at)
	}
	if again := h.call(t, http.MethodPost, "/v1/instances/one/restart",
		"{}"); again.Body.String() != first.Body.String() {
		t.Errorf("again: %s", again.Body)
	}
	other := h.call(t, http.MethodPost, "/v1/instances/one/restart",
		`{"instanceId":"two","version":"1.0.0","delay":"1h"}`)
	if other.want(http.StatusAccepted); !strings.Contains(other.Body.String(), `"instanceId":"two"`) {
		t.Errorf("under another id: %s", other.Body)
	}
	if in, err := h.ReadInstance(t.Context(), "two"); err != nil || in.Version != "1.0.0" || in.StartAt.IsZero() ||
		in.Tags["team"] != "a" {
		t.Errorf("the other: %+v, %v", in, err)
	}

	// The header is ignored, as in earlier releases, so that a client with a random header restarts an instance once.
	if again := h.call(t, http.MethodPost, "/v1/instances/one/restart", "", "Idempotency-Key",
		"k"); again.Body.String() != first.Body.String() {
		t.Errorf("with the header: %s", again.Body)
	}
	for range 2 {
		h.call(t, http.MethodPost, "/v1/instances/one/restart",
			`{"instanceId":"three","tags":{},"idempotencyKey":"k"}`).want(http.StatusAccepted)
	}
	if in, err := h.ReadInstance(t.Context(), "three"); err != nil || len(in.Tags) > 0 {
		t.Errorf("without tags: %+v, %v", in, err)
	}
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"instanceId":"three","idempotencyKey":"l"}`).
		wantProblem(http.StatusConflict, "instance_id_in_use", "instanceId")
	for field, body := range map[string]string{
		"idempotencyKey": `{"idempotencyKey":""}`, "tags": `{"tags":{"":"a"}}`,
	} {
		h.call(t, http.MethodPost, "/v1/instances/one/restart", body).wantProblem(http.StatusBadRequest,
			"invalid_request", field)
	}

	h.call(t, http.MethodPost, "/v1/instances/missing/restart", "").wantProblem(http.StatusNotFound,
		"instance_not_found", "instanceId")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"delay":"soon"}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "delay")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"input":1}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "input")
	h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"instanceId":""}`).wantProblem(http.StatusBadRequest,
		"invalid_request", "instanceId")
}

func TestRestart_fromEvent_startsNewInstance(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, "/v1/orchestrations/hello", `{"instanceId":"one","input":7}`).want(http.StatusAccepted)
	at := time.Date(2026, 7, 1, 3, 0, 1, 0, time.UTC)
	h.Append("one",
		history.Event{Kind: history.TurnStarted, Time: at, Version: "1.0.0"}, history.Event{
			Kind: history.ActivityScheduled, Time: at, Name: "greet",
		},
		history.Event{Kind: history.TurnStarted, Time: at}, history.Event{
			Kind: history.ActivityCompleted, Time: at, SourceEventID: 3,
		},
		history.Event{
			Kind: history.OrchestrationFailed, Time: at, Error: &history.Failure{Type: "error", Message: "m"},
		})

	for body, mentions := range map[string]string{
		`{"from":2}`: "the nearest possible events are 1 and 3", `{"from":0}`: "the history has events 1 to 6",
		`{"from":9}`:              "the nearest possible event is 5",
		`{"from":5,"delay":"1h"}`: "", `{"from":"x"}`: "",
	} {
		p := h.call(t, http.MethodPost, "/v1/instances/one/restart", body)
		if p.want(http.StatusBadRequest); !strings.Contains(p.Body.String(), mentions) {
			t.Errorf("%s: %s", body, p.Body)
		}
	}
	first := h.call(t, http.MethodPost, "/v1/instances/one/restart", `{"from":5}`)
	first.want(http.StatusAccepted)
	if again := h.call(t, http.MethodPost, "/v1/instances/one/restart",
		`{"from":5}`); again.Body.String() != first.Body.String() {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	if other := h.call(t, http.MethodPost, "/v1/instances/one/restart",
		`{"from":3,"instanceId":"two"}`); !strings.Contains(other.Body.String(), `"instanceId":"two"`) {
		t.Errorf("from another event: %s", other.Body)
	}
	got := h.call(t, http.MethodGet, "/v1/instances/two/history", "")
	if got.want(http.StatusOK); !strings.Contains(got.Body.String(), `"kind":"ExecutionRestarted"`) ||
		!strings.Contains(got.Body.String(), `"parent":{"instanceId":"one","executionId":"x1","eventId":3}`) {
		t.Errorf("its history: %s", got.Body)
	}
}
