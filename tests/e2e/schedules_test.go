package e2e_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// A schedule is put over HTTP, run by the command, paused and deleted; the functions know schedules without a word of the application's.
func TestASchedule(t *testing.T) {
	name := strings.ReplaceAll(id(t, 0), "/", "-")
	path := "/schedules/" + name
	status, _, answer := request(t, "PUT", path, `{"orchestration":"hello","input":"world","when":"@yearly","timeZone":"Europe/Berlin"}`)
	if status != http.StatusAccepted || answer["instanceId"] != schedule.InstanceID(name) {
		t.Fatalf("put: %d %v", status, answer)
	}
	printed, err := exec.CommandContext(t.Context(), hub.perdure, "schedule", "run", "--hub", "e2e", name).Output()
	run := strings.TrimSpace(string(printed))
	if err != nil || !strings.HasPrefix(run, name+"@") {
		t.Fatalf("run printed %q, %v", printed, err)
	}
	ended := client.ScheduleStatus{}
	for started := time.Now(); ended.Last == nil && time.Since(started) < aWhile; time.Sleep(50 * time.Millisecond) {
		if ended, err = hub.client.Schedule(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if ended.Last == nil || ended.Last.InstanceID != run || ended.Last.Outcome != schedule.Completed || ended.Started != 1 || ended.Next.IsZero() {
		t.Errorf("%+v", ended)
	}
	valid(t, hub.client, run)

	if status, _, _ := request(t, "POST", path+"/pause", `{"message":"to look at it"}`); status != http.StatusAccepted {
		t.Errorf("pause: %d", status)
	}
	if status, _, _ := request(t, "POST", path+"/resume", ""); status != http.StatusAccepted {
		t.Errorf("resume: %d", status)
	}
	if status, _, _ := request(t, "DELETE", path, ""); status != http.StatusAccepted {
		t.Errorf("delete: %d", status)
	}
	listed, err := exec.CommandContext(t.Context(), hub.perdure, "schedule", "list", "--hub", "e2e").Output()
	if err != nil || !strings.Contains(string(listed), name) {
		t.Errorf("list printed %q, %v", listed, err)
	}
	if err := hub.client.Cancel(t.Context(), schedule.InstanceID(name), "it need not linger"); err != nil {
		t.Error(err)
	}
	if s, err := hub.client.Wait(t.Context(), schedule.InstanceID(name)); err != nil || s.Status != client.StatusCancelled {
		t.Errorf("it is %s, %v", s.Status, err)
	}
	valid(t, hub.client, schedule.InstanceID(name))
}
