package e2e_test

import (
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/e2e/app"
)

// An activity and a turn end their process in each attempt. Both stop after four attempts, which is the limit in this
// deployment: two without a marker, one with other messages, and one alone. Then the activity fails, and the instance
// with the turn is blocked. Another instance is not affected.
func TestCodeThatEndsItsProcessIsPoison(t *testing.T) {
	shortrun.Skip(t)
	activity, turn := app.Deadly{Folder: t.TempDir()}, app.Deadly{Folder: t.TempDir()}
	begin := func(n int, name string, in any) {
		t.Helper()
		if _, err := hub.client.Start(t.Context(), name, in, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	begin(1, "poisoned", activity)
	begin(2, "fatal", turn)
	if err := hub.client.RaiseEvent(t.Context(), id(t, 2), "go", true); err != nil {
		t.Fatal(err)
	}
	begin(3, "naps", app.Naps{Count: 3, Each: 50 * time.Millisecond})

	s, err := hub.client.Wait(t.Context(), id(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := client.Result[string](s); err != nil || failed != history.TypePoison {
		t.Errorf("the activity failed as %q, %v", failed, err)
	}
	blocked(t, id(t, 2))
	for what, folder := range map[string]string{"activity": activity.Folder, "turn": turn.Folder} {
		if n := files(t, folder); n != 4 {
			t.Errorf("the %s ran %d times", what, n)
		}
	}
	if s, err := hub.client.Wait(t.Context(), id(t, 3)); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("the healthy one is %s, %v", s.Status, err)
	}
	for n := range 3 {
		valid(t, hub.client, id(t, n+1))
	}
	if _, exit := perdure(t, "terminate", id(t, 2)); exit != 0 {
		t.Errorf("terminate: exit %d", exit)
	}
	if s, err := hub.client.Wait(t.Context(), id(t, 2)); err != nil || s.Status != client.StatusTerminated {
		t.Errorf("the blocked one is %s, %v", s.Status, err)
	}
}

// blocked waits until an instance is blocked because of poison.
func blocked(t *testing.T, instance string) {
	t.Helper()
	for range time.Tick(200 * time.Millisecond) {
		s, err := hub.client.Status(t.Context(), instance)
		if err != nil {
			t.Fatal(err)
		}
		if s.Status != client.StatusBlocked {
			continue
		}
		if s.Failure == nil || s.Failure.Type != history.TypePoison {
			t.Errorf("it is blocked, and the failure is %+v", s.Failure)
		}
		return
	}
}

func files(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
