package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

const (
	scheduled  = "/v1/schedules"
	nightly    = scheduled + "/nightly"
	everyNight = `{"orchestration":"report","when":"0 2 * * *"}`
	aWeek      = `{"from":"2026-06-01T00:00:00Z","to":"2026-06-08T00:00:00Z"}`
)

// withSchedules returns a hub whose builds support schedules.
func withSchedules(t *testing.T) *hub {
	t.Helper()
	now := func() time.Time { return began }
	h := &hub{Provider: fakeprovider.New(now, schedule.OrchestrationName), log: &bytes.Buffer{}}
	h.api = httpapi.New(client.New(h.Provider, client.WithClock(now)), admin.New(h.Provider, admin.WithClock(now)),
		httpapi.WithLogger(slogTo(h.log)), httpapi.WithClock(now))
	return h
}

func TestSchedules_eachRoute_sendsItsMessage(t *testing.T) {
	t.Parallel()
	h := withSchedules(t)
	put := `{"id":"nightly","orchestration":"report","version":"2","input":{"of":"sales"},"when":"cron(0 2 * * ? *)","timeZone":"Europe/Berlin",
		"from":"2026-08-01T00:00:00Z","until":"2027-08-01T00:00:00Z","overlap":"queue","catchUp":"all","revision":"7"}`
	h.call(t, http.MethodPut, nightly, put).want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly"}`)
	for e, err := range client.New(h.Provider).History(t.Context(), "schedule:nightly") {
		want := `{"schedule":{"id":"nightly","orchestration":"report","version":"2","input":{"of":"sales"},"when":"cron(0 2 * * ? *)","timeZone":"Europe/Berlin",` +
			`"from":"2026-08-01T00:00:00Z","until":"2027-08-01T00:00:00Z","overlap":"queue","catchUp":"all","revision":"7"}}`
		if doc, _ := e.Input.Document(); err != nil || string(doc) != want {
			t.Errorf("begins with %s, %v\nwant %s", doc, err, want)
		}
	}
	h.call(t, http.MethodGet, nightly, "").want(http.StatusOK).wantBody(
		`{"schedule":{"id":"nightly","orchestration":"","when":""},"started":0,"failed":0,"skipped":0,"missed":0,"status":"Pending","instanceId":"schedule:nightly"}`)
	h.call(t, http.MethodGet, scheduled, "").want(http.StatusOK).wantBody(
		`{"items":[{"schedule":{"id":"nightly","orchestration":"","when":""},"started":0,"failed":0,"skipped":0,"missed":0,"status":"Pending","instanceId":"schedule:nightly"}]}`)

	h.call(t, http.MethodPost, nightly+"/run",
		"").want(http.StatusAccepted).wantBody(`{"instanceId":"nightly@2026-07-01T03:00:00Z"}`)
	h.call(t, http.MethodPost, nightly+"/backfill",
		aWeek).want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly"}`)
	// a schedule of this release, and a schedule of an earlier release
	for _, end := range []provider.UpdateResult{
		{Outcome: provider.UpdateCompleted, Result: history.Payload("true")}, rejectedFor(history.RejectedNoHandler),
	} {
		updatesEnd(h, end)
		h.call(t, http.MethodPost, nightly+"/pause",
			`{"message":"for the migration"}`).want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly"}`)
	}
	h.call(t, http.MethodPost, nightly+"/resume",
		"").want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly","notPaused":true}`)
	h.call(t, http.MethodDelete, nightly, "").want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly"}`)
	h.call(t, http.MethodPut, nightly, everyNight).want(http.StatusAccepted)
	var sent []string
	for _, m := range h.Sent() {
		sent = append(sent, strings.TrimSpace(string(m.Kind)+" "+string(m.Data)+m.Text))
	}
	want := []string{
		`eventRaised {"run":"2026-07-01T03:00:00Z","byHand":true}`, `eventRaised {"backfill":` + aWeek + `}`,
		`update "for the migration"`, `update "for the migration"`, "executionSuspended for the migration", `update ""`,
		"executionResumed",
		`eventRaised {"end":true}`,
		`eventRaised {"set":{"id":"nightly","orchestration":"report","when":"0 2 * * *"}}`,
	}
	if got := strings.Join(sent, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("sent\n%s", got)
	}
	if log := h.log.String(); !strings.Contains(log, `operation="put schedule" instance=schedule:nightly`) {
		t.Error(log)
	}
}

