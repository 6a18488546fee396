package selftest

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
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
	regional := "https://monitoring." + cfg.Region + "." + awsrequest.Domain(cfg.Region)
	return &metrics{awsrequest.New(cfg, now), cmp.Or(aws.ToString(cfg.BaseEndpoint), regional)}
}

// SampleCount implements probes.MetricAPI.
func (m *metrics) SampleCount(ctx context.Context, metric probes.Metric, from, to time.Time) (float64, error) {
	const period, responseLimit, operation = "60", 1 << 20, "get metric statistics"
	body, err := m.sender.Send(ctx, &awsrequest.Request{
		Operation: operation, Service: "monitoring", Method: http.MethodPost, URL: m.endpoint + "/",
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
		Body: []byte(url.Values{
			keyAction: {"GetMetricStatistics"}, "Version": {"2010-08-01"}, "Namespace": {metric.Namespace},
			"MetricName": {metric.Name}, "Dimensions.member.1.Name": {metric.Dimension},
			"Dimensions.member.1.Value": {metric.Value}, "Statistics.member.1": {"SampleCount"}, "Period": {period},
			"StartTime": {from.UTC().Format(time.RFC3339)}, "EndTime": {to.UTC().Format(time.RFC3339)},
		}.Encode()),
	}, responseLimit)
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
