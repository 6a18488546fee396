package httpapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func TestCancel_runningInstance_sendsMessage(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPost, cancel,
		`{"message":"enough"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, cancel, "").want(http.StatusAccepted)
	in, err := h.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	m := provider.Message{
		Kind: provider.MessageCancel, InstanceID: "one", StartID: in.StartID, Reason: "requested",
		RequestedBy: "client", Text: "enough",
	}
	again := m
	again.Text = ""
	if diff := cmp.Diff([]provider.Message{m, again}, h.Sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	h.call(t, http.MethodPost, "/v1/instances/missing/cancel", "").wantProblem(
		http.StatusNotFound, "instance_not_found",
		"instanceId")
	h.call(t, http.MethodPost, over+"/cancel", "").wantProblem(http.StatusGone, "instance_over", "instanceId")
}

func TestCancelActivity_runningOrPendingActivity_isCancelled(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodPost, busy+"/cancel",
		`{"message":"enough"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"one"}`)
	h.call(t, http.MethodPost, busy+"/cancel", "").want(http.StatusAccepted)
	m := provider.Message{
		Kind: provider.MessageCancelActivity, InstanceID: "one", ExecutionID: "x2", ActivityID: 2, Text: "enough",
	}
	again := m
	again.Text = ""
	if diff := cmp.Diff([]provider.Message{m, again}, h.Sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	for name, activity := range map[string]string{"running": "stands-by", "pending": "unknown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cancelOnAHub(t, activity)
		})
	}
}

// cancelOnAHub cancels an activity through the API of a complete hub. A running activity observes the cancellation, and
// a pending activity never runs. The orchestration continues, and the API reports one cancellation with its reason.
func cancelOnAHub(t *testing.T, activity string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reported := ""
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "stands-by", func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			reported = context.Cause(ctx).Error()
			return 0, context.Cause(ctx)
		})
		perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			_, err := perdure.CallActivityByName[int](ctx, activity, 1).Await(ctx)
			return fmt.Sprint("continued: ", err), nil
		})
		sim, err := simhub.New(simhub.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() { defer close(served); sim.Cloud.Serve(ctx) }()
		h := &hub{
			api: httpapi.New(client.New(sim.Provider), admin.New(sim.Provider),
				httpapi.WithLogger(slog.New(slog.DiscardHandler))),
		}
		h.call(t, http.MethodPost, "/v1/orchestrations/waits",
			`{"instanceId":"one","input":1}`).want(http.StatusAccepted)
		time.Sleep(10 * time.Second)
		h.call(t, http.MethodPost, "/v1/instances/one/activities/3/cancel",
			`{"message":"enough"}`).want(http.StatusAccepted)
		time.Sleep(time.Hour)
		stop()
		<-served
		if a := h.call(t, http.MethodGet, "/v1/instances/one/result",
			"").want(http.StatusOK); !strings.Contains(a.Body.String(),
			`"output":"continued: cancelled (requested): enough"`) {
			t.Errorf("result %s", a.Body)
		}
		if want := map[string]string{"stands-by": "cancelled (requested): enough"}[activity]; reported != want {
			t.Errorf("the activity received %q, want %q", reported, want)
		}
		if a := h.call(t, http.MethodGet, "/v1/instances/one/cancellations",
			"").want(http.StatusOK); strings.Count(a.Body.String(), `"target":"activity"`) != 1 ||
			!strings.Contains(a.Body.String(), `"reason":"requested"`) {
			t.Errorf("cancellations %s", a.Body)
		}
		if err := sim.CheckIdle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelActivity_missingActivityOrInstance_isNotFound(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for path, tt := range map[string]struct{ code, field string }{
		// event 1 is the start of the execution
		inUse + "/activities/1/cancel":                  {"activity_not_found", "activityId"},
		inUse + "/activities/3/cancel":                  {"activity_not_found", "activityId"},
		over + "/activities/9223372036854775807/cancel": {"activity_not_found", "activityId"},
		"/v1/instances/missing/activities/2/cancel":     {"instance_not_found", "instanceId"},
	} {
		h.call(t, http.MethodPost, path, "").wantProblem(http.StatusNotFound, tt.code, tt.field)
	}
}

func TestCancelActivity_settledActivity_isAConflict(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]history.Event{
		"completed":     {Kind: history.ActivityCompleted, SourceEventID: 2},
		"failed":        {Kind: history.ActivityFailed, SourceEventID: 2},
		"cancelled":     {Kind: history.ActivityCancelRequested, SourceEventID: 2},
		"instance over": completed("1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newRunningHub(t)
			h.Append("one", end)
			h.call(t, http.MethodPost, busy+"/cancel", "").wantProblem(http.StatusConflict, "not_cancellable",
				"activityId")
			if sent := h.Sent(); len(sent) > 0 {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

func TestGetResult_cancelledInstance_returnsFailure(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.Append("one", history.Event{Kind: history.CancelRequested, Reason: "requested", Message: "enough"})
	h.call(t, http.MethodGet, inUse+"/result",
		"").want(http.StatusAccepted).wantBody(`{"instanceId":"one","executionId":"x1","status":"Cancelling"}`)
	h.Append("one", history.Event{Kind: history.OrchestrationCancelled, Reason: "requested", Message: "enough"})
	h.call(t, http.MethodGet, inUse+"/result", "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","status":"Cancelled","failure":{"type":"cancelled","message":"enough","reason":"requested"}}`)
}
