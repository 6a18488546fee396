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

// runsWhilePaused triggers a run of a paused schedule, and waits for its end.
func runsWhilePaused(t *testing.T, name string) {
	t.Helper()
	run, err := hub.client.Schedules().Trigger(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	s := client.ScheduleStatus{}
	for started := time.Now(); (s.LastRun == nil || s.LastRun.InstanceID != run) &&
		time.Since(started) < aWhile; time.Sleep(50 * time.Millisecond) {
		if s, err = hub.client.Schedules().Get(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if s.LastRun == nil || s.LastRun.InstanceID != run || s.LastRun.Outcome != schedule.OutcomeCompleted ||
		s.RuntimeStatus != client.StatusPaused || s.Paused == nil || s.Paused.Message != "to look at it" {
		t.Errorf("got %+v", s)
	}
}

// An update over HTTP starts a missing instance and returns its result. After the instance has ended, another update is
// rejected.
func TestAPI_putWithUpdate_startsAndReturnsResult(t *testing.T) {
	to := strings.ReplaceAll(id(t, 0), "/", "-")
	const put = `{"orchestration":"StartedOrUpdated","input":{"Of":1},"update":"next","data":{}}`
	status, _, callResponse := request(t, "PUT", "/instances/"+to, put)
	if status != http.StatusOK || callResponse["result"] != 1.0 || callResponse["started"] != true {
		t.Errorf("got HTTP %d %v", status, callResponse)
	}
	if s, err := hub.client.Wait(t.Context(), to); err != nil || string(s.Output) != "1" {
		t.Errorf("got status %s, output %s, error %v", s.Status, s.Output, err)
	}
	if status, _, callResponse := request(t, "PUT", "/instances/"+to, put); status != http.StatusGone ||
		callResponse["code"] != "instance_over" {
		t.Errorf("ended instance: got HTTP %d %v", status, callResponse)
	}
	valid(t, hub.client, to)
}

// A schedule is created, paused, resumed and deleted over HTTP, and triggered by the command. The functions support
// schedules without code in the application.
func TestSchedule_lifecycle_runsAndPauses(t *testing.T) {
	name := strings.ReplaceAll(id(t, 0), "/", "-")
	path := "/schedules/" + name
	status, _, callResponse := request(t, "PUT", path,
		`{"orchestration":"hello","input":"world","when":"@yearly","timeZone":"Europe/Berlin"}`)
	if status != http.StatusAccepted || callResponse["instanceId"] != schedule.InstanceID(name) {
		t.Fatalf("put: got HTTP %d %v", status, callResponse)
	}
	printed, err := exec.CommandContext(t.Context(), hub.perdure, "schedule", "run", "--hub", "e2e", name).Output()
	run := strings.TrimSpace(string(printed))
	if err != nil || !strings.HasPrefix(run, name+"@") {
		t.Fatalf("run: got %q, error %v", printed, err)
	}
	ended := client.ScheduleStatus{}
	for started := time.Now(); ended.LastRun == nil && time.Since(started) < aWhile; time.Sleep(50 * time.Millisecond) {
		if ended, err = hub.client.Schedules().Get(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if ended.LastRun == nil || ended.LastRun.InstanceID != run || ended.LastRun.Outcome != schedule.OutcomeCompleted ||
		ended.Started != 1 || ended.NextDue.IsZero() {
		t.Errorf("got %+v", ended)
	}
	valid(t, hub.client, run)

	if status, _, _ := request(t, "POST", path+"/pause", `{"message":"to look at it"}`); status != http.StatusAccepted {
		t.Errorf("pause: got HTTP %d", status)
	}
	runsWhilePaused(t, name)
	if status, _, _ := request(t, "POST", path+"/resume", ""); status != http.StatusAccepted {
		t.Errorf("resume: got HTTP %d", status)
	}
	if status, _, _ := request(t, "DELETE", path, ""); status != http.StatusAccepted {
		t.Errorf("delete: got HTTP %d", status)
	}
	listed, err := exec.CommandContext(t.Context(), hub.perdure, "schedule", "list", "--hub", "e2e").Output()
	if err != nil || !strings.Contains(string(listed), name) {
		t.Errorf("list: got %q, error %v", listed, err)
	}
	if err := hub.client.Cancel(t.Context(), schedule.InstanceID(name), "it need not linger"); err != nil {
		t.Error(err)
	}
	if s, err := hub.client.Wait(t.Context(), schedule.InstanceID(name)); err != nil ||
		s.Status != client.StatusCancelled {
		t.Errorf("got status %s, error %v", s.Status, err)
	}
	valid(t, hub.client, schedule.InstanceID(name))
}
