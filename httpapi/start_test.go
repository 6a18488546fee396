package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/httpapi"
)

const hello = "/v1/orchestrations/hello"

func TestStart_allFields_areInStatusAndHistory(t *testing.T) {
	t.Parallel()
	h := setup(t)
	a := h.call(t, http.MethodPost, hello,
		`{"instanceId":"one","input":{"a":"<b>"},"version":"1.0.0","tags":{"k":"v"}}`).want(http.StatusAccepted)
	a.wantBody(
		`{"instanceId":"one","links":{"status":"/v1/instances/one","result":"/v1/instances/one/result","history":"/v1/instances/one/history","executions":"/v1/instances/one/executions"}}`,
	)
	if got := a.Header().Get("Location"); got != "/v1/instances/one" {
		t.Errorf("Location %s", got)
	}
	h.call(t, http.MethodGet, "/v1/instances/one?pending=false", "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","executionNumber":1,"orchestration":"hello","version":"1.0.0","status":"Pending",` +
			`"createdAt":"2026-07-01T03:00:00Z","updatedAt":"2026-07-01T03:00:00Z","tags":{"k":"v"},"customStatus":null}`)
	if body := h.call(t, http.MethodGet, "/v1/instances/one/history", "").Body.String(); !strings.Contains(body,
		`"input":{"a":"<b>"}`) {
		t.Errorf("history %s", body)
	}
}

func TestStart_repeatedIdempotencyKey_startsOneInstance(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first := h.call(t, http.MethodPost, hello, `{}`, "Idempotency-Key", "k").want(http.StatusAccepted).Body.String()
	again := h.call(t, http.MethodPost, hello, `{"input":1}`, "Idempotency-Key",
		"k").want(http.StatusAccepted).Body.String()
	other := h.call(t, http.MethodPost, hello, `{}`, "Idempotency-Key", "l").want(http.StatusAccepted).Body.String()
	if first != again || first == other {
		t.Errorf("started %s, %s and %s", first, again, other)
	}
	one := `{"instanceId":"one"}`
	h.call(t, http.MethodPost, hello, one, "Idempotency-Key", "m").want(http.StatusAccepted)
	h.call(t, http.MethodPost, hello, one, "Idempotency-Key", "m").want(http.StatusAccepted)
	h.call(t, http.MethodPost, hello, one, "Idempotency-Key", "n").wantProblem(http.StatusConflict,
		"instance_id_in_use", "instanceId")
	h.call(t, http.MethodPost, hello, `{}`, "Idempotency-Key", "").wantProblem(http.StatusBadRequest, "invalid_request",
		"Idempotency-Key")
	h.call(t, http.MethodPost, hello, `{}`, "Idempotency-Key", "a", "Idempotency-Key",
		"b").wantProblem(http.StatusBadRequest, "invalid_request", "Idempotency-Key")
}

func TestStart_delay_setsTheStartTime(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, hello, `{"instanceId":"one","delay":"1h30m","tags":{"k":"v"}}`).want(http.StatusAccepted)
	h.call(t, http.MethodGet, inUse+"?pending=false", "").want(http.StatusOK).wantBody(
		`{"instanceId":"one","executionId":"x1","executionNumber":1,"orchestration":"hello","version":"","status":"Pending",` +
			`"createdAt":"2026-07-01T03:00:00Z","updatedAt":"2026-07-01T03:00:00Z","startAt":"2026-07-01T04:30:00Z","tags":{"k":"v"},"customStatus":null}`)
}

func TestStart_invalidField_isRejected(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body, field string
	}{
		"no body":              {``, "body"},
		"no JSON":              {`hello`, "body"},
		"an array":             {`[]`, "body"},
		"half an object":       {`{"input":`, "body"},
		"an unclosed object":   {`{"input":1`, "body"},
		"a second value":       {`{} {}`, "body"},
		"garbage at the end":   {`{}x`, "body"},
		"not UTF-8":            {"{\"input\":\"\xff\"}", "body"},
		"no key":               {`{1:2}`, "body"},
		"unknown field":        {`{"inputs":1}`, "inputs"},
		"field of a later API": {`{"retention":"1s"}`, "retention"},
		"field in wrong case":  {`{"InstanceID":"one"}`, "InstanceID"},
		"field twice":          {`{"input":1,"input":2}`, "input"},
		"id that is a number":  {`{"instanceId":1}`, "instanceId"},
		"empty id":             {`{"instanceId":""}`, "instanceId"},
		"id with NUL":          {`{"instanceId":"a\u0000"}`, "instanceId"},
		"long id":              {`{"instanceId":"` + strings.Repeat("x", 1025) + `"}`, "instanceId"},
		"long version":         {`{"version":"` + strings.Repeat("1", 65) + `"}`, "version"},
		"tags as a list":       {`{"tags":["a"]}`, "tags"},
		"tag that is a number": {`{"tags":{"a":1}}`, "tags"},
		"long tag":             {`{"tags":{"` + strings.Repeat("k", 65) + `":""}}`, "tags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.call(t, http.MethodPost, hello, tt.body).wantProblem(http.StatusBadRequest, "invalid_request", tt.field)
			h.call(t, http.MethodGet, "/v1/instances", "").wantBody(`{"items":[]}`)
		})
	}
}

func TestStart_unknownOrchestration_isNotFound(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, "/v1/orchestrations/missing", `{}`).wantProblem(http.StatusNotFound,
		"unknown_orchestration", "orchestration")
	h.call(t, http.MethodPost, hello, `{"version":"9"}`).wantProblem(http.StatusNotFound, "unknown_orchestration",
		"orchestration")
	long := "/v1/orchestrations/" + strings.Repeat("x", 257)
	h.call(t, http.MethodPost, long, `{}`).wantProblem(http.StatusBadRequest, "invalid_request", "orchestration")
	h.call(t, http.MethodPost, "/v1/orchestrations/a%2Fb", `{}`).wantProblem(http.StatusBadRequest, "invalid_request",
		"orchestration")
	h.call(t, http.MethodPost, "/v1/orchestrations/~"+base64.RawURLEncoding.EncodeToString([]byte("a/b")),
		`{}`).want(http.StatusAccepted)
}

func TestStart_idInUse_isAConflict(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.call(t, http.MethodPost, hello, `{"instanceId":"one"}`).wantProblem(http.StatusConflict, "instance_id_in_use",
		"instanceId")
	h.Append("one", completed("1"))
	h.call(t, http.MethodPost, hello, `{"instanceId":"one"}`).wantProblem(http.StatusConflict, "instance_id_in_use",
		"instanceId")
}

// The problem describes the existing instance, so that an operator can find it.
func TestStart_idInUse_namesTheInstanceThatHasIt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	h.Append("one", completed("1"))
	a := h.call(t, http.MethodPost, hello, `{"instanceId":"one"}`).want(http.StatusConflict)
	want := `"existing":{"instanceId":"one","orchestration":"hello","status":"Completed",` +
		`"createdAt":"2026-07-01T03:00:00Z"}`
	if body := a.Body.String(); !strings.Contains(body, want) ||
		!strings.Contains(body, `orchestration \"hello\", Completed, started at 2026-07-01T03:00:00Z`) {
		t.Errorf("%s, want %s", body, want)
	}
}

func TestStart_inputOverTheLimit_isRejected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	input := func(bytes int) string { return `{"input":"` + strings.Repeat("x", bytes-2) + `"}` }
	h.call(t, http.MethodPost, hello, input(200<<10)).want(http.StatusAccepted)
	h.call(t, http.MethodPost, hello, input(200<<10+1)).wantProblem(http.StatusRequestEntityTooLarge,
		"payload_too_large", "input")
	h.call(t, http.MethodPost, hello, input(300<<10)).wantProblem(http.StatusRequestEntityTooLarge, "payload_too_large",
		"body")
}

