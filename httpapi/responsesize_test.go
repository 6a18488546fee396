package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/provider"
)

// lambdaLimit is the largest response of a Lambda function, in bytes.
const lambdaLimit = 6 << 20

// inLambda returns the size of a response with the body in bytes, as the Lambda runtime sends the response.
func inLambda(t *testing.T, body []byte) int {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{
		"statusCode": 200, "headers": map[string]string{"Content-Type": "application/json"}, "body": string(body),
	}); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

func TestResponseSize_anyBody_isItsSizeInLambda(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SliceOfN(rapid.SampledFrom([]byte("a\"\\<>&\n\t\x00\x1f\x7f\xff\xe2\x80\xa8\xa9ü€")), 0,
			60).Draw(rt, "body")
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(string(body)); err != nil {
			rt.Fatal(err)
		}
		if got := response.Size(body); got != want.Len()-1 {
			rt.Fatalf("%q takes %d bytes, reckoned are %d", body, want.Len()-1, got)
		}
	})
}

// quotes returns a JSON string of n bytes that consists of quotes, the worst case for the size in Lambda.
func quotes(n int) []byte { return []byte(`"` + strings.Repeat(`\"`, (n-2)/2) + `"`) }

func TestGetHistory_largeHistory_isPagedWithinLambdaLimit(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	const events = 45
	for range events { // 9 MB, or 18 MB in Lambda's JSON
		h.Append("one", history.Event{
			Kind: history.ActivityCompleted, Time: began, SourceEventID: 2,
			Result: history.NewInlinePayload(quotes(200 << 10)),
		})
	}
	seen, pages, after := 0, 0, int64(0)
	for more := true; more; pages++ {
		a := h.call(t, http.MethodGet, fmt.Sprintf("%s/history?after=%d", inUse, after), "").want(http.StatusOK)
		if n := inLambda(t, a.Body.Bytes()); n > lambdaLimit {
			t.Fatalf("page %d has %d bytes", pages, n)
		}
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  int64             `json:"next"`
		}
		if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		seen += len(page.Items)
		after, more = page.Next, page.Next > 0
	}
	t.Logf("%d events in %d pages", seen, pages)
	if seen != events+2 || pages < 3 || pages > 4 {
		t.Errorf("%d events in %d pages, want %d in three or four", seen, pages, events+2)
	}
}

// The parked inputs of an instance are one event, which may have tens of megabytes.
func TestGetHistory_eventOverLambdaLimit_isAProblemWithTheFix(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	parked := history.Event{
		Kind: history.InputsParked, Time: began, BuildID: "b", Error: &history.Failure{Type: "t", Message: "m"},
	}
	for n := range 40 {
		parked.Inputs = append(parked.Inputs, history.Event{
			Kind: history.ExternalEventRaised, Name: "e", EventID: fmt.Sprint(n),
			Data: history.NewInlinePayload(quotes(100 << 10)),
		})
	}
	h.Append("one", parked, history.Event{
		Kind: history.CustomStatusSet, Time: began, CustomStatus: history.NewInlinePayload([]byte("1")),
	})
	h.call(t, http.MethodGet, inUse+"/history", "").want(http.StatusOK) // the events before the large event
	a := h.call(t, http.MethodGet, inUse+"/history?after=2", "")
	a.wantProblem(http.StatusUnprocessableEntity, "answer_too_large", "after")
	if got := a.Body.String(); !strings.Contains(got, "use perdure history") || !strings.Contains(got, `after=3"`) {
		t.Errorf("the detail has no alternative: %s", got)
	}
	if got := h.call(t, http.MethodGet, inUse+"/history?after=3",
		"").want(http.StatusOK).Body.String(); !strings.Contains(got, "CustomStatusSet") {
		t.Errorf("behind it: %s", got)
	}
	// An event just below the limit is returned.
	h.Append("one", history.Event{
		Kind: history.ActivityCompleted, Time: began, SourceEventID: 2,
		Result: history.NewInlinePayload(quotes(3_100_000)),
	})
	if n := inLambda(t,
		h.call(t, http.MethodGet, inUse+"/history?after=4", "").want(http.StatusOK).Body.Bytes()); n > lambdaLimit ||
		n < lambdaLimit-128<<10 {
		t.Errorf("the response has %d bytes", n)
	}
}

