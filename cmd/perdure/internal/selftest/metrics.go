package selftest

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/internal/awsrequest"
)

// metrics implements probes.MetricAPI with the query API of CloudWatch.
type metrics struct {
	sender   *awsrequest.Sender
	endpoint string
}

func newMetrics(cfg *aws.Config, now func() time.Time) *metrics {
	endpoint := awsrequest.Endpoint(serviceMetrics, cfg.Region, aws.ToString(cfg.BaseEndpoint))
	return &metrics{awsrequest.New(cfg, now), endpoint}
}

// serviceMetrics is the service in the signature and the endpoint of CloudWatch.
const serviceMetrics = "monitoring"

// SampleCount implements probes.MetricAPI.
func (m *metrics) SampleCount(ctx context.Context, metric probes.Metric, from, to time.Time) (float64, error) {
	const period, responseLimit, operation = "60", 1 << 20, "get metric statistics"
	body, err := m.sender.Send(ctx, awsrequest.Query(operation, serviceMetrics, m.endpoint, url.Values{
		keyAction: {"GetMetricStatistics"}, "Version": {"2010-08-01"}, "Namespace": {metric.Namespace},
		"MetricName": {metric.Name}, "Dimensions.member.1.Name": {metric.Dimension},
		"Dimensions.member.1.Value": {metric.Value}, "Statistics.member.1": {"SampleCount"}, "Period": {period},
		"StartTime": {from.UTC().Format(time.RFC3339)}, "EndTime": {to.UTC().Format(time.RFC3339)},
	}), responseLimit)
	if err != nil {
		return 0, err
	}
	var found struct {
		Counts []float64 `xml:"GetMetricStatisticsResult>Datapoints>member>SampleCount"`
	}
	if err := xml.Unmarshal(body, &found); err != nil {
		return 0, fmt.Errorf("%s: decode response: %w", operation, err)
	}
	sum := 0.0
	for _, n := range found.Counts {
		sum += n
	}
	return sum, nil
}
