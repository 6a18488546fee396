package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const inUse = "/v1/instances/one"

func TestReadRoutes_missingInstance_isNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/v1/instances/missing", "/v1/instances/missing/result", "/v1/instances/missing/history",
		"/v1/instances/missing/executions", "/v1/instances/missing/cancellations",
	} {
		h := setup(t)
		h.call(t, http.MethodGet, path, "").wantProblem(http.StatusNotFound, "instance_not_found", "instanceId")
	}
}

func TestGetInstance_invalidID_isABadRequest(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"not base64url":        "~a*b",
		"padded":               "~YQ==",
		"of nothing":           "~",
		"not UTF-8":            "~_w",
		"control character":    "~AA",
		"too long":             strings.Repeat("x", 1025),
		"percent-encoded NUL":  "%00",
		"not the only base64 ": "~YR",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup(t).call(t, http.MethodGet, "/v1/instances/"+id, "").wantProblem(http.StatusBadRequest,
				"invalid_request", "instanceId")
		})
	}
}

func TestGetInstance_failedInstance_hasFailure(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.Append("one", history.Event{Kind: history.TurnStarted, Version: "1.0.0"}, failed("no stock"))
	h.call(t, http.MethodGet, inUse, "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","executionNumber":1,"orchestration":"hello","version":"1.0.0","status":"Failed",` +
			`"createdAt":"2026-07-01T03:00:00Z","updatedAt":"2026-07-01T03:00:01Z","tags":{},"customStatus":null,"failure":{"type":"OrderError","message":"no stock"}}`)
}

func TestGetResult_pendingOrEndedInstance_returnsStatusAndOutput(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	a := h.call(t, http.MethodGet, inUse+"/result", "").want(http.StatusAccepted)
	a.wantBody(`{"instanceId":"one","executionId":"x1","status":"Pending"}`)
	if a.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.Append("one", completed(`{"r":"<a>"}`))
	h.call(t, http.MethodGet, inUse+"/result?wait=20s", "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","status":"Completed","output":{"r":"<a>"}}`)
	h.start(t, "two")
	h.Append("two", failed("no stock"))
	h.call(t, http.MethodGet, "/v1/instances/two/result", "").want(http.StatusOK).wantBody(
		`{"instanceId":"two","executionId":"x2","status":"Failed","failure":{"type":"OrderError","message":"no stock"}}`)
}

func TestGetResult_wait_lastsUntilEndOrDuration(t *testing.T) {
	t.Parallel()
	for wait, tt := range map[string]struct {
		status int
		took   time.Duration
	}{
		"5s":    {http.StatusAccepted, 5 * time.Second},
		"1ns":   {http.StatusAccepted, time.Nanosecond},
		"20s":   {http.StatusOK, 11 * time.Second},
		"1000h": {http.StatusOK, 11 * time.Second},
	} {
		t.Run(wait, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := setup(t)
				h.start(t, "one")
				time.AfterFunc(10*time.Second, func() { h.Append("one", completed("1")) })
				from := time.Now()
				h.call(t, http.MethodGet, inUse+"/result?wait="+wait, "").want(tt.status)
				if took := time.Since(from); took > tt.took {
					t.Errorf("took %s", took)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestGetResult_longWait_isLimitedToTwentySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		from := time.Now()
		h.call(t, http.MethodGet, inUse+"/result?wait=1h", "").want(http.StatusAccepted)
		if took := time.Since(from); took != 20*time.Second {
			t.Errorf("waited %s", took)
		}
	})
}

func TestGetInstance_waitForStart_returnsAfterFirstTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		from := time.Now()
		path := inUse + "?pending=false&waitForStart="
		if got := h.call(t, http.MethodGet, path+"1h", "").want(http.StatusOK).Body.String(); !strings.Contains(got,
			`"status":"Pending"`) || time.Since(from) != 20*time.Second {
			t.Errorf("after %v: %s", time.Since(from), got)
		}
		time.AfterFunc(5*time.Second, func() { h.Append("one", history.Event{Kind: history.TurnStarted, Time: began}) })
		from = time.Now()
		if got := h.call(t, http.MethodGet, path+"20s", "").want(http.StatusOK).Body.String(); !strings.Contains(got,
			`"status":"Running"`) || time.Since(from) > 6*time.Second {
			t.Errorf("after %v: %s", time.Since(from), got)
		}
	})
}

