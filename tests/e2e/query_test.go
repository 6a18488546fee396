package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
)

// A query over HTTP, the command and the Go client each invoke the orchestrator function, with the permissions of the
// stack. The query does not affect the instance.
func TestQuery_httpCommandAndClient_returnResult(t *testing.T) {
	instance := id(t, 0)
	if _, err := hub.client.Start(t.Context(), "Queries", 1, client.WithInstanceID(instance)); err != nil {
		t.Fatal(err)
	}
	queried := func() (status int, callResponse map[string]any) {
		status, _, callResponse = request(t, "POST", "/instances/"+instance+"/query", `{"query":"steps","input":20}`)
		return status, callResponse
	}
	status, callResponse := queried()
	for range 50 {
		if status != http.StatusConflict { // its first turn has not run yet
			break
		}
		status, callResponse = queried()
	}
	if status != http.StatusOK || callResponse["answer"] != 20.0 || callResponse["query"] != "steps" {
		t.Fatalf("query over HTTP: got HTTP %d %v", status, callResponse)
	}

	printed, err := exec.CommandContext(t.Context(), hub.perdure, "query", "--hub", "e2e", instance, "steps",
		"30").Output()
	if err != nil || string(printed) != "30\n" {
		t.Errorf("query command: got %q, error %v", printed, err)
	}
	if status, _, callResponse := request(t, "POST", "/instances/"+instance+"/query",
		`{"query":"pace"}`); status != http.StatusNotFound || callResponse["code"] != "unknown_query" ||
		!strings.Contains(callResponse["detail"].(string), "steps") {
		t.Errorf("unknown query: got HTTP %d %v", status, callResponse)
	}
	if status, _, callResponse := request(t, "POST", "/instances/missing/query",
		`{"query":"steps"}`); status != http.StatusNotFound || callResponse["code"] != "instance_not_found" {
		t.Errorf("unknown instance: got HTTP %d %v", status, callResponse)
	}
	_, err = hub.client.Query(t.Context(), instance, "steps", "many")
	if e, ok := errors.AsType[*client.QueryError](err); !ok || e.Code != client.QueryBadInput {
		t.Errorf("bad input: got error %v", err)
	}

	if err := hub.client.RaiseEvent(t.Context(), instance, "next", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if s, err := hub.client.Wait(t.Context(), instance); err != nil || s.Status != client.StatusCompleted {
		t.Fatalf("got status %s, error %v", s.Status, err)
	}
	after, err := hub.client.Query(t.Context(), instance, "steps", 40)
	if got := json.Number(after); err != nil || got != "41" {
		t.Errorf("ended instance: got %s, error %v", after, err)
	}
	valid(t, hub.client, instance)
}
