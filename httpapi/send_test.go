package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestRaiseEvent_withOrWithoutEventID_sendsMessage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.call(t, http.MethodPost, "/v1/instances/one/events/approved", `{"by":"ann"}`, "Idempotency-Key",
		"e-1").want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, "/v1/instances/one/events/nudge", "").want(http.StatusAccepted)
	sent := h.Sent()
	if len(sent) != 2 || sent[0].Kind != provider.MessageEventRaised || sent[0].InstanceID != "one" ||
		sent[0].Name != "approved" ||
		sent[0].EventID != "e-1" || string(sent[0].Data) != `{"by":"ann"}` {
		t.Errorf("sent %+v", sent)
	}
	if sent[1].EventID == "" || string(sent[1].Data) != "null" {
		t.Errorf("without a body and a key: %+v", sent[1])
	}
}

func TestTerminate_runningInstance_sendsMessage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.call(t, http.MethodPost, "/v1/instances/one/terminate", `{"message":"enough"}`).want(http.StatusAccepted)
	h.call(t, http.MethodPost, "/v1/instances/one/terminate", "").want(http.StatusAccepted)
	if sent := h.Sent(); len(sent) != 2 || sent[0].Kind != provider.MessageTerminate || sent[0].Text != "enough" ||
		sent[1].Text != "" {
		t.Errorf("sent %+v", sent)
	}
}

func TestPauseAndResume_runningInstance_sendMessages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.call(t, http.MethodPost, "/v1/instances/one/pause",
		`{"message":"to look at it"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, "/v1/instances/one/resume",
		"").want(http.StatusAccepted).wantBody(`{"instanceId":"one","notPaused":true}`)
	h.Append("one", history.Event{Kind: history.ExecutionSuspended, Message: "to look at it", RequestedBy: "ann"})
	if body := h.call(t, http.MethodGet, "/v1/instances/one?pending=false",
		"").want(http.StatusOK).Body.String(); !strings.Contains(body,
		`"paused":{"by":"ann","message":"to look at it","at":`) {
		t.Error(body)
	}
	h.call(t, http.MethodPost, "/v1/instances/one/resume",
		"").want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	if sent := h.Sent(); len(sent) != 3 || sent[0].Kind != provider.MessageExecutionSuspended ||
		sent[0].Text != "to look at it" || sent[2].Kind != provider.MessageExecutionResumed {
		t.Errorf("sent %+v", sent)
	}
}

func TestRaiseEventAndTerminate_invalidRequest_isRejected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.start(t, "over")
	h.Append("over", history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
	for name, c := range map[string]struct {
		path, body  string
		status      int
		code, field string
	}{
		"event for unknown id":        {"missing/events/e", "1", http.StatusNotFound, "instance_not_found", "instanceId"},
		"event for an ended instance": {"over/events/e", "1", http.StatusGone, "instance_over", "instanceId"},
		"event not JSON":              {"one/events/e", "{", http.StatusBadRequest, "invalid_request", "data"},
		"event too large": {
			"one/events/e", `"` + strings.Repeat("x", 201<<10) + `"`, http.StatusRequestEntityTooLarge,
			"payload_too_large", "data",
		},
		"body too large": {
			"one/events/e", `"` + strings.Repeat("x", 300<<10) + `"`, http.StatusRequestEntityTooLarge,
			"payload_too_large", "body",
		},
		"event name too long": {
			"one/events/" + strings.Repeat("e", 257), "1", http.StatusBadRequest, "invalid_request", "event",
		},
		"terminate unknown id":        {"missing/terminate", "", http.StatusNotFound, "instance_not_found", "instanceId"},
		"terminate an ended instance": {"over/terminate", "{}", http.StatusGone, "instance_over", "instanceId"},
		"terminate, wrong field": {
			"one/terminate", `{"reason":"x"}`, http.StatusBadRequest, "invalid_request", "reason",
		},
		"terminate, long text": {
			"one/terminate", `{"message":"` + strings.Repeat("x", 1025) + `"}`, http.StatusBadRequest,
			"invalid_request", "message",
		},
	} {
		t.Run(name, func(t *testing.T) { // not parallel, because the tests share the log of the hub
			h.call(t, http.MethodPost, "/v1/instances/"+c.path, c.body).wantProblem(c.status, c.code, c.field)
		})
	}
}

// The API passes the trace context of a request to the started instance and the raised event. The API ignores an
// invalid trace context.
func TestTraceparent_validHeader_isPassedToStartAndEvent(t *testing.T) {
	t.Parallel()
	const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	h := setup(t)
	for id, header := range map[string]string{"traced": traced, "not": "00-" + strings.Repeat("f", 100_000)} {
		h.call(t, http.MethodPost, "/v1/orchestrations/hello", `{"instanceId":"`+id+`"}`, "Traceparent",
			header).want(http.StatusAccepted)
		h.call(t, http.MethodPost, "/v1/instances/"+id+"/events/go", "1", "Traceparent",
			header).want(http.StatusAccepted)
		in, err := h.ReadInstance(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		want := history.ParseTraceParent(header)
		for e, err := range h.ReadHistory(t.Context(), id, in.ExecutionID, 0) {
			if err != nil || e.TraceParent != want {
				t.Errorf("%s: %s has %q, %v", id, e.String(), e.TraceParent, err)
			}
		}
		if sent := h.Sent(); sent[len(sent)-1].TraceParent != want {
			t.Errorf("%s: sent %+v", id, sent[len(sent)-1])
		}
	}
}
