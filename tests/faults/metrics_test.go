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

// The local cloud has no metrics of AWS's own. Each is read here from what AWS makes it of: Errors from the results of
// invocations, queues' metrics from their attributes, ThrottledRequests from refused requests, and the hub's own from
// the lines of its functions' logs.

const (
	limit     = 2 * time.Minute // within which a metric must move
	lookEvery = 250 * time.Millisecond
)

// metric is one that an alarm watches, and how it is read.
type metric struct {
	alarm string // behind perdure-<hub>-
	name  string
	from  float64 // the value that is a movement; 1 by default
	read  func(t *testing.T) float64
}

// wantMovement fails unless the alarm watches the metric, which moves within the limit of a fault that was made then.
func wantMovement(t *testing.T, since time.Time, m metric) {
	t.Helper()
	if watched := watchedBy(t, m.alarm); !slices.Contains(watched, m.name) {
		t.Errorf("the alarm %s watches %q, not %s", m.alarm, watched, m.name)
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		value := m.read(t)
		took := time.Since(since)
		if value >= max(m.from, 1) {
			t.Logf("%s: %s is %v after %.1f s", m.alarm, m.name, value, took.Seconds())
			return
		}
		if took > limit {
			t.Errorf("%s: %s is %v after %v", m.alarm, m.name, value, limit)
			return
		}
		<-look.C
	}
}

// watchedBy reads from the template that is deployed which metrics an alarm watches.
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

// logFile is a log, from where it stood.
type logFile struct {
	name string
	from int
}

// logOf begins to read a log of the local cloud: what a function writes, or what the cloud does.
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

// errorsOf counts the invocations of a function by its mapping that failed, as Errors does.
func errorsOf(t *testing.T, part string) func(*testing.T) float64 {
	t.Helper()
	log := logOf(t, "ministack")
	failed := regexp.MustCompile(`Lambda ` + regexp.QuoteMeta(functionName(part)) + ` failed processing SQS batch`)
	return func(t *testing.T) float64 {
		t.Helper()
		return float64(len(failed.FindAllString(log.text(t), -1)))
	}
}

// embedded reads the last value of a metric that lines of a function's log make, as CloudWatch does.
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

// attribute reads a number of a queue.
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

// age reads for how many seconds a queue has had messages, visible or received, without a moment in which it had none.
// Of the only message in it that is its age.
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