// Cancellations have messages and errors, so a thousand of them may exceed the limit of a Lambda response.
func TestListCancellations_largeList_isPagedWithinLambdaLimit(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	const n = 1000
	printed := strings.Repeat(`"`, 2000)
	for id := range int64(n) {
		h.Append("one", history.Event{
			Kind: history.SubOrchestrationScheduled, Time: began, Name: "child",
			InstanceID: strings.Repeat(`"`, 1000) + fmt.Sprint(id),
		})
	}
	for id := range int64(n) {
		h.Append("one", history.Event{
			Kind: history.SubOrchestrationCancelRequested, Time: began, SourceEventID: id + 3, Reason: "requested",
			Message: printed, RequestedBy: "body",
		})
	}
	seen, cursor := 0, ""
	for more := true; more; more = cursor != "" {
		a := h.call(t, http.MethodGet, inUse+"/cancellations?limit=1000&cursor="+cursor, "").want(http.StatusOK)
		if n := inLambda(t, a.Body.Bytes()); n > lambdaLimit {
			t.Fatalf("a page has %d bytes", n)
		}
		var page httpapi.CancellationPage
		if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		seen, cursor = seen+len(page.Items), page.NextCursor
	}
	if seen != n {
		t.Errorf("%d cancellations, want %d", seen, n)
	}
}

func TestGetInstance_manyPendingTasks_fitLambdaLimit(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for id := range 1000 {
		h.Append("one", history.Event{
			Kind: history.SubOrchestrationScheduled, Time: began, Name: strings.Repeat(`"`, 2000),
			InstanceID: strings.Repeat(`"`, 1000) + fmt.Sprint(id),
		})
	}
	a := h.call(t, http.MethodGet, inUse+"?limit=1000", "").want(http.StatusOK)
	var in httpapi.Instance
	if err := json.Unmarshal(a.Body.Bytes(), &in); err != nil {
		t.Fatal(err)
	}
	if n := inLambda(t, a.Body.Bytes()); n > lambdaLimit || in.Pending.Total != 1001 || len(in.Pending.Items) < 400 ||
		len(in.Pending.Items) == 1000 {
		t.Errorf("%d of %d, in %d bytes", len(in.Pending.Items), in.Pending.Total, n)
	}
}

func TestListJobs_largeJobs_fitLambdaLimit(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for n := range 400 {
		job := provider.Job{
			ID: fmt.Sprintf("j%04d", n), Operation: provider.OperationCancel, State: provider.JobCompleted,
			CreatedAt: began, UpdatedAt: began,
		}
		for range 10 {
			job.Errors = append(job.Errors, strings.Repeat(`"`, 1000))
		}
		if err := h.PutJob(t.Context(), &job); err != nil {
			t.Fatal(err)
		}
	}
	a := h.call(t, http.MethodGet, jobs, "").want(http.StatusOK)
	var all httpapi.Jobs
	if err := json.Unmarshal(a.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if n := inLambda(t, a.Body.Bytes()); n > lambdaLimit || !all.More || len(all.Items) < 100 {
		t.Errorf("%d jobs, more: %v, in %d bytes", len(all.Items), all.More, n)
	}
}

// A problem shortens a long value of the request at a character boundary.
func TestProblem_longUnknownName_isShortened(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		x(100_000), strings.Repeat("ü", 50_000), "x" + strings.Repeat("€", 30_000), strings.Repeat(`"`, 100_000), x(65),
	} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		get, post := http.MethodGet, http.MethodPost
		for what, r := range map[string]request{
			"field":           {post, hello, `{` + string(quoted) + `:1}`, nil, nil},
			"field of filter": {post, jobs, `{"operation":"purge","filter":{` + string(quoted) + `:1}}`, nil, nil},
			"parameter":       {get, inUse + "?" + url.QueryEscape(name) + "=1", "", nil, nil},
			"status":          {get, "/v1/instances?status=" + url.QueryEscape(name), "", nil, nil},
			"operation":       {post, jobs, `{"operation":` + string(quoted) + `}`, nil, nil},
			"query":           {get, inUse + "?a=%zz" + url.QueryEscape(name), "", nil, nil},
			"status to purge": {
				post, jobs, `{"operation":"purge","filter":{"statuses":[` + string(quoted) + `]}}`, nil, nil,
			},
		} {
			a := r.of(t, newRunningHub(t)).want(http.StatusBadRequest)
			var p struct {
				Field  string `json:"field"`
				Detail string `json:"detail"`
			}
			if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if len(p.Field) > 64 || len(p.Detail) > 500 || strings.Contains(a.Body.String(), string(utf8.RuneError)) {
				t.Errorf("%s of %d bytes: field of %d bytes: %.600s", what, len(name), len(p.Field), a.Body)
			}
		}
	}
}