// A blocked schedule processes a pause or a resume later, so the API returns 202 without a result. If the caller leaves
// first, the API does not return 202.
// The key of a run is a ULID. Its time determines the instance of the run, and the key is the ID of the event.
func TestRunSchedule_key_determinesTheRun(t *testing.T) {
	t.Parallel()
	h := withSchedules(t)
	h.call(t, http.MethodPut, "/v1/schedules/nightly", everyNight).
		want(http.StatusAccepted)
	const key = "01K0V9ZQ7G5V8Q3W4E5R6T7Y8Z"
	first := h.call(t, http.MethodPost, "/v1/schedules/nightly/run", "", "Idempotency-Key", key).
		want(http.StatusAccepted).Body.String()
	again := h.call(t, http.MethodPost, "/v1/schedules/nightly/run", "", "Idempotency-Key", key).
		want(http.StatusAccepted).Body.String()
	if first != again || !strings.Contains(first, `"nightly@20`) {
		t.Errorf("runs %s and %s", first, again)
	}
	runs := 0
	for _, m := range h.Sent() {
		if m.EventID == key {
			runs++
		}
	}
	if runs != 2 { // the instance receives events with the same ID once
		t.Errorf("%d events have the key as their ID", runs)
	}
	for _, wrong := range []string{"k", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"} {
		h.call(t, http.MethodPost, "/v1/schedules/nightly/run", "", "Idempotency-Key", wrong).
			wantProblem(http.StatusBadRequest, "invalid_request", "Idempotency-Key")
	}
}

