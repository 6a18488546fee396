package sweeper

import (
	"context"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
)

// countAttention logs the number of instances that need attention, if there are any. The log line contains a metric.
func (s *Sweeper) countAttention(ctx context.Context, r *result) {
	a, err := s.Provider.CountAttention(ctx)
	if err != nil {
		r.add(ctx, err)
	}

	now := s.Clock()
	attrs := []any{"event", logevent.InstanceAttentionNeeded, intake.DimensionHub, s.hubName}
	var metrics []intake.MetricUnit
	add := func(name, unit string, value int) {
		if value > 0 {
			attrs = append(attrs, name, value)
			metrics = append(metrics, intake.MetricUnit{Name: name, Unit: unit})
		}
	}
	add(intake.MetricBlocked, intake.UnitCount, a.Blocked)
	add(intake.MetricDeleting, intake.UnitCount, a.Deleting)
	if !a.OldestPending.IsZero() {
		add(intake.MetricOldestPending, intake.UnitSeconds, int(now.Sub(a.OldestPending).Seconds()))
	}
	if len(metrics) == 0 {
		return
	}
	dimensions := []string{intake.DimensionHub}
	attrs = append(attrs, intake.MetricAttribute, intake.MetricsOf(now, dimensions, metrics...))
	s.Logger.WarnContext(ctx, "instances need attention", attrs...)
}
