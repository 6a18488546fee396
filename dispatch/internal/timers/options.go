package timers

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// Options holds the options of a Timekeeper. See dispatch.RenewerOptions.
type Options struct {
	HubName string
	Metrics intake.Metrics
	Clock   func() time.Time
	Logger  *slog.Logger
}

// NewTimekeeper returns a timekeeper. It makes no calls.
func NewTimekeeper(p provider.Provider, opts Options) *Timekeeper {
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	opts.Clock, opts.Logger = base.Clock, base.Logger
	k := &Timekeeper{base: base, options: opts, provider: p}
	k.meter = intake.NewMeter(opts.Metrics, opts.HubName, "", &k.base)
	return k
}
