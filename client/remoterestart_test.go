package client_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/perdure/perdure/client"
)

// An empty version and missing tags are options too: without them, a restart keeps those of the ended instance.
func TestDial_restartWithEmptyOptions_doesNotDropThem(t *testing.T) {
	t.Parallel()
	f := &fixed{status: http.StatusAccepted, contentType: "application/json", body: `{"instanceId":"two"}`}
	c := respond(t, f)
	if id, err := c.Restart(t.Context(), "one", client.WithVersion("")); id != "two" || err != nil {
		t.Fatalf("got %q, error %v", id, err)
	}
	if body, err := io.ReadAll(f.requests[0].Body); string(body) != `{"version":""}` {
		t.Errorf("got body %s, error %v", body, err)
	}
	_, err := c.Restart(t.Context(), "one", client.WithTags(nil))
	if _, unsupported := errors.AsType[*client.NoRouteError](err); !unsupported {
		t.Errorf("got error %v without tags, want a NoRouteError", err)
	}
}

// The ID in use is that of the new instance, and not that of the ended instance.
func TestDial_restartOfIDInUse_namesNewInstance(t *testing.T) {
	t.Parallel()
	const inUse = `{"status":409,"code":"instance_id_in_use","detail":"instance id is in use","existing":{` +
		`"orchestration":"hello","status":"Running","createdAt":"2026-07-01T03:00:00Z"`
	two := []client.StartOption{client.WithInstanceID("two")}
	for name, test := range map[string]struct {
		body, want string
		opts       []client.StartOption
	}{
		"derived ID":       {inUse + `,"instanceId":"one.restart-1"}}`, "one.restart-1", nil},
		"ID of the caller": {inUse + `,"instanceId":"two"}}`, "two", two},
		"earlier release":  {inUse + `}}`, "two", two},
	} {
		id, err := respond(t, refused(http.StatusConflict, test.body)).Restart(t.Context(), "one", test.opts...)
		e, exists := errors.AsType[*client.AlreadyExistsError](err)
		if !exists || e.InstanceID != test.want || id != test.want || e.Status != client.StatusRunning {
			t.Errorf("%s: got ID %q, error %+v, want the ID %q", name, id, err, test.want)
		}
	}
}
