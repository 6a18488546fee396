package sweeper

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// Options holds the options of a Sweeper. See dispatch.RenewerOptions.
type Options struct {
	HubName string
	Metrics intake.Metrics
	Clock   func() time.Time
	Logger  *slog.Logger
}
