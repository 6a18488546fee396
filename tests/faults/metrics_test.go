package faults_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The local cloud has no AWS metrics, so the tests derive each metric from the same source as AWS: Errors from the
// results of invocations, queue metrics from queue attributes, ThrottledRequests from rejected requests, and the
// metrics of the hub from the logs of its functions.

const (
	limit        = 2 * time.Minute // the longest time until a metric changes
	pollInterval = 250 * time.Millisecond
)

// metric is the metric of an alarm, with a function that reads its value.
type metric struct {
	alarm string // without the prefix perdure-<hub>-
	name  string
	from  float64 // the lowest value that counts as a change; 1 by default
	read  func(t *testing.T) float64
}

// wantMetricChange fails the test unless the alarm uses the metric, and the metric changes within the limit after a
// fault.
func wantMetricChange(t *testing.T, since time.Time, m metric) {
	t.Helper()
	if watched := watchedBy(t, m.alarm); !slices.Contains(watched, m.name) {
		t.Errorf("alarm %s: got metrics %q, want %s", m.alarm, watched, m.name)
	}
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		value := m.read(t)
		took := time.Since(since)
		if value >= max(m.from, 1) {
			t.Logf("%s: %s reached %v after %.1f s", m.alarm, m.name, value, took.Seconds())
			return
		}
		if took > limit {
			t.Errorf("%s: got %s %v after %v", m.alarm, m.name, value, limit)
			return
		}
		<-look.C
	}
}

// watchedBy returns the metrics of an alarm in the deployed template.
func watchedBy(t *testing.T, alarm string) (metrics []string) {
	t.Helper()
	var template struct {
		Resources map[string]struct {
			Type       string `json:"Type"`
			Properties struct {
				AlarmName  json.RawMessage `json:"AlarmName"`
				MetricName string          `json:"MetricName"`
				Metrics    []struct {
					MetricStat struct {
						Metric struct {
							MetricName string `json:"MetricName"`
						} `json:"Metric"`
					} `json:"MetricStat"`
				} `json:"Metrics"`
			} `json:"Properties"`
		} `json:"Resources"`
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "infra", "cdk", "template.golden.json"))
	if err == nil {
		err = json.Unmarshal(b, &template)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range template.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" || !bytes.Contains(r.Properties.AlarmName, []byte("-"+alarm+`"`)) {
			continue
		}
		for _, m := range r.Properties.Metrics {
			metrics = append(metrics, m.MetricStat.Metric.MetricName)
		}
		return append(metrics, r.Properties.MetricName)
	}
	t.Fatalf("the template has no alarm %s", alarm)
	return nil
}

// logFile is a log file, read from an offset.
type logFile struct {
	name string
	from int
}

// logOf opens a log of a function or of the local cloud, at its current end.
func logOf(t *testing.T, name string) logFile {
	t.Helper()
	l := logFile{name: filepath.Join(hub.cloud.LogDir, name+".log")}
	l.from = len(l.text(t))
	return l
}

func (l logFile) text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(l.name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b[min(l.from, len(b)):])
}

// errorsOf counts the failed invocations of a function by its mapping, like the metric Errors.
func errorsOf(t *testing.T, part string) func(*testing.T) float64 {
	t.Helper()
	log := logOf(t, "ministack")
	failed := regexp.MustCompile(`Lambda ` + regexp.QuoteMeta(functionName(part)) + ` failed processing SQS batch`)
	return func(t *testing.T) float64 {
		t.Helper()
		return float64(len(failed.FindAllString(log.text(t), -1)))
	}
}

// embedded returns the last value of a metric in the log of a function, like CloudWatch.
func embedded(t *testing.T, part, name string) func(*testing.T) float64 {
	t.Helper()
	log := logOf(t, functionName(part))
	return func(t *testing.T) (value float64) {
		t.Helper()
		for line := range strings.Lines(log.text(t)) {
			var attrs map[string]any
			if !strings.Contains(line, `"_aws"`) || json.Unmarshal([]byte(line), &attrs) != nil {
				continue
			}
			if v, ok := attrs[name].(float64); ok && attrs["hub"] == hubName {
				value = v
			}
		}
		return value
	}
}

// attribute returns a numeric attribute of a queue.
func attribute(url string, name types.QueueAttributeName) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		t.Helper()
		out, err := hub.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name},
		})
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseFloat(out.Attributes[string(name)], 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func visible(url string) func(*testing.T) float64 {
	return attribute(url, types.QueueAttributeNameApproximateNumberOfMessages)
}

// age returns the time in seconds for which a queue has continuously had visible or received messages. If the queue has
// only one message, the result is the age of this message.
func age(url string) func(*testing.T) float64 {
	received := attribute(url, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	var since time.Time
	return func(t *testing.T) float64 {
		t.Helper()
		if visible(url)(t)+received(t) == 0 {
			since = time.Time{}
			return 0
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since).Seconds()
	}
}