func TestQueryParameters_invalidValue_isRejected(t *testing.T) {
	t.Parallel()
	for target, field := range map[string]string{
		inUse + "/result?wait=20":              "wait",
		inUse + "/result?wait=-1s":             "wait",
		inUse + "/result?wait=":                "wait",
		inUse + "/result?wait=soon":            "wait",
		inUse + "/result?wait=1s&wait=2s":      "wait",
		inUse + "/result?timeout=1s":           "timeout",
		inUse + "?verbose=1":                   "verbose",
		inUse + "?waitForStart=soon":           "waitForStart",
		inUse + "?a=%zz":                       "query",
		inUse + "/history?after=-1":            "after",
		inUse + "/history?after=x":             "after",
		inUse + "/history?limit=0":             "limit",
		inUse + "/history?limit=1001":          "limit",
		inUse + "/history?cursor=1":            "cursor",
		"/v1/instances?status=running":         "status",
		"/v1/instances?status=cancelled":       "status",
		"/v1/instances?limit=0":                "limit",
		"/v1/instances?limit=-1":               "limit",
		"/v1/instances?limit=1001":             "limit",
		"/v1/instances?limit=10000000000000":   "limit",
		"/v1/instances?limit=ten":              "limit",
		"/v1/instances?startedAfter=today":     "startedAfter",
		"/v1/instances?startedAfter=1":         "startedAfter",
		"/v1/instances?startedBefore=tomorrow": "startedBefore",
		"/v1/instances?startedAfter=2026-07-01T03:00:00Z&startedBefore=2026-07-01T03:00:00Z": "startedAfter",
		"/v1/instances?tag=a":                               "tag",
		"/v1/instances?tag=a=1&tag=a=2":                     "tag",
		"/v1/instances?tag==1":                              "tag",
		"/v1/instances?version=" + strings.Repeat("x", 65):  "version",
		"/v1/instances?parent=" + strings.Repeat("x", 1025): "parent",
		"/v1/instances?name=a&name=b":                       "name",
		"/v1/instances?cursor=from-elsewhere":               "cursor",
		"/v1/instances?state=Running":                       "state",
		"/v1/instances?name=" + strings.Repeat("x", 257):    "name",
		"/v1/healthz?deep=1":                                "deep",
	} {
		t.Run(target[:min(40, len(target))], func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.start(t, "one")
			h.call(t, http.MethodGet, target, "").wantProblem(http.StatusBadRequest, "invalid_request", field)
		})
	}
}

