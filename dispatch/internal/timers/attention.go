package timers

import (
	"context"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
)

// countAttention logs how many instances may need a person, if any does, in a line that is a metric as well.
func (k *Timekeeper) countAttention(ctx context.Context, t *tally) {
	a, err := k.provider.CountAttention(ctx)
	if err != nil {
		t.note(ctx, err)
	}

	now := k.options.Clock()
	attrs := []any{"event", logevent.InstanceAttentionNeeded, intake.DimensionHub, k.options.HubName}
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
	attrs = append(attrs, intake.MetricAttribute, intake.MetricsOf(now, []string{intake.DimensionHub}, metrics...))
	k.options.Logger.WarnContext(ctx, "instances need attention", attrs...)
}
