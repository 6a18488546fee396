package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	h := standing(t)
	h.call(t, http.MethodPost, cancel, `{"message":"enough"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, cancel, "").want(http.StatusAccepted)
	in, err := h.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	m := provider.Message{Kind: provider.MessageCancel, InstanceID: "one", StartID: in.StartID, Reason: "requested", RequestedBy: "client", Text: "enough"}
	again := m
	again.Text = ""
	if diff := cmp.Diff([]provider.Message{m, again}, h.Sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	h.call(t, http.MethodPost, "/v1/instances/nobody/cancel", "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
	h.call(t, http.MethodPost, over+"/cancel", "").wantProblem(http.StatusGone, "instance_over", "instanceId")
}

func TestCancelActivityByAPI(t *testing.T) {
	t.Parallel()
	h := standing(t)
	h.call(t, http.MethodPost, busy+"/cancel", `{"message":"enough"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, busy+"/cancel", "").want(http.StatusAccepted)
	m := provider.Message{Kind: provider.MessageCancelActivity, InstanceID: "one", ExecutionID: "x2", ActivityID: 2, Text: "enough"}
	again := m
	again.Text = ""
	if diff := cmp.Diff([]provider.Message{m, again}, h.Sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestCancelActivityNotFound404(t *testing.T) {
	t.Parallel()
	h := standing(t)
	for path, tt := range map[string]struct{ code, field string }{
		inUse + "/activities/1/cancel":                  {"activity_not_found", "activityId"}, // what the execution began with
		inUse + "/activities/3/cancel":                  {"activity_not_found", "activityId"},
		over + "/activities/9223372036854775807/cancel": {"activity_not_found", "activityId"},
		"/v1/instances/nobody/activities/2/cancel":      {"instance_not_found", "instanceId"},
	} {
		h.call(t, http.MethodPost, path, "").wantProblem(http.StatusNotFound, tt.code, tt.field)
	}
}

func TestCancelActivityNotCancellable409(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]history.Event{
		"completed":     {Kind: history.ActivityCompleted, SourceEventID: 2},
		"failed":        {Kind: history.ActivityFailed, SourceEventID: 2},
		"cancelled":     {Kind: history.ActivityCancelRequested, SourceEventID: 2},
		"instance over": completed("1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := standing(t)
			h.Append("one", end)
			h.call(t, http.MethodPost, busy+"/cancel", "").wantProblem(http.StatusConflict, "not_cancellable", "activityId")
			if sent := h.Sent(); len(sent) > 0 {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

func TestCancelledIsAResult(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.Append("one", history.Event{Kind: history.CancelRequested, Reason: "requested", Message: "enough"})
	h.call(t, http.MethodGet, inUse+"/result", "").want(http.StatusAccepted).wantBody(`{"instanceId":"one","executionId":"x1","status":"Cancelling"}`)
	h.Append("one", history.Event{Kind: history.OrchestrationCancelled, Reason: "requested", Message: "enough"})
	h.call(t, http.MethodGet, inUse+"/result", "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","status":"Cancelled","failure":{"type":"cancelled","message":"enough","reason":"requested"}}`)
}
