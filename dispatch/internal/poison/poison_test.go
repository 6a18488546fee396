package poison

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/provider"
)

// hub has crash markers of earlier deliveries, and lists the calls.
type hub struct {
	provider.Provider

	crashes int
	calls   []string
}

func (h *hub) PutCrashMarker(context.Context, provider.Delivery) (int, error) {
	h.calls = append(h.calls, "put")
	return h.crashes, nil
}

func (h *hub) DeleteCrashMarker(context.Context, provider.Delivery) error {
	h.calls = append(h.calls, "delete")
	return nil
}

const maxCrashes = 3

func check(h *hub, alone bool) Check {
	o := &Options{
		Base: intake.NewBase(h, nil, slog.New(slog.DiscardHandler)), MaxCrashes: maxCrashes,
		Interceptors: func() []string { return nil },
	}
	return NewCheck(o, "i-1", alone)
}

// The delivery, the crash markers, and whether the session runs alone decide whether the code runs.
func TestBeforeCode_markers_decideWhetherTheCodeRuns(t *testing.T) {
	t.Parallel()
	var suspect *SuspectError
	var poisoned *Error
	for name, c := range map[string]struct {
		deliveries, crashes int
		alone, blocked      bool
		want                any // the type of the error, or nil
		calls               []string
	}{
		"second delivery":           {deliveries: 2},
		"third, without a marker":   {deliveries: 3, calls: []string{"put"}},
		"third, with a marker":      {deliveries: 3, crashes: 1, want: &suspect, calls: []string{"put"}},
		"as many as allowed, alone": {deliveries: 9, crashes: maxCrashes, alone: true, calls: []string{"put"}},
		"too many": {
			deliveries: 9, crashes: maxCrashes + 1, want: &poisoned, calls: []string{"put"},
		},
		"blocked, together with others": {deliveries: 1, blocked: true, want: &suspect},
		"blocked, alone":                {deliveries: 1, alone: true, blocked: true, calls: []string{"put"}},
		"blocked, crashed alone": {
			deliveries: 2, crashes: 1, alone: true, blocked: true, want: &poisoned, calls: []string{"put"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{crashes: c.crashes}
			check := check(h, c.alone)
			q := messages.NewQueue([]provider.InboxMessage{{Record: provider.Record{ReceiveCount: c.deliveries}}})
			err := check.BeforeCode(t.Context(), "x", c.blocked, &q)
			_, isSuspect := errors.AsType[*SuspectError](err)
			_, isPoison := errors.AsType[*Error](err)
			if isSuspect != (c.want == &suspect) || isPoison != (c.want == &poisoned) || c.want == nil && err != nil {
				t.Errorf("got error %v", err)
			}
			if !slices.Equal(h.calls, c.calls) {
				t.Errorf("got calls %v, want %v", h.calls, c.calls)
			}
		})
	}
}

// A marker that was written while other code ran is kept if the messages are processed. Any other marker is deleted.
func TestEnd_marker_isKeptOnlyIfOtherCodeRanAndAllMessagesAreProcessed(t *testing.T) {
	t.Parallel()
	for failed, kept := range map[error]bool{nil: true, errors.New("throttled"): false} {
		h := &hub{}
		c := check(h, false)
		q := messages.NewQueue([]provider.InboxMessage{{Record: provider.Record{ReceiveCount: 3}}})
		if err := c.BeforeCode(t.Context(), "x", false, &q); err != nil {
			t.Fatal(err)
		}
		c.End(t.Context(), failed)
		if got := !slices.Contains(h.calls, "delete"); got != kept {
			t.Errorf("after error %v: marker kept: %v, want %v", failed, got, kept)
		}
	}
}