func TestStart_unusualInstanceID_isFoundByItsLinks(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"plain-1.2_3", ".", "..", "a/b", "a//b", "/", "#", "a?b=c", "%2F", "~tilde", "a b", "ünï ©ode 🂡", "+",
		`"`, "a;b", strings.Repeat("x", 1024), strings.Repeat("ü", 512),
	} {
		t.Run(id[:min(8, len(id))], func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			body, err := json.Marshal(map[string]string{"instanceId": id})
			if err != nil {
				t.Fatal(err)
			}
			a := h.call(t, http.MethodPost, hello, string(body)).want(http.StatusAccepted)
			var started httpapi.StartResponse
			if err := json.Unmarshal(a.Body.Bytes(), &started); err != nil {
				t.Fatal(err)
			}
			for link, status := range map[string]int{
				a.Header().Get("Location"): http.StatusOK, started.Links.Result: http.StatusAccepted,
				started.Links.History: http.StatusOK, started.Links.Executions: http.StatusOK,
			} {
				var found struct {
					InstanceID string `json:"instanceId"`
				}
				if err := json.Unmarshal(h.call(t, http.MethodGet, link, "").want(status).Body.Bytes(),
					&found); err != nil || found.InstanceID != id {
					t.Errorf("%s finds %q, %v", link, found.InstanceID, err)
				}
			}
		})
	}
}
