package builds

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// hub counts the reports of builds, and rejects them with err.
type hub struct {
	provider.Provider

	reports int
	err     error
}

func (h *hub) PutBuild(context.Context, provider.Build) error {
	h.reports++
	return h.err
}

// A process reports again at most once a minute, unless its last report failed.
func TestReportAgain_lastReport_decidesWhetherItReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		err   error
		want  int
	}{
		"is recent":         {after: time.Minute - 1, want: 1},
		"is a minute old":   {after: time.Minute, want: 2},
		"failed just now":   {err: errors.New("throttled"), want: 2},
		"failed and is old": {after: time.Hour, err: errors.New("throttled"), want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, h := time.Unix(1000, 0), &hub{err: c.err}
			clock := func() time.Time { return now }
			r := NewReporter(intake.NewBase(h, clock, slog.New(slog.DiscardHandler)), "b1", registry.New())
			if err := r.Report(t.Context()); !errors.Is(err, c.err) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			now = now.Add(c.after)
			r.ReportAgain(t.Context())
			if h.reports != c.want {
				t.Errorf("got %d reports, want %d", h.reports, c.want)
			}
		})
	}
}