// A gateway may treat an encoded slash as the end of a path segment, and drop the text after a question mark. The API
// rejects a path with such an ID, and returns the base64url form of the ID, which all gateways pass unchanged.
func TestPath_idThatGatewaysMisread_isRejectedWithItsEncoding(t *testing.T) {
	t.Parallel()
	get, post := http.MethodGet, http.MethodPost
	for encoded, id := range map[string]string{
		"a%2Fb": "a/b", "a%2fb": "a/b", "%2F": "/", "a%3Fb": "a?b", "a%23b": "a#b", "100%25": "100%", "%2e%2e": "..",
		"%2E": ".", "a%2F%C3%BC": "a/ü", "%252F": "%2F",
	} {
		form := "~" + base64.RawURLEncoding.EncodeToString([]byte(id))
		for _, r := range []struct{ method, before, behind, field string }{
			{get, "/v1/instances/", "", "instanceId"},
			{http.MethodDelete, "/v1/instances/", "", "instanceId"},
			{get, "/v1/instances/", "/history", "instanceId"},
			{get, "/v1/instances/", "/result", "instanceId"},
			{get, "/v1/instances/", "/executions", "instanceId"},
			{get, "/v1/instances/", "/cancellations", "instanceId"},
			{post, "/v1/instances/", "/cancel", "instanceId"},
			{post, "/v1/instances/", "/terminate", "instanceId"},
			{post, "/v1/instances/", "/events/e", "instanceId"},
			{post, "/v1/instances/", "/activities/2/cancel", "instanceId"},
			{post, inUse + "/events/", "", "event"},
			{post, "/v1/orchestrations/", "", "orchestration"},
			{get, "/v1/jobs/", "", "jobId"},
			{post, "/v1/jobs/", "/cancel", "jobId"},
		} {
			h := newRunningHub(t)
			a := h.call(t, r.method, r.before+encoded+r.behind, "")
			if a.Code != http.StatusBadRequest {
				t.Errorf("%s %s%s%s returns %d", r.method, r.before, encoded, r.behind, a.Code)
				continue
			}
			if id == "/" {
				r.field = "path"
			}
			a.wantProblem(http.StatusBadRequest, "invalid_request", r.field)
			if !strings.Contains(a.Body.String(), form) {
				t.Errorf("%s %s%s%s: the detail lacks %s: %s", r.method, r.before, encoded, r.behind, form, a.Body)
			}
			if sent := h.Sent(); len(sent) > 0 {
				t.Errorf("sent %v", sent)
			}
		}
	}
	setup(t).call(t, get, "/v1/instances/a%20b", "").wantProblem(http.StatusNotFound, "instance_not_found",
		"instanceId")
	if a := setup(t).call(t, get, "/v1/instances/a/b", ""); !strings.Contains(a.Body.String(), "base64url") {
		t.Errorf("the detail lacks the encoded form of an ID with a slash: %s", a.Body)
	}
}

// hostileCursors returns cursors that the API never returns.
func hostileCursors() []string {
	text := base64.RawURLEncoding.EncodeToString
	cursors := []string{
		"\x00", "a\x00b", "\n", "\r\n", "eyJ9\n", "\x1f", "\x7f", "\u0085", "\xff", "~", " ", "+1", "-1", "0", "01",
		"1.0", "1e3", "9223372036854775808", "x1\x00", "null", "{}",
		x(17 << 10), strings.Repeat("9", 400),
	}
	for _, doc := range []string{
		"null", "{}", "[]", "1", `"x"`, `{"b":"\u0000"}`, `{"b":"x\u0000","q":""}`, `{"b":"\n","q":"x"}`, `{"b":1}`,
		`{"b":{},"q":[]}`, "\x00", "\xff\xfe", `{"b":"\ud800"}`, `{"b":"x"}x`,
	} {
		cursors = append(cursors, text([]byte(doc)), text([]byte(doc))+"\n", text([]byte(doc))+"=")
	}
	return cursors
}

func TestCursor_invalidValue_isABadRequest(t *testing.T) {
	t.Parallel()
	h := newRunningHub(t)
	for _, c := range hostileCursors() {
		for _, target := range []string{
			"/v1/instances?", "/v1/instances?status=Blocked&", inUse + "/executions?", inUse + "/cancellations?",
		} {
			a := h.call(t, http.MethodGet, target+"cursor="+url.QueryEscape(c), "")
			if a.Code != http.StatusBadRequest {
				t.Errorf("%scursor=%.80q returns %d: %s", target, c, a.Code, a.Body)
				continue
			}
			a.wantProblem(http.StatusBadRequest, "invalid_request", "cursor")
		}
		h.call(t, http.MethodGet, inUse+"/history?after="+url.QueryEscape(x(1)+c),
			"").wantProblem(http.StatusBadRequest, "invalid_request", "after")
	}
}
