package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// unreadable damages the histories of the first n of ten instances.
func unreadable(t *testing.T, n int) *tool {
	t.Helper()
	h := setup(t)
	for i := range 10 {
		id := fmt.Sprint("i", i)
		fulfilling(h, id)
		if in, err := h.ReadInstance(t.Context(), id); err != nil {
			t.Fatal(err)
		} else if i < n {
			h.Damage(in.ExecutionID, fmt.Errorf("torn: %w", provider.ErrCorrupt))
		}
	}
	return h
}

// An unreadable history may hide a difference, so verify fails and reports the number and the IDs of such instances.
func TestVerify_unreadableHistory_fails(t *testing.T) {
	t.Parallel()
	h := unreadable(t, 1)
	exit, v := h.verified("same")
	if exit != cli.CodeError || v.Replayed != 10 || len(v.Findings) != 1 ||
		v.Findings[0].Outcome != verification.OutcomeUnread || v.Findings[0].InstanceID != "i0" {
		t.Errorf("exit %d, %+v", exit, v)
	}
	if wantText := h.err.String(); !strings.Contains(wantText, "1 of 10 instances could not be replayed: i0 (") ||
		!strings.Contains(wantText, "torn: ") || !strings.Contains(wantText, "--allow-unread") {
		t.Errorf("got %s", wantText)
	}

	h = unreadable(t, 7)
	if exit, _ := h.verified("same"); exit != cli.CodeError ||
		!strings.Contains(h.err.String(), "7 of 10 instances could not be replayed: i0, i1, i2, i3, i4 and 2 more (") {
		t.Errorf("exit %d, got %s", exit, h.err.String())
	}
	if exit, _ := h.verified("changed"); exit != cli.CodeFailed {
		t.Errorf("exit %d although three instances would be blocked", exit)
	}
}

// --allow-unread accepts a number or a share of unreadable instances, but not all of them.
func TestVerify_allowUnread_acceptsUpToLimit(t *testing.T) {
	t.Parallel()
	for allowed, want := range map[string]int{
		"1": cli.CodeError, "2": 0, "3": 0, "10%": cli.CodeError, "19.9%": cli.CodeError, "20%": 0, "100%": 0,
	} {
		h := unreadable(t, 2)
		if exit, v := h.verified("same", "--allow-unread", allowed); exit != want || v.Orchestrations[0].Unread != 2 {
			t.Errorf("--allow-unread %s: exit %d, %+v; %s", allowed, exit, v, h.err.String())
		}
	}
	for _, allowed := range []string{"10", "100%"} {
		h := unreadable(t, 10)
		if exit, _ := h.verified("same", "--allow-unread", allowed); exit != cli.CodeError ||
			!strings.Contains(h.err.String(), "10 of 10 instances could not be replayed") {
			t.Errorf("--allow-unread %s: exit %d although no instance could be read; %s", allowed, exit, h.err.String())
		}
	}
	for _, wrong := range []string{"", "-1", "x", "101%", "-1%", "%", "NaN%", "1.5"} {
		unreadable(t, 0).wantError(cli.CodeError,
			"--allow-unread must be a number or a percentage of instances, such as 1%", "verify", "--binary", "x",
			"--allow-unread", wrong)
	}
}

// withoutRecord is a hub with a damaged record of one instance.
type withoutRecord struct {
	*fakeprovider.Provider
	id string
}

func (p *withoutRecord) ReadInstance(ctx context.Context, id string) (provider.Instance, error) {
	if id == p.id {
		return provider.Instance{}, fmt.Errorf("no number: %w", provider.ErrCorrupt)
	}
	return p.Provider.ReadInstance(ctx, id)
}

// verify reports an instance with an unreadable record by the ID in the list.
func TestVerify_unreadableRecord_isReportedByID(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	fulfilling(h, "b")
	h.client = client.New(&withoutRecord{h.Provider, "b"})
	exit, v := h.verified("same")
	if exit != cli.CodeError || len(v.Findings) != 1 || v.Findings[0].InstanceID != "b" ||
		v.Findings[0].Orchestration != "fulfil" || v.Findings[0].Version != "1" {
		t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
}
