package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/internal/awsrequest"
)

// logs implements probes.LogAPI with the API of CloudWatch Logs.
type logs struct {
	sender   *awsrequest.Sender
	endpoint string
}

func newLogs(cfg *aws.Config, now func() time.Time) *logs {
	return &logs{
		awsrequest.New(cfg, now), awsrequest.Endpoint(serviceLogs, cfg.Region, aws.ToString(cfg.BaseEndpoint)),
	}
}

// serviceLogs is the service in the signature and the endpoint of CloudWatch Logs.
const serviceLogs = "logs"

// filterRequest is a request of FilterLogEvents.
type filterRequest struct {
	Group     string `json:"logGroupName"`
	Pattern   string `json:"filterPattern"`
	NextToken string `json:"nextToken,omitempty"`
}

// Lines implements probes.LogAPI.
func (l *logs) Lines(ctx context.Context, group, text string) (lines []string, err error) {
	const operation, responseLimit = "filter log events", 1 << 22
	in := filterRequest{Group: group, Pattern: strconv.Quote(text)}
	for {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s: encode request: %w", operation, err)
		}
		response, err := l.sender.Send(ctx, &awsrequest.Request{
			Operation: operation, Service: serviceLogs, Method: http.MethodPost, URL: l.endpoint + "/",
			Header: map[string]string{
				"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Logs_20140328.FilterLogEvents",
			},
			Body: body,
		}, responseLimit)
		if err != nil {
			return nil, err
		}
		var found struct {
			Events []struct {
				Message string `json:"message"`
			} `json:"events"`
			NextToken string `json:"nextToken"`
		}
		if err := json.Unmarshal(response, &found); err != nil {
			return nil, fmt.Errorf("%s: decode response: %w", operation, err)
		}
		for _, e := range found.Events {
			lines = append(lines, e.Message)
		}
		if found.NextToken == "" {
			return lines, nil
		}
		in.NextToken = found.NextToken
	}
}
