package e2e_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
)

// remove deletes an instance through API Gateway, and returns the body of the response.
func remove(t *testing.T, instance, query string) (status int, body string) {
	t.Helper()
	status, _, callResponse := call(t, http.MethodDelete, "/instances/"+instance+query, "")
	return status, string(callResponse)
}

// The API and the command line delete ended instances, with the permissions of the functions. Afterwards the ID can be
// used again.
func TestPurge_endedInstance_freesItsID(t *testing.T) {
	for n := range 2 {
		if _, err := hub.client.Start(t.Context(), "hello", "world", client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
		if _, err := hub.client.Wait(t.Context(), id(t, n)); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := remove(t, id(t, 0), ""); status != http.StatusNoContent {
		t.Errorf("got HTTP %d: %s", status, body)
	}
	if out, exit := perdure(t, "purge", id(t, 1)); exit != 0 || out != "" {
		t.Errorf("purge: got exit code %d, output %s", exit, out)
	}
	for n := range 2 {
		if status, _, problem := request(t, http.MethodGet, "/instances/"+id(t, n), ""); status != http.StatusNotFound {
			t.Errorf("purged instance: got HTTP %d %v", status, problem)
		}
		if status, body := remove(t, id(t, n), ""); status != http.StatusNotFound ||
			!strings.Contains(body, "instance_not_found") {
			t.Errorf("second purge: got HTTP %d: %s", status, body)
		}
		if _, err := hub.client.Start(t.Context(), "hello", "again", client.WithInstanceID(id(t, n))); err != nil {
			t.Errorf("start with the same ID: got error %v", err)
		}
		s, err := hub.client.Wait(t.Context(), id(t, n))
		if got, _ := client.Result[string](s); err != nil || got != "hello, again" {
			t.Errorf("next incarnation: got %q, error %v", got, err)
		}
	}
}

func TestPurge_runningInstance_requiresForce(t *testing.T) {
	for n := range 2 {
		if _, err := hub.client.Start(t.Context(), "echo", nil, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := remove(t, id(t, 0), ""); status != http.StatusConflict ||
		!strings.Contains(body, "instance_not_over") {
		t.Errorf("without force: got HTTP %d: %s", status, body)
	}
	if _, exit := perdure(t, "purge", id(t, 1)); exit != 1 {
		t.Errorf("without force: got exit code %d", exit)
	}
	if status, body := remove(t, id(t, 0), "?force=true"); status != http.StatusNoContent {
		t.Errorf("with force: got HTTP %d: %s", status, body)
	}
	if out, exit := perdure(t, "purge", id(t, 1), "--force"); exit != 0 {
		t.Errorf("with force: got exit code %d, output %s", exit, out)
	}
	for n := range 2 {
		if err := hub.client.RaiseEvent(t.Context(), id(t, n), "word", "hello"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("event for a purged instance: got error %v", err)
		}
	}
}
