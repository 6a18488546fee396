package selftest

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/internal/awsrequest"
)

// metrics implements probes.MetricAPI with the query API of CloudWatch.
type metrics struct {
	sender   *awsrequest.Sender
	endpoint string
	now      func() time.Time
}

func newMetrics(cfg *aws.Config, now func() time.Time) *metrics {
	endpoint := awsrequest.Endpoint(serviceMetrics, cfg.Region, aws.ToString(cfg.BaseEndpoint))
	return &metrics{awsrequest.New(cfg, now), endpoint, now}
}

// serviceMetrics is the service in the signature and the endpoint of CloudWatch.
const serviceMetrics = "monitoring"

// query sends a request to the query API, and decodes its response.
func (m *metrics) query(ctx context.Context, operation string, values url.Values, response any) error {
	const responseLimit, version = 1 << 20, "2010-08-01"
	values.Set("Version", version)
	body, err := m.sender.Send(ctx, awsrequest.Query(operation, serviceMetrics, m.endpoint, values), responseLimit)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(body, response); err != nil {
		return fmt.Errorf("%s: decode response: %w", operation, err)
	}
	return nil
}

// AlarmStates implements probes.MetricAPI.
func (m *metrics) AlarmStates(ctx context.Context, names ...string) (map[string]string, error) {
	values := url.Values{keyAction: {"DescribeAlarms"}}
	for i, name := range names {
		values.Set(fmt.Sprintf("AlarmNames.member.%d", i+1), name)
	}
	var found struct {
		Alarms []struct {
			Name  string `xml:"AlarmName"`
			State string `xml:"StateValue"`
		} `xml:"DescribeAlarmsResult>MetricAlarms>member"`
	}
	if err := m.query(ctx, "describe alarms", values, &found); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, a := range found.Alarms {
		states[a.Name] = a.State
	}
	return states, nil
}

// Total implements probes.MetricAPI.
func (m *metrics) Total(ctx context.Context, metric probes.Metric, since time.Time) (float64, error) {
	const period = "60"
	const clockError = 15 * time.Minute // AWS accepts requests of clocks that differ by at most this
	from, to := since.Add(-clockError), m.now().Add(clockError)
	values := url.Values{
		keyAction: {"GetMetricStatistics"}, "Namespace": {metric.Namespace}, keyMetric: {metric.Name},
		"Statistics.member.1": {metric.Statistic}, "Period": {period},
		"StartTime": {from.UTC().Format(time.RFC3339)}, "EndTime": {to.UTC().Format(time.RFC3339)},
	}
	for i, name := range slices.Sorted(maps.Keys(metric.Dimensions)) {
		values.Set(fmt.Sprintf("Dimensions.member.%d.Name", i+1), name)
		values.Set(fmt.Sprintf("Dimensions.member.%d.Value", i+1), metric.Dimensions[name])
	}
	// A data point has the statistics that the request names.
	var found struct {
		Points []struct{ SampleCount, Sum float64 } `xml:"GetMetricStatisticsResult>Datapoints>member"`
	}
	if err := m.query(ctx, "get metric statistics", values, &found); err != nil {
		return 0, err
	}
	total := 0.0
	for _, point := range found.Points {
		total += point.SampleCount + point.Sum
	}
	return total, nil
}
