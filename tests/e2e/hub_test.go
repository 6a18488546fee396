package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
)

// request calls the API through API Gateway and decodes the response.
func request(t *testing.T, method, path, body string) (status int, header http.Header, callResponse map[string]any) {
	t.Helper()
	status, header, b := call(t, method, path, body)
	if err := json.Unmarshal(b, &callResponse); err != nil {
		t.Fatalf("%s %s: HTTP %d: %s", method, path, status, b)
	}
	return status, header, callResponse
}

// call calls the API through API Gateway. The response may have no body.
func call(t *testing.T, method, path, body string) (status int, header http.Header, callResponse []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, hub.api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if callResponse, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, callResponse
}

func TestAPI_start_returnsResult(t *testing.T) {
	status, header, started := request(t, "POST", "/orchestrations/hello", `{"instanceId":"hello/ä 1","input":"world"}`)
	if status != http.StatusAccepted || started["instanceId"] != "hello/ä 1" {
		t.Fatalf("start: got HTTP %d %v", status, started)
	}
	location := strings.TrimPrefix(header.Get("Location"), "/v1")
	status, _, result := request(t, "GET", location+"/result?wait=20s", "")
	if status != http.StatusOK || result["status"] != "Completed" || result["output"] != "hello, world" {
		t.Errorf("result: got HTTP %d %v", status, result)
	}
	status, _, again := request(t, "POST", "/orchestrations/hello", `{"instanceId":"hello/ä 1","input":"world"}`)
	if status != http.StatusConflict || again["code"] != "instance_id_in_use" {
		t.Errorf("second start: got HTTP %d %v", status, again)
	}
}

func TestAPI_failedInstance_returnsErrorType(t *testing.T) {
	_, _, started := request(t, "POST", "/orchestrations/fails", `{"input":{}}`)
	instance, _ := started["instanceId"].(string)
	status, _, result := request(t, "GET", "/instances/"+instance+"/result?wait=20s", "")
	failure, _ := json.Marshal(result["failure"])
	if status != http.StatusOK || result["status"] != "Failed" ||
		!bytes.Contains(failure, []byte("quantity -1: must be positive")) {
		t.Errorf("got HTTP %d %v", status, result)
	}
}

// Invalid input causes a 4xx error with a code, even through the gateway.
func TestAPI_invalidInput_isRejected(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"not JSON":              {"POST", "/orchestrations/hello", `{"input":`, 400, "invalid_request"},
		"unknown field":         {"POST", "/orchestrations/hello", `{"inptu":1}`, 400, "invalid_request"},
		"unknown orchestration": {"POST", "/orchestrations/helo", `{"input":"x"}`, 404, "unknown_orchestration"},
		"unknown instance":      {"GET", "/instances/missing", "", 404, "instance_not_found"},
		"too large": {
			"POST", "/orchestrations/hello", `{"input":"` + strings.Repeat("x", 300<<10) + `"}`, 413,
			"payload_too_large",
		},
		"huge page":      {"GET", "/instances?limit=100000", "", 400, "invalid_request"},
		"foreign cursor": {"GET", "/instances?cursor=bm90IG91cnM", "", 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, problem := request(t, c.method, c.path, c.body)
			if status != c.status || problem["code"] != c.code ||
				header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got HTTP %d %s %v", status, header.Get("Content-Type"), problem)
			}
		})
	}
}

// An encoded slash is a 404 error, because the gateway decodes the slash. The error explains how to encode the ID.
func TestAPI_idWithASlash_isRejectedWithAdvice(t *testing.T) {
	for _, path := range []string{"/instances/a%2Fb", "/instances/a%2Fb/history"} {
		status, _, problem := request(t, "GET", path, "")
		if detail, _ := problem["detail"].(string); status != http.StatusNotFound || problem["code"] != "no_such_route" ||
			!strings.Contains(detail, "base64url without padding: ~YS9i") {
			t.Errorf("%s: got HTTP %d %v", path, status, problem)
		}
	}
}

// Events are raised through the API and the command line, an activity is retried, and an instance is terminated.
func TestInstance_eventsRetriesAndTerminate_takeEffect(t *testing.T) {
	for n := range 3 {
		if _, err := hub.client.Start(t.Context(), "echo", nil, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, notified := request(t, "POST", "/instances/"+id(t, 0)+"/events/word",
		`"hello"`); status != http.StatusAccepted {
		t.Errorf("raise: got HTTP %d %v", status, notified)
	}
	if out, exit := perdure(t, "raise", id(t, 1), "word", "--data", `"hello"`); exit != 0 {
		t.Errorf("raise: got exit code %d, output %s", exit, out)
	}
	for n := range 2 {
		s, err := hub.client.Wait(t.Context(), id(t, n))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Result[string](s); err != nil || got != "hello at last" ||
			string(s.CustomStatus) != `"waiting"` {
			t.Errorf("got %q, custom status %s, error %v", got, s.CustomStatus, err)
		}
	}
	if out, exit := perdure(t, "terminate", id(t, 2), "--message", "enough"); exit != 0 {
		t.Errorf("terminate: got exit code %d, output %s", exit, out)
	}
	if _, exit := perdure(t, "wait", id(t, 2)); exit != 3 {
		t.Errorf("wait for a terminated instance: got exit code %d, want 3", exit)
	}
	if status, _, problem := request(t, "POST", "/instances/"+id(t, 2)+"/events/word", `1`); status != http.StatusGone {
		t.Errorf("raise for an ended instance: got HTTP %d %v", status, problem)
	}
}

func TestCommandLine_commands_printResults(t *testing.T) {
	instance := id(t, 1)
	if out, exit := perdure(t, "start", "hello", "--input", `"world"`, "--id", instance, "--wait"); exit != 0 ||
		!strings.Contains(out, "hello, world") {
		t.Errorf("start --wait: got exit code %d, output %s", exit, out)
	}
	if out, exit := perdure(t, "status", instance); exit != 0 || !strings.Contains(out, "Completed") {
		t.Errorf("status: got exit code %d, output %s", exit, out)
	}
	if out, exit := perdure(t, "list", "--name", "hello"); exit != 0 || !strings.Contains(out, instance) {
		t.Errorf("list: got exit code %d, output %s", exit, out)
	}
	if out, exit := perdure(t, "history", instance); exit != 0 || !strings.Contains(out, "OrchestrationCompleted") {
		t.Errorf("history: got exit code %d, output %s", exit, out)
	}
	if out, exit := perdure(t, "history", "--json", instance); exit != 0 ||
		!strings.Contains(out, "perdure.history/1") {
		t.Errorf("history --json: got exit code %d, output %s", exit, out)
	}
	if _, exit := perdure(t, "start", "fails", "--input", "{}", "--id", id(t, 2)); exit != 0 {
		t.Errorf("start: got exit code %d", exit)
	}
	if _, exit := perdure(t, "wait", id(t, 2)); exit != 2 {
		t.Errorf("wait for a failed instance: got exit code %d, want 2", exit)
	}
	if _, exit := perdure(t, "status", "missing"); exit != 1 {
		t.Errorf("status of an unknown instance: got exit code %d, want 1", exit)
	}
}
