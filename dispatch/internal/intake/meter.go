package intake

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Metrics selects the dimensions of a function's metrics.
type Metrics string

// The values of Metrics.
const (
	// MetricsOff disables metrics.
	MetricsOff Metrics = ""
	// MetricsByHub uses the hub as the only dimension.
	MetricsByHub Metrics = "hub"
	// MetricsByName uses the hub and the name of the activity or orchestration.
	MetricsByName Metrics = "name"
)

// Known reports whether m is one of the constants.
func (m Metrics) Known() bool { return m == MetricsOff || m == MetricsByHub || m == MetricsByName }

// Meter collects the metrics of an invocation and logs them. It is safe for concurrent use. The methods of a nil Meter
// do nothing.
type Meter struct {
	*readings

	by string // the dimension of names, or empty
}

// readings are the metrics that the meters of an invocation have collected.
type readings struct {
	hub    string
	clock  func() time.Time
	log    *slog.Logger
	mu     sync.Mutex
	series map[named]*series
}

// named is a name and its dimension.
type named struct{ by, name string }

func (n named) compare(o named) int {
	return cmp.Or(cmp.Compare(n.by, o.by), cmp.Compare(n.name, o.name))
}

// series are the metrics of one name.
type series struct {
	counts  map[string]int
	lags    map[string]int // in seconds
	samples map[string][]float64
}

// NewMeter returns a meter, or nil if metrics are off. by is the dimension of the names.
func NewMeter(m Metrics, hub, by string, b *Base) *Meter {
	if m == MetricsOff {
		return nil
	}
	if m != MetricsByName {
		by = ""
	}
	return &Meter{by: by, readings: &readings{hub: hub, clock: b.Clock, log: b.Logger, series: map[named]*series{}}}
}

// By returns a meter that uses another dimension for names and logs with m. It returns m if m has no dimension for
// names.
func (m *Meter) By(dimension string) *Meter {
	if m == nil || m.by == "" {
		return m
	}
	return &Meter{by: dimension, readings: m.readings}
}

// Now returns the current time as the start of a latency, or zero if m is nil.
func (m *Meter) Now() time.Time {
	if m == nil {
		return time.Time{}
	}
	return m.clock()
}

// Count adds n to a count.
func (m *Meter) Count(metric, name string, n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(name).counts[metric] += n
}

// Since adds the latency from the given time until now. It does nothing if from is zero.
func (m *Meter) Since(metric, name string, from time.Time) {
	if m != nil {
		m.Between(metric, name, from, m.clock())
	}
}

// Between adds the latency between two times. A negative latency counts as 0, because the times can come from different
// machines. Between does nothing if from is zero.
func (m *Meter) Between(metric, name string, from, to time.Time) {
	if m == nil || from.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(name)
	s.samples[metric] = append(s.samples[metric], max(0, float64(to.Sub(from))/float64(time.Millisecond)))
}

// of returns the series of a name.
func (m *Meter) of(name string) *series {
	if m.by == "" {
		name = ""
	}
	of := named{m.by, name}
	s := m.series[of]
	if s == nil {
		s = &series{counts: map[string]int{}, lags: map[string]int{}, samples: map[string][]float64{}}
		m.series[of] = s
	}
	return s
}

// mostSamples is the maximum number of values of a metric in one line, according to the format.
const mostSamples = 100

// Flush logs the metrics that were collected since the last call: one line, or one for each name.
func (m *Meter) Flush(ctx context.Context) {
	if m == nil {
		return
	}
	m.mu.Lock()
	all := m.series
	m.series = map[named]*series{}
	m.mu.Unlock()
	for _, of := range slices.SortedFunc(maps.Keys(all), named.compare) {
		for s := all[of]; s != nil; s = s.rest() {
			m.write(ctx, of, s)
		}
	}
}

// rest removes the values that exceed the limit of a line and returns them as another series. It returns nil if there
// are none.
func (s *series) rest() *series {
	rest := &series{samples: map[string][]float64{}}
	for metric, samples := range s.samples {
		if len(samples) > mostSamples {
			rest.samples[metric] = samples[mostSamples:]
		}
	}
	if len(rest.samples) == 0 {
		return nil
	}
	return rest
}

// write logs a line at the lowest enabled level from info up, so that the log level does not disable metrics.
func (m *Meter) write(ctx context.Context, of named, s *series) {
	attrs := []any{DimensionHub, m.hub}
	dimensions := []string{DimensionHub}
	if of.by != "" && of.name != "" {
		attrs = append(attrs, of.by, of.name)
		dimensions = append(dimensions, of.by)
	}

	var units []MetricUnit
	for _, metric := range slices.Sorted(maps.Keys(s.counts)) {
		attrs = append(attrs, metric, s.counts[metric])
		units = append(units, MetricUnit{Name: metric, Unit: UnitCount})
	}
	for _, metric := range slices.Sorted(maps.Keys(s.lags)) {
		attrs = append(attrs, metric, s.lags[metric])
		units = append(units, MetricUnit{Name: metric, Unit: UnitSeconds})
	}
	for _, metric := range slices.Sorted(maps.Keys(s.samples)) {
		samples := s.samples[metric]
		attrs = append(attrs, metric, samples[:min(len(samples), mostSamples)])
		units = append(units, MetricUnit{Name: metric, Unit: UnitMilliseconds})
	}
	attrs = append(attrs, MetricAttribute, MetricsOf(m.clock(), dimensions, units...))
	m.log.Log(ctx, m.level(ctx), "metrics", attrs...)
}

func (m *Meter) level(ctx context.Context) slog.Level {
	for _, l := range []slog.Level{slog.LevelInfo, slog.LevelWarn} {
		if m.log.Enabled(ctx, l) {
			return l
		}
	}
	return slog.LevelError
}

// LagSince sets a metric to the number of seconds since the given time. It does nothing if from is zero.
func (m *Meter) LagSince(metric string, from time.Time) {
	if m == nil || from.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of("").lags[metric] = int(m.clock().Sub(from).Seconds())
}
