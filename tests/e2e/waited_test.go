package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/e2e/app"
)

// The worker of an activity with WaitForCancellation is killed with SIGKILL after it has observed the cancel and before
// it has ended. The undo starts only when the lease of the worker has ended. The time of the observation is known.
func TestUndo_workerKilledInGracePeriod_waitsForItsLease(t *testing.T) {
	shortrun.Skip(t)
	h := hold(t)
	if err := hub.client.Cancel(t.Context(), h.instance, "that will do"); err != nil {
		t.Fatal(err)
	}
	pid := h.process(app.Saw)
	seen := h.seen()
	killed := time.Now()
	signal(t, pid, syscall.SIGKILL)
	h.wantUndoneAfter(killed)
	if notified := h.why().SeenAt; !notified.Equal(seen) || !seen.Before(killed) {
		t.Errorf("cancel observed at %v, process killed at %v: got SeenAt %v", seen, killed, notified)
	}
}

// The worker is stopped before it can observe the cancel, and killed after the cancel is in the history.
func TestUndo_workerKilledBeforeObservingCancel_waitsForItsLease(t *testing.T) {
	shortrun.Skip(t)
	h := hold(t)
	pid := h.process(app.Began)
	signal(t, pid, syscall.SIGSTOP)
	if err := hub.client.Cancel(t.Context(), h.instance, "that will do"); err != nil {
		t.Fatal(err)
	}
	await(t, h.instance, history.ActivityCancelRequested)
	killed := time.Now()
	signal(t, pid, syscall.SIGKILL)
	h.wantUndoneAfter(killed)
	if seen := h.why().SeenAt; !seen.After(killed) {
		t.Errorf("got SeenAt %v before the kill of the worker, which had not observed the cancel", killed.Sub(seen))
	}
	if _, err := os.Stat(filepath.Join(h.folder, app.Saw)); err == nil {
		t.Error("the killed worker had observed the cancel")
	}
}

// holding is an instance of the orchestration "holding", with its folder.
type holding struct {
	t                *testing.T
	instance, folder string
}

// hold starts an instance and returns when its activity runs.
func hold(t *testing.T) *holding {
	t.Helper()
	h := &holding{t, id(t, 1), t.TempDir()}
	if _, err := hub.client.Start(t.Context(), "holding", h.folder, client.WithInstanceID(h.instance)); err != nil {
		t.Fatal(err)
	}
	h.process(app.Began)
	return h
}

// process waits for a note of a process and returns the process ID.
func (h *holding) process(note string) int {
	h.t.Helper()
	for range 1000 {
		b, err := os.ReadFile(filepath.Join(h.folder, note))
		if os.IsNotExist(err) {
			<-time.After(20 * time.Millisecond)
			continue
		}
		pid, err := strconv.Atoi(string(b))
		if err != nil {
			h.t.Fatal(err)
		}
		return pid
	}
	h.t.Fatalf("got no note %q", note)
	return 0
}

// seen waits until the worker has reported that it observed the cancel, and returns the time. The activity must not
// have ended.
func (h *holding) seen() time.Time {
	h.t.Helper()
	for range 100 {
		if x := h.cancelled(); !x.SeenAt.IsZero() {
			if x.End != "" {
				h.t.Errorf("want a running activity: %+v", x)
			}
			return x.SeenAt
		}
		<-time.After(20 * time.Millisecond)
	}
	h.t.Fatal("got no observation of the cancel")
	return time.Time{}
}

// cancelled returns the status of the cancel of the activity.
func (h *holding) cancelled() client.Cancellation {
	h.t.Helper()
	found, err := client.Collect(hub.client.Cancellations(h.t.Context(), h.instance, ""))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, x := range found {
		if x.Target == client.TargetActivity {
			return x
		}
	}
	return client.Cancellation{}
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// wantUndoneAfter fails the test unless the history has, in this order, the cancel of the activity, its failure because
// of the lost worker, and the undo. The failure must be later than the kill.
func (h *holding) wantUndoneAfter(killed time.Time) {
	h.t.Helper()
	s, err := hub.client.Wait(h.t.Context(), h.instance)
	if err != nil {
		h.t.Fatal(err)
	}
	if s.Status != client.StatusCancelled || string(s.CustomStatus) != `"worker_gone"` {
		h.t.Errorf("got status %s, custom status %s, failure %+v", s.Status, s.CustomStatus, s.Failure)
	}
	var order []string
	held := int64(0)
	for _, e := range valid(h.t, hub.client, h.instance) {
		switch {
		case e.Kind == history.ActivityScheduled && held == 0:
			held = e.ID
		case e.Kind == history.ActivityScheduled:
			order = append(order, "undo")
		case e.Kind == history.ActivityCancelRequested:
			order = append(order, "decided")
		case e.Kind == history.ActivityFailed && e.SourceEventID == held:
			order = append(order, "ended "+history.CancelOutcomeOf(&e))
			h.t.Logf("history has the outcome %v after the kill of the worker", e.Time.Sub(killed))
			if !e.Time.After(killed) {
				h.t.Errorf("got an outcome %v before the kill of the worker", killed.Sub(e.Time))
			}
		}
	}
	if got := strings.Join(order, ", "); got != "decided, ended worker_gone, undo" {
		h.t.Errorf("got history %s", got)
	}
	if undone, err := os.Stat(filepath.Join(h.folder, app.Freed)); err != nil || undone.ModTime().Before(killed) {
		h.t.Errorf("compensation: got error %v", err)
	}
}

// why checks the output of perdure why for the activity, and returns the cancellation from the client.
func (h *holding) why() client.Cancellation {
	h.t.Helper()
	out, exit := perdure(h.t, "why", h.instance)
	if exit != 0 || !strings.Contains(out, `requested "that will do"`) ||
		!strings.Contains(out, "worker lost, reported after ") {
		h.t.Errorf("perdure why: got exit code %d\n%s", exit, out)
	}
	x := h.cancelled()
	if x.End != client.OutcomeWorkerLost || x.SeenAt.Before(x.DecidedAt) || x.EndedAt.Before(x.SeenAt) {
		h.t.Errorf("got %+v", x)
	}
	return x
}
