package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apicheck"
	"github.com/perdure/perdure/provider"
)

const (
	tooLarge = 201 << 10
	raise    = inUse + "/events/e"
	end      = inUse + "/terminate"
	cancel   = inUse + "/cancel"
	pause    = inUse + "/pause"
	resume   = inUse + "/resume"
	busy     = inUse + "/activities/2"
	over     = "/v1/instances/over"
	jobs     = "/v1/jobs"
	aJob     = jobs + "/job"
)

// request is a call of the API on the hub that newRunningHub returns.
type request struct {
	method, target, body string
	header               []string
	fail                 error // the error of the hub
}

func newRunningHub(t *testing.T) *hub {
	t.Helper()
	h := setup(t)
	h.start(t, "one")
	h.SetParent("one", history.Parent{InstanceID: "its parent", ExecutionID: "p1", EventID: 3})
	h.Append("one", history.Event{Kind: history.TurnStarted, Time: began, Version: "1.0.0"}, history.Event{
		Kind: history.OrchestrationContinuedAsNew, Time: began,
	},
		history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"})
	h.start(t, "over")
	h.Append("over", history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"},
		failed("no stock"))
	job := provider.Job{
		ID: "job", Operation: provider.OperationPurge, State: provider.JobRunning, CreatedAt: began, UpdatedAt: began,
	}
	if err := h.PutJob(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	return h
}

func (r request) of(t *testing.T, h *hub) callResponse {
	t.Helper()
	h.FailWith(r.fail)
	defer h.FailWith(nil)
	return h.call(t, r.method, r.target, r.body, r.header...)
}

// Each operation returns every response that the document describes, and each problem code occurs. The method call
// compares every response with the document.
func TestOpenAPI_everyDescribedResponse_isReturned(t *testing.T) {
	t.Parallel()
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	down := &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: errors.New("throttled")}
	refused := &provider.Error{Op: "DynamoDB.Query", Err: errors.New("denied")}
	large := `"` + strings.Repeat("x", tooLarge) + `"`
	text := []string{"Content-Type", "text/plain"}
	requests := []request{
		{get, "/v1/healthz", "", nil, nil},
		{get, "/v1/healthz?deep=1", "", nil, nil},
		{get, "/v1/openapi.json", "", nil, nil},
		{get, "/v1/openapi.json?v=1", "", nil, nil},
		{get, "/v1/nowhere", "", nil, nil},
		{http.MethodDelete, "/v1/healthz", "", nil, nil},
		{remove, over, "", nil, nil},
		{remove, inUse, "", nil, nil},
		{remove, inUse + "?force=perhaps", "", nil, nil},
		{remove, "/v1/instances/missing", "", nil, nil},
		{remove, inUse, "", nil, down},
		{remove, inUse, "", nil, refused},
		{post, hello, `{"delay":"90s","tags":{"k":"v"}}`, nil, nil},
		{post, hello, `{`, nil, nil},
		{post, "/v1/orchestrations/missing", `{}`, nil, nil},
		{post, hello, `{"instanceId":"one"}`, nil, nil},
		{post, hello, `{"input":` + large + `}`, nil, nil},
		{post, hello, `{}`, text, nil},
		{get, "/v1/instances?limit=1", "", nil, nil},
		{get, "/v1/instances?limit=0", "", nil, nil},
		{get, inUse, "", nil, nil},
		{get, inUse + "?verbose=1", "", nil, nil},
		{get, over, "", nil, nil},
		{get, inUse, "", nil, fmt.Errorf("h#3: %w", provider.ErrCorrupt)},
		{get, over + "/result", "", nil, nil},
		{get, inUse + "/result", "", nil, nil},
		{get, inUse + "/result?wait=x", "", nil, nil},
		{get, inUse + "/executions?limit=1", "", nil, nil},
		{get, inUse + "/executions?cursor=x", "", nil, nil},
		{get, inUse + "/history?execution=x1&limit=1", "", nil, nil},
		{get, inUse + "/history?after=x", "", nil, nil},
		{get, inUse + "/history?execution=nowhere", "", nil, nil},
		{get, inUse + "/cancellations?execution=x1&limit=1", "", nil, nil},
		{get, inUse + "/cancellations?cursor=x", "", nil, nil},
		{get, inUse + "/cancellations?execution=nowhere", "", nil, nil},
		{post, raise, "1", nil, nil},
		{post, raise, "{", nil, nil},
		{post, over + "/events/e", "1", nil, nil},
		{post, raise, large, nil, nil},
		{post, raise, "1", text, nil},
		{post, end, `{"message":"enough"}`, nil, nil},
		{post, end, `{"reason":"enough"}`, nil, nil},
		{post, over + "/terminate", "", nil, nil},
		{post, end, strings.Repeat(" ", 300<<10), nil, nil},
		{post, end, `{}`, text, nil},
		{post, cancel, `{"message":"enough"}`, nil, nil},
		{post, cancel, `{"reason":"enough"}`, nil, nil},
		{post, over + "/cancel", "", nil, nil},
		{post, cancel, strings.Repeat(" ", 300<<10), nil, nil},
		{post, cancel, `{}`, text, nil},
		{post, busy + "/cancel", `{"message":"enough"}`, nil, nil},
		{post, busy + "/cancel", `{"reason":"enough"}`, nil, nil},
		{post, inUse + "/activities/3/cancel", "", nil, nil},
		{post, over + "/activities/2/cancel", "", nil, nil},
		{post, busy + "/cancel", strings.Repeat(" ", 300<<10), nil, nil},
		{post, busy + "/cancel", `{}`, text, nil},
		{post, over + "/restart", "", nil, nil},
		{post, over + "/restart", `{"delay":"soon"}`, nil, nil},
		{post, over + "/restart", strings.Repeat(" ", 300<<10), nil, nil},
		{post, over + "/restart", `{}`, text, nil},
		{post, inUse + "/restart", "", nil, nil},
		{post, jobs, `{"operation":"purge","all":true}`, nil, nil},
		{post, jobs, `{"operation":"purge","all":true,"dryRun":true}`, nil, nil},
		{post, jobs, `{"operation":"purge"}`, nil, nil},
		{post, jobs, `{"message":` + strings.Repeat(" ", 300<<10) + `""}`, nil, nil},
		{post, jobs, `{}`, text, nil},
		{post, jobs, `{"operation":"purge","all":true}`, nil, down},
		{post, jobs, `{"operation":"purge","all":true}`, nil, refused},
	}
	for _, of := range []string{pause, resume} {
		requests = append(requests, request{post, of, `{"message":"enough"}`, nil, nil}, request{
			post, of, `{"reason":"enough"}`, nil, nil,
		},
			request{post, strings.Replace(of, inUse, over, 1), "", nil, nil},
			request{post, of, strings.Repeat(" ", 300<<10), nil, nil}, request{post, of, `{}`, text, nil})
	}
	lease := `{"visibilityTimeout":60,"leases":` + leases(1) + `}`
	requests = append(requests, request{post, renew, lease, nil, nil}, request{post, renew, `{}`, nil, nil}, request{
		post, renew, `{"leases":` + strings.Repeat(" ", 300<<10) + `[]}`, nil, nil,
	},
		request{post, renew, lease, text, nil}, request{post, renew, lease, nil, down}, request{
			post, renew, lease, nil, refused,
		})
	for target, method := range map[string]string{jobs: get, aJob: get, aJob + "/cancel": post, "/v1/queues": get} {
		requests = append(requests, request{method, target, "", nil, nil}, request{method, target, "", nil, down},
			request{method, target, "", nil, refused}, request{method, target + "?a=1", "", nil, nil})
	}
	requests = append(requests, request{get, jobs + "/missing", "", nil, nil}, request{
		post, jobs + "/missing/cancel", "", nil, nil,
	})
	for _, target := range []string{
		"/v1/instances", inUse, inUse + "/result", inUse + "/history", inUse + "/executions", inUse + "/cancellations",
	} {
		requests = append(requests, request{get, strings.Replace(target, "one", "missing", 1), "", nil, nil},
			request{get, target, "", nil, down}, request{get, target, "", nil, refused})
	}
	for target, body := range map[string]string{
		hello: "{}", raise: "1", end: "", cancel: "", pause: "", resume: "", busy + "/cancel": "",
		inUse + "/restart": "",
	} {
		requests = append(requests, request{post, strings.Replace(target, "one", "missing", 1), body, nil, nil},
			request{post, target, body, nil, down}, request{post, target, body, nil, refused})
	}
	responses, codes := map[string]bool{}, map[string]bool{}
	see := func(a callResponse) {
		if op, ok := openAPI().Operation(a.checked()); ok {
			key, _ := op.Describes(a.Code)
			responses[op.OperationID+" "+key] = true
		}
		var problem struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(a.Body.Bytes(), &problem); err == nil && problem.Code != "" {
			codes[problem.Code] = true
		}
	}
	for _, r := range requests {
		see(r.of(t, newRunningHub(t)))
	}
	h := newRunningHub(t)
	h.Append("one", history.Event{
		Kind: history.SideEffectRecorded, Time: began,
		Value: history.NewInlinePayload([]byte(`"` + strings.Repeat("x", 6<<20) + `"`)),
	})
	see(h.call(t, get, inUse+"/history?after=2", "").want(http.StatusUnprocessableEntity))
	for _, a := range annotateResponses(t, down, refused, provider.UnsupportedError{
		Capability: provider.CapabilityAnnotations,
	}) {
		see(a)
	}
	for _, a := range streamResponses(t, down, refused) {
		see(a)
	}
	for _, a := range putResponses(t, large, down, refused) {
		see(a)
	}
	for _, a := range deadLetterResponses(t, down, refused) {
		see(a)
	}
	for _, a := range queryResponses(t, large, down, refused) {
		see(a)
	}
	for _, a := range updateResponses(t, large, down, refused) {
		see(a)
	}
	for _, a := range entityResponses(t, large, down, refused) {
		see(a)
	}
	for _, a := range tokenResponses(t, large, down, refused) {
		see(a)
	}
	for _, a := range scheduleResponses(t, down, refused) {
		see(a)
	}
	wantSeen(t, responses, codes)
}

// deadLetterResponses returns the responses of each route of dead letters, with success and with each failure.
func deadLetterResponses(t *testing.T, failures ...error) (all []callResponse) {
	t.Helper()
	const allInstances = `{"all":true}`
	h := withLetters(t)
	h.Bury("default", "corrupt: for now", "{}")
	one := h.Bury(provider.QueueInbox, "later: field", strings.Repeat("\u0001", 1<<20))
	other := h.Bury(provider.QueueInbox, "poison: it dies", "{}")
	reads := []string{"/v1/dead-letters", deadInbox, deadInbox + "/" + other}
	orders := []string{deadDefault + "/redrive", deadDefault + "/drop"}
	for _, failure := range append(failures, nil) {
		h.FailLetters(failure)
		for _, target := range reads {
			all = append(all, h.call(t, http.MethodGet, target, ""), h.call(t, http.MethodGet, target+"?a=1", ""))
		}
		for _, target := range orders {
			all = append(all, h.call(t, http.MethodPost, target, allInstances))
		}
	}
	all = append(all, h.call(t, http.MethodGet, deadInbox+"/"+one, ""),
		h.call(t, http.MethodGet, deadInbox+"/missing", ""))
	for _, target := range orders {
		all = append(all, h.call(t, http.MethodPost, target, "{}"),
			h.call(t, http.MethodPost, target, allInstances, "Content-Type", "text/plain"),
			h.call(t, http.MethodPost, target, strings.Repeat(" ", 300<<10)))
	}

	without := setup(t)
	for _, target := range reads {
		all = append(all, without.call(t, http.MethodGet, target, ""))
	}
	for _, target := range orders {
		all = append(all, without.call(t, http.MethodPost, target, allInstances))
	}
	return all
}

func wantSeen(t *testing.T, responses, codes map[string]bool) {
	t.Helper()
	for _, path := range openAPI().Paths {
		for _, op := range path {
			for _, key := range slices.Sorted(maps.Keys(op.Responses)) {
				if !responses[op.OperationID+" "+key] && !slices.Contains(statusesBeforeAPI, key) {
					t.Errorf("%s: the described status %s does not occur", op.OperationID, key)
				}
			}
		}
	}
	for _, code := range openAPI().Components.Schemas["Problem"].Properties["code"].Enum {
		if !codes[code.(string)] && !slices.Contains(codesBeforeAPI, code.(string)) {
			t.Errorf("the described code %s does not occur", code)
		}
	}
}

func TestStart_everyDescribedField_isAccepted(t *testing.T) {
	t.Parallel()
	const body = `{"instanceId":"new","input":[1],"version":"1.0.0","delay":"1h30m","tags":{"team":"a"},"ifExists":"ignore"}`
	v, err := apicheck.Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	start := &apicheck.Schema{Ref: "#/components/schemas/Start"}
	for _, wrong := range openAPI().Validate(start, v, "") {
		t.Errorf("%s: %s", wrong, body)
	}
	for field := range openAPI().Components.Schemas["Start"].Properties {
		if _, ok := v.(map[string]any)[field]; !ok {
			t.Errorf("the described operation %s is not tested", field)
		}
	}
	setup(t).call(t, http.MethodPost, hello, body).want(http.StatusAccepted)
}

func TestValidate_responseOutsideSchema_isReported(t *testing.T) {
	t.Parallel()
	for body, wrong := range map[string]string{
		`{"items":[{"executionId":"x","number":1,"startedAt":"2026-07-01T03:00:00Z"}]}`:                        ".instanceId is missing",
		`{"instanceId":"i","items":[{"executionId":"x","number":0,"startedAt":"2026-07-01T03:00:00Z"}]}`:       ".items[0].number is 0",
		`{"instanceId":"i","items":[{"executionId":"x","number":1.5,"startedAt":"2026-07-01T03:00:00Z"}]}`:     ".items[0].number is of type number",
		`{"instanceId":"i","items":[{"executionId":"x","number":1,"startedAt":"today"}]}`:                      ".items[0].startedAt is not a time",
		`{"instanceId":"i","items":[{"executionId":"x","number":1,"startedAt":"2026-07-01T03:00:00Z","a":1}]}`: ".items[0].a is not described",
		`{"instanceId":"i","items":null}`:                 ".items is of type null",
		`{"instanceId":"i","items":[],"nextCursor":true}`: ".nextCursor is of type boolean",
		`{"instanceId":"i","items":[]}`:                   "",
	} {
		v, err := apicheck.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(openAPI().Validate(&apicheck.Schema{Ref: "#/components/schemas/Executions"}, v, ""), "; ")
		if wrong == "" && found != "" || !strings.HasPrefix(found, wrong) {
			t.Errorf("%s: %q, want %q", body, found, wrong)
		}
	}
}
