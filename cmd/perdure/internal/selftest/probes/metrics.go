package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MetricAPI reads metrics of CloudWatch.
type MetricAPI interface {
	// Total returns the sum of a statistic since a time of the local clock. It can include earlier values, because AWS
	// has another clock.
	Total(ctx context.Context, m Metric, since time.Time) (float64, error)
	// AlarmStates returns the states of alarms by their names.
	AlarmStates(ctx context.Context, names ...string) (map[string]string, error)
}

// Metric is a statistic of a metric, which has a value for each minute.
type Metric struct {
	Namespace, Name string
	// Statistic is "Sum", or "SampleCount" for the number of values.
	Statistic  string
	Dimensions map[string]string
}

// metrics lets the function log a metric with 100 values, as functions of a hub do.
func (p *lambdaProbes) metrics(ctx context.Context) (string, error) {
	const values, limit, pause, dimension = 100, 5 * time.Minute, 10 * time.Second, "hub"
	m := Metric{MetricNamespace, "SelfTest", "SampleCount", map[string]string{dimension: p.Hub}}
	began := p.Now()
	line, err := json.Marshal(map[string]any{
		"_aws": map[string]any{
			"Timestamp": began.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": m.Namespace, "Dimensions": [][]string{{dimension}},
				"Metrics": []any{map[string]string{"Name": m.Name, "Unit": "Count"}},
			}},
		},
		"level": "INFO", "msg": "metrics", dimension: p.Hub, m.Name: make([]int, values),
	})
	if err != nil {
		return "", undecided(err)
	}
	if err := p.log(ctx, string(line)); err != nil {
		return "", err
	}
	err = p.untilRead(ctx, limit, pause, func() (missing, err error) {
		n, err := p.Metrics.Total(ctx, m, began)
		if err == nil && n < values { // more if Lambda repeats the invocation
			missing = fmt.Errorf("the metric has %v of %d values after %v", n, values, limit)
		}
		return missing, err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d values after %v", values, p.Now().Sub(began).Round(time.Second)), nil
}

// AlarmNames are alarms of a metric without data, which treat missing data as breaching and as not breaching.
type AlarmNames struct{ BreachingAlarm, NotBreachingAlarm string }

// missingData waits until the alarms have the states that their treatment of missing data implies.
func (p *lambdaProbes) missingData(ctx context.Context) (string, error) {
	const limit, pause = 5 * time.Minute, 10 * time.Second
	want := map[string]string{p.BreachingAlarm: "ALARM", p.NotBreachingAlarm: "OK"}
	began := p.Now()
	err := p.untilRead(ctx, limit, pause, func() (missing, err error) {
		states, err := p.Metrics.AlarmStates(ctx, slices.Collect(maps.Keys(want))...)
		if err == nil && !maps.Equal(states, want) {
			missing = fmt.Errorf("the alarms have the states %v after %v, want %v", states, limit, want)
		}
		return missing, err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ALARM and OK after %v", p.Now().Sub(began).Round(time.Second)), nil
}

// The log group of the mapped function has a metric filter. A line with FilteredField true adds 1 to the Sum of
// FilteredMetric, with a dimension FilteredDimension that has the value of the field with this name.
const (
	MetricNamespace   = "perdure"
	FilteredMetric    = "SelfTestFiltered"
	FilteredField     = "selfTestFiltered"
	FilteredDimension = "selfTestBuild"
)

// filteredLines logs a line that the metric filter counts, and one that it does not count.
func (p *lambdaProbes) filteredLines(ctx context.Context) (string, error) {
	began := p.Now()
	counted, ignored := p.Hub+"-counted", p.Hub+"-ignored"
	for _, build := range []string{ignored, counted} {
		line, err := json.Marshal(map[string]any{
			"level": "INFO", "msg": "filtered", FilteredField: build == counted, FilteredDimension: build,
		})
		if err != nil {
			return "", undecided(err)
		}
		if err := p.log(ctx, string(line)); err != nil {
			return "", err
		}
	}
	if _, err := p.awaitLines(ctx, ignored, counted, []expectedLine{
		{"a line that is not counted", ignored}, {"a line that is counted", counted},
	}); err != nil {
		return "", undecided(err)
	}
	metric := func(build string) Metric {
		return Metric{MetricNamespace, FilteredMetric, "Sum", map[string]string{FilteredDimension: build}}
	}
	n, err := p.untilData(ctx, began, metric(counted), metric(ignored), errors.New("a line is not counted"))
	if err != nil {
		return "", err
	}
	if n > 0 {
		return "", fmt.Errorf("a line with %s false adds %v", FilteredField, n)
	}
	return "a line is counted, a line with another value is not", nil
}

// untilData waits until a metric has data, and returns the total of another one a minute later. If the metric has none,
// the error wraps missing.
func (p *lambdaProbes) untilData(
	ctx context.Context, began time.Time, of, another Metric, missing error,
) (total float64, err error) {
	const limit, pause = 5 * time.Minute, 15 * time.Second
	read := func(m Metric) (err error) {
		total, err = p.Metrics.Total(ctx, m, began)
		return err
	}
	if err := p.untilRead(ctx, limit, pause, func() (_, err error) {
		if err := read(of); err != nil || total > 0 {
			return nil, err
		}
		return fmt.Errorf("%w after %v", missing, limit), nil
	}); err != nil {
		return 0, err
	}
	if err := p.Sleep(ctx, time.Minute); err != nil {
		return 0, undecided(err)
	}
	err = p.untilRead(ctx, time.Minute, pause, func() (_, err error) { return nil, read(another) })
	return total, err
}

// RuleNames are rules that are due each minute.
type RuleNames struct{ EnabledRule, DisabledRule string }

// disabledRule waits until the metric of a rule has data. That of a disabled rule has none.
func (p *lambdaProbes) disabledRule(ctx context.Context) (string, error) {
	began := p.Now()
	metric := func(rule string) Metric {
		return Metric{"AWS/Events", "Invocations", "SampleCount", map[string]string{"RuleName": rule}}
	}
	n, err := p.untilData(ctx, began, metric(p.EnabledRule), metric(p.DisabledRule),
		undecided(errors.New("the metric of an enabled rule has no data")))
	if err != nil {
		return "", err
	}
	if n > 0 {
		return "", fmt.Errorf("the metric of a disabled rule has %v values", n)
	}
	return "the metric of an enabled rule has data, that of a disabled one has none", nil
}
