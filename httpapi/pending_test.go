package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// waiting returns a hub whose instance "one" has a pending task of each kind, and activities in several states.
func waiting(t *testing.T) *hub {
	t.Helper()
	h := setup(t)
	h.start(t, "one")
	soon := began.Add(time.Hour)
	at := func(e history.Event) history.Event {
		e.Time = began
		return e
	}
	h.Append("one", at(history.Event{Kind: history.TurnStarted, Version: "1"}),
		at(history.Event{Kind: history.ActivityScheduled, Name: "charge", Queue: "payments"}),
		at(history.Event{Kind: history.ActivityScheduled, Name: "pack", Queue: "default"}),
		at(history.Event{Kind: history.TimerCreated, FireAt: &soon}),
		at(history.Event{Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "one:s", Attempt: 1}),
		at(history.Event{Kind: history.ExternalEventSubscribed, Name: "approved"}))
	h.SetRetries("x1", provider.ActivityRetry{
		ActivityID: 3, Attempt: 4, At: soon, FailedAt: began,
		Error: &history.Failure{Type: "BankError", Message: "no answer"},
	})
	h.SetActivityRecords("x1", provider.ActivityRecord{ActivityID: 3, LastHeartbeatAt: began}, provider.ActivityRecord{
		ActivityID: 4, UnknownAt: began, UnknownBuild: "b-1",
	})
	return h
}

const statusWithoutPending = `{"instanceId":"one","executionId":"x1","executionNumber":1,"orchestration":"hello","version":"1","status":"Running",` +
	`"createdAt":"2026-07-01T03:00:00Z","updatedAt":"2026-07-01T03:00:00Z","tags":{},"customStatus":null`

func TestGetInstance_pendingTasks_areReturned(t *testing.T) {
	t.Parallel()
	h := waiting(t)
	const charge = `{"what":"activity","id":3,"name":"charge","since":"2026-07-01T03:00:00Z","attempt":4,"lastError":{"type":"BankError","message":"no answer"},` +
		`"failedAt":"2026-07-01T03:00:00Z","nextTryAt":"2026-07-01T04:00:00Z","queue":"payments","lastHeartbeatAt":"2026-07-01T03:00:00Z"}`
	h.call(t, http.MethodGet, inUse,
		"").want(http.StatusOK).wantBody(statusWithoutPending +
		`,"pending":{"readAt":"2026-07-01T03:00:00Z","total":5,"items":[` + charge +
		`,{"what":"activity","id":4,"name":"pack","since":"2026-07-01T03:00:00Z","attempt":1,"queue":"default","unknownAt":"2026-07-01T03:00:00Z","unknownBuild":"b-1"}` +
		`,{"what":"timer","id":5,"since":"2026-07-01T03:00:00Z","dueAt":"2026-07-01T04:00:00Z"}` +
		`,{"what":"sub_orchestration","id":6,"name":"ship","childId":"one:s","since":"2026-07-01T03:00:00Z","attempt":1}` +
		`,{"what":"external_event","id":7,"name":"approved","since":"2026-07-01T03:00:00Z"}]}}`)
	h.call(t, http.MethodGet, inUse+"?limit=1", "").want(http.StatusOK).wantBody(
		statusWithoutPending + `,"pending":{"readAt":"2026-07-01T03:00:00Z","total":5,"items":[` + charge + `]}}`)
	h.call(t, http.MethodGet, inUse+"?pending=false", "").want(http.StatusOK).wantBody(statusWithoutPending + "}")
	if body := h.call(t, http.MethodGet, inUse+"?pending=false&cost=true",
		"").want(http.StatusOK).Body.String(); !strings.Contains(body,
		`"cost":{"instanceId":"one","executions":1,"turns":1,"activities":2,"dollars":0.0000`) {
		t.Errorf("the cost estimate is %s", body)
	}
	h.call(t, http.MethodGet, inUse+"?cost=no", "").wantProblem(http.StatusBadRequest, "invalid_request", "cost")
	h.call(t, http.MethodGet, inUse+"?pending=no", "").wantProblem(http.StatusBadRequest, "invalid_request", "pending")
	h.call(t, http.MethodGet, inUse+"?limit=1001", "").wantProblem(http.StatusBadRequest, "invalid_request", "limit")
	h.Append("one", failed("no more"))
	if body := h.call(t, http.MethodGet, inUse, "").want(http.StatusOK).Body.String(); strings.Contains(body,
		"pending") {
		t.Errorf("an ended instance has %s", body)
	}
}

// If the history cannot be read, the response has the status of the instance and the cause.
func TestGetInstance_historyCannotBeRead_statusIsReturned(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct {
		err       error
		detail    string
		retryable bool
	}{
		"corrupt_history": {
			fmt.Errorf("h#3: %w", provider.ErrCorrupt),
			"history of this instance cannot be read; DELETE with force=true works without it", false,
		},
		"unavailable": {
			&provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: fmt.Errorf("throttled")},
			"no response from the task hub in time; try again", true,
		},
	} {
		h := waiting(t)
		h.Damage("x1", tt.err)
		h.call(t, http.MethodGet, inUse,
			"").want(http.StatusOK).
			wantBody(fmt.Sprintf(`%s,"pending":{"unread":{"code":%q,"detail":%q,"retryable":%t}}}`,
				statusWithoutPending, code, tt.detail, tt.retryable))
		if log := h.log.String(); !strings.Contains(log, logevent.PendingTasksReadFailed) {
			t.Errorf("log %s", log)
		}
	}
}