func TestPauseSchedule_noResponseInTime_isAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := withSchedules(t) // this hub returns no results of updates
		h.call(t, http.MethodPut, nightly, everyNight).want(http.StatusAccepted)
		for _, verb := range []string{"/pause", "/resume"} {
			from := time.Now()
			h.call(t, http.MethodPost, nightly+verb,
				"").want(http.StatusAccepted).wantBody(`{"instanceId":"schedule:nightly"}`)
			if waited := time.Since(from); waited < time.Second {
				t.Errorf("%s: the call waited %v for a response", verb, waited)
			}
		}
		if sent := h.Sent(); len(sent) != 2 || sent[0].Name != schedule.UpdatePause ||
			sent[1].Name != schedule.UpdateResume {
			t.Errorf("sent %+v", sent)
		}

		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodPost, nightly+"/pause", http.NoBody))
		if w.Code == http.StatusAccepted {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestPutSchedule_invalidField_isABadRequest(t *testing.T) {
	t.Parallel()
	h := withSchedules(t)
	for field, body := range map[string]string{
		"when":          `{"orchestration":"report","when":"often"}`,
		"orchestration": `{"when":"@daily"}`,
		"timeZone":      `{"orchestration":"report","when":"@daily","timeZone":"Berlin"}`,
		"overlap":       `{"orchestration":"report","when":"@daily","overlap":"both"}`,
		"catchUp":       `{"orchestration":"report","when":"@daily","catchUp":"some"}`,
		"until":         `{"orchestration":"report","when":"@daily","from":"2026-08-01T00:00:00Z","until":"2026-07-01T00:00:00Z"}`,
		"from":          `{"orchestration":"report","when":"@daily","from":"soon"}`,
		"id":            `{"orchestration":"report","when":"@daily","id":"weekly"}`,
	} {
		h.call(t, http.MethodPut, nightly, body).wantProblem(http.StatusBadRequest, "invalid_request", field)
	}
	h.call(t, http.MethodGet, scheduled, "").want(http.StatusOK).wantBody(`{"items":[]}`)
}

func TestPutSchedule_rejectedCronExpression_isABadRequest(t *testing.T) {
	t.Parallel()
	h := withSchedules(t)
	for _, when := range []string{
		"22-6 2 * * *", "0 2 1 DEC-JAN *", "cron(0 2 * * * *)", "cron(0 2 1 * MON *)", "cron(0 2 ? * ? *)",
	} {
		body := fmt.Sprintf(`{"orchestration":"report","when":%q}`, when)
		h.call(t, http.MethodPut, nightly, body).wantProblem(http.StatusBadRequest, "invalid_request", "when")
	}
	h.call(t, http.MethodGet, scheduled, "").want(http.StatusOK).wantBody(`{"items":[]}`)
}

func TestBackfillSchedule_invalidWindow_isABadRequest(t *testing.T) {
	t.Parallel()
	h := withSchedules(t)
	h.call(t, http.MethodPost, nightly+"/backfill", aWeek).wantProblem(http.StatusNotFound, "instance_not_found",
		"scheduleId")
	h.call(t, http.MethodPut, nightly, everyNight)
	for body, field := range map[string]string{
		`{"to":"2026-06-08T00:00:00Z"}`:                               "from",
		`{"from":"2026-06-08T00:00:00Z"}`:                             "to",
		`{"from":"2026-06-08T00:00:00Z","to":"2026-06-01T00:00:00Z"}`: "to",
		`{"from":"2026-06-08T00:00:00Z","to":"2026-07-01T03:00:01Z"}`: "to",
		`{"from":"1950-06-08T00:00:00Z","to":"2026-06-01T00:00:00Z"}`: "from",
		`{"from":"soon","to":"2026-06-01T00:00:00Z"}`:                 "from",
		`{"since":"2026-06-01T00:00:00Z"}`:                            "since",
	} {
		h.call(t, http.MethodPost, nightly+"/backfill", body).wantProblem(http.StatusBadRequest, "invalid_request",
			field)
	}
}

// scheduleResponses returns the responses of each route of schedules, with success and with each failure.
func scheduleResponses(t *testing.T, failures ...error) (all []callResponse) {
	t.Helper()
	text := []string{"Content-Type", "text/plain"}
	long := `{"when":"` + strings.Repeat("x", 300<<10) + `"}`
	verbs := []string{"/run", "/pause", "/resume", "/backfill"}
	bodies := map[string]string{"/backfill": aWeek}
	h := withSchedules(t)
	updatesEnd(h, provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: history.Payload("true")})
	all = append(all, h.call(t, http.MethodPut, nightly, everyNight))
	for _, failure := range append(failures, nil) {
		h.FailWith(failure)
		all = append(all, h.call(t, http.MethodGet, scheduled, ""), h.call(t, http.MethodGet, nightly, ""),
			h.call(t, http.MethodPut, nightly, everyNight))
		for _, verb := range verbs {
			all = append(all, h.call(t, http.MethodPost, nightly+verb, bodies[verb]))
		}
		all = append(all, h.call(t, http.MethodDelete, nightly, ""))
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		all = append(all, h.call(t, method, nightly+"?a=1", ""), h.call(t, method, scheduled+"/missing", ""))
	}
	all = append(all, h.call(t, http.MethodGet, scheduled+"?limit=0", ""), h.call(t, http.MethodPut, nightly, "{}"),
		h.call(t, http.MethodPut, nightly, long),
		h.call(t, http.MethodPut, nightly, everyNight, text...), setup(t).call(t, http.MethodPut, nightly, everyNight))
	for _, verb := range verbs {
		all = append(all, h.call(t, http.MethodPost, nightly+verb+"?a=1", ""),
			h.call(t, http.MethodPost, scheduled+"/missing"+verb, bodies[verb]))
	}
	for _, verb := range verbs[1:] {
		all = append(all, h.call(t, http.MethodPost, nightly+verb, `{"message":"`+strings.Repeat("x", 300<<10)+`"}`),
			h.call(t, http.MethodPost, nightly+verb, "{}", text...))
	}
	h.Append(schedule.InstanceID("nightly"), history.Event{Kind: history.OrchestrationCompleted, Time: began})
	for _, verb := range verbs {
		all = append(all, h.call(t, http.MethodPost, nightly+verb, bodies[verb]))
	}
	return all
}