func TestListInstances_filtersAndPages_returnMatchingInstances(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, id := range []string{"a", "b", "c"} {
		h.start(t, id)
	}
	h.Append("b", completed("1"))
	list := func(query string) (ids, cursor string) {
		t.Helper()
		var page struct {
			Items []struct {
				InstanceID string          `json:"instanceId"`
				Output     json.RawMessage `json:"output"`
			} `json:"items"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(h.call(t, http.MethodGet, "/v1/instances"+query, "").want(http.StatusOK).Body.Bytes(),
			&page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if ids += item.InstanceID; item.Output != nil {
				t.Errorf("%s with output", item.InstanceID)
			}
		}
		return ids, page.NextCursor
	}
	for query, want := range map[string]string{
		"": "abc", "?status=Completed": "b", "?status=Pending&name=hello": "ac", "?name=other": "",
		"?limit=1000":                        "abc",
		"?startedAfter=2026-07-01T03:00:00Z": "abc", "?startedAfter=2026-07-01T05:00:01%2B02:00": "",
	} {
		if got, _ := list(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	first, cursor := list("?limit=2")
	rest, end := list("?limit=2&cursor=" + cursor)
	if first != "ab" || rest != "c" || end != "" {
		t.Errorf("pages %s and %s, then %q", first, rest, end)
	}
	h.call(t, http.MethodGet, "/v1/instances?name=hello&cursor="+cursor, "").wantProblem(http.StatusBadRequest,
		"invalid_request", "cursor")
}

func TestListInstances_versionTagAndParent_filterInstances(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, "/v1/orchestrations/hello",
		`{"instanceId":"a","version":"1.0.0","tags":{"k":"v=w","l":"&"}}`).want(http.StatusAccepted)
	h.call(t, http.MethodPost, "/v1/orchestrations/hello",
		`{"instanceId":"b","tags":{"k":"v=w"}}`).want(http.StatusAccepted)
	h.start(t, "c")
	h.SetParent("c", history.Parent{InstanceID: "a/b", ExecutionID: "x", EventID: 3})
	for query, want := range map[string]string{
		"version=1.0.0": "a", "version=2": "", "tag=k=v%3Dw": "a b", "tag=k=v=w&tag=l=%26": "a", "tag=k=v": "",
		"parent=a/b": "c", "parent=a": "",
		"startedBefore=2026-07-01T03:00:00Z": "", "startedBefore=2026-07-01T03:00:01Z": "a b c",
		"parent=a%2Fb&startedAfter=2026-07-01T03:00:00Z&name=hello": "c",
	} {
		var page struct {
			Items []struct {
				InstanceID string `json:"instanceId"`
			} `json:"items"`
		}
		if err := json.Unmarshal(h.call(t, http.MethodGet, "/v1/instances?"+query, "").want(http.StatusOK).Body.Bytes(),
			&page); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, item := range page.Items {
			ids = append(ids, item.InstanceID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestGetHistory_limitAndAfter_returnPages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.start(t, "two")
	h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0", BuildID: "b"},
		completed(`"x"`))
	h.call(t, http.MethodGet, inUse+"/history?after=1",
		"").want(http.StatusOK).wantBody(`{"instanceId":"one","executionId":"x1","items":[` +
		`{"id":2,"kind":"TurnStarted","time":"2026-07-01T03:00:00Z","version":"1.0.0","buildId":"b"},` +
		`{"id":3,"kind":"OrchestrationCompleted","time":"2026-07-01T03:00:01Z","output":"x"}]}`)
	for query, want := range map[string]string{
		"?limit=2": "1,2 next 2", "?limit=2&after=2&execution=x1": "3 next 0", "?after=3": " next 0",
		"?limit=3": "1,2,3 next 0",
	} {
		if got := historyPage(t, h, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	h.call(t, http.MethodGet, inUse+"/history?execution=x2", "").wantProblem(http.StatusNotFound, "execution_not_found",
		"execution")
}

func TestGetHistory_pastExecution_returnsItsEvents(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	h.call(t, http.MethodGet, inUse+"/history?execution=x1&after=1",
		"").want(http.StatusOK).wantBody(`{"instanceId":"one","executionId":"x1","items":[` +
		`{"id":2,"kind":"TurnStarted","time":"2026-07-01T03:00:00Z","version":"1.0.0"},` +
		`{"id":3,"kind":"OrchestrationContinuedAsNew","time":"2026-07-01T03:00:00Z","executionId":"x2"}]}`)
	if got := historyPage(t, h, "?execution=x1&limit=2"); got != "1,2 next 2" {
		t.Errorf("its first page: %s", got)
	}
	if got := historyPage(t, h, ""); got != "1,2 next 0" {
		t.Errorf("the current one: %s", got)
	}
}

func TestListExecutions_limitAndCursor_returnPages(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	const path = inUse + "/executions"
	x1, x2 := `{"executionId":"x1","number":1,"startedAt":"2026-07-01T03:00:00Z"}`,
		`{"executionId":"x2","number":2,"startedAt":"2026-07-01T03:00:00Z"}`
	for query, want := range map[string]string{
		"":                   x2 + `,` + x1 + `]}`,
		"?limit=1000":        x2 + `,` + x1 + `]}`,
		"?limit=1":           x2 + `],"nextCursor":"x2"}`,
		"?limit=1&cursor=x2": x1 + `]}`,
		"?cursor=x1":         `]}`,
	} {
		h.call(t, http.MethodGet, path+query, "").want(http.StatusOK).wantBody(`{"instanceId":"one","items":[` + want)
	}
}

func TestListCancellations_limitAndCursor_returnPages(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	later := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	h.Append("one", history.Event{
		Kind: history.ActivityCancelRequested, Time: later(1), SourceEventID: 2, Reason: "requested", Message: "enough",
		RequestedBy: "client",
	}, history.Event{Kind: history.CancelRequested, Time: later(2), Reason: "requested", RequestedBy: "client"})
	h.SetActivityRecords("x2", provider.ActivityRecord{
		ActivityID: 2, SeenAt: later(3), EndedAt: later(4), CancelOutcome: provider.OutcomeStopped,
	})
	const path = inUse + "/cancellations"
	first := `{"target":"activity","id":2,"name":"charge","reason":"requested","message":"enough","requestedBy":"client",` +
		`"decidedAt":"2026-07-01T03:00:01Z","seenAt":"2026-07-01T03:00:03Z","endedAt":"2026-07-01T03:00:04Z","end":"stopped"}`
	second := `{"target":"instance","id":4,"name":"hello","reason":"requested","requestedBy":"client","decidedAt":"2026-07-01T03:00:02Z"}`
	const at = `"startedAt":"2026-07-01T03:00:00Z",`
	for query, want := range map[string]string{
		"":                  `"x2",` + at + `"items":[` + first + `,` + second + `]}`,
		"?execution=x2":     `"x2",` + at + `"items":[` + first + `,` + second + `]}`,
		"?limit=1":          `"x2",` + at + `"items":[` + first + `],"nextCursor":"1"}`,
		"?limit=1&cursor=1": `"x2",` + at + `"items":[` + second + `]}`,
		"?cursor=7":         `"x2",` + at + `"items":[]}`,
		"?execution=x1":     `"x1",` + at + `"items":[]}`,
	} {
		h.call(t, http.MethodGet, path+query,
			"").want(http.StatusOK).wantBody(`{"instanceId":"one","executionId":` + want)
	}
}

// If an instance continues as new while a call waits for the result, the response has the new execution.
func TestGetResult_continueAsNewWhileWaiting_returnsNewExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.start(t, "one")
		time.AfterFunc(5*time.Second, func() {
			h.Append("one", history.Event{Kind: history.OrchestrationContinuedAsNew, Time: began})
		})
		time.AfterFunc(30*time.Second, func() { h.Append("one", completed("1")) })
		h.call(t, http.MethodGet, inUse+"/result?wait=20s",
			"").want(http.StatusAccepted).wantBody(`{"instanceId":"one","executionId":"x2","status":"Running"}`)
		h.call(t, http.MethodGet, inUse+"/result?wait=20s",
			"").want(http.StatusOK).wantBody(`{"instanceId":"one","executionId":"x2","status":"Completed","output":1}`)
	})
}

func historyPage(t *testing.T, h *hub, query string) string {
	t.Helper()
	var page struct {
		Items []history.Event `json:"items"`
		Next  int64           `json:"next"`
	}
	if err := json.Unmarshal(h.call(t, http.MethodGet, inUse+"/history"+query, "").want(http.StatusOK).Body.Bytes(),
		&page); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range page.Items {
		ids = append(ids, strconv.FormatInt(page.Items[i].ID, 10))
	}
	return fmt.Sprintf("%s next %d", strings.Join(ids, ","), page.Next)
}

// 1,000 events of 200 KiB exceed the limit of a Lambda response.
func TestGetHistory_largeEvents_pagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	large := history.NewInlinePayload([]byte(`"` + strings.Repeat("x", 200<<10-2) + `"`))
	for range 50 {
		h.Append("one", history.Event{Kind: history.SideEffectRecorded, Time: began, Value: large})
	}
	a := h.call(t, http.MethodGet, inUse+"/history", "").want(http.StatusOK)
	if a.Body.Len() > 6<<20 || !strings.Contains(a.Body.String()[a.Body.Len()-20:], `"next":31}`) {
		t.Errorf("%d bytes, ending %s", a.Body.Len(), a.Body.String()[a.Body.Len()-40:])
	}
	if got := historyPage(t, h, "?after=41"); !strings.HasSuffix(got, "50,51 next 0") {
		t.Errorf("the last page: %s", got)
	}
}

func TestRequest_hubFails_isAProblemWithoutInternals(t *testing.T) {
	t.Parallel()
	secret := errors.New("AKIA-secret at 10.0.0.1")
	for name, tt := range map[string]struct {
		err       error
		status    int
		code      string
		retryable bool
	}{
		"throttled": {
			&provider.Error{Op: "DynamoDB.GetItem", Retryable: true, Err: secret}, http.StatusServiceUnavailable,
			"unavailable", true,
		},
		"refused": {
			&provider.Error{Op: "DynamoDB.GetItem", Err: secret}, http.StatusInternalServerError, "internal", false,
		},
		"cancelled": {
			fmt.Errorf("at 10.0.0.1: %w", context.Canceled), http.StatusServiceUnavailable, "unavailable", true,
		},
		"too slow": {
			fmt.Errorf("at 10.0.0.1: %w", context.DeadlineExceeded), http.StatusServiceUnavailable, "unavailable", true,
		},
		"corrupt": {
			fmt.Errorf("h#3: %w: %w", provider.ErrCorrupt, secret), http.StatusInternalServerError, "corrupt_history",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.FailWith(tt.err)
			for target, method := range map[string]string{
				inUse: http.MethodGet, inUse + "/result": http.MethodGet, inUse + "/history": http.MethodGet,
				inUse + "/executions": http.MethodGet, "/v1/instances": http.MethodGet,
				hello: http.MethodPost, inUse + "/events/e": http.MethodPost, inUse + "/terminate": http.MethodPost,
				inUse + "/cancel": http.MethodPost, busy + "/cancel": http.MethodPost,
			} {
				a := h.call(t, method, target, "{}")
				a.wantProblem(tt.status, tt.code, "")
				if strings.Contains(a.Body.String(), "secret") {
					t.Errorf("%s contains %s", target, a.Body)
				}
				if got := a.Header().Get("Retry-After") != ""; got != tt.retryable ||
					strings.Contains(a.Body.String(), `"retryable":true`) != tt.retryable {
					t.Errorf("%s: Retry-After %t, %s", target, got, a.Body)
				}
			}
			if !strings.Contains(h.log.String(), "10.0.0.1") {
				t.Errorf("the cause is not logged: %s", h.log)
			}
		})
	}
}
