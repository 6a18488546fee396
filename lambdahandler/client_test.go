package lambdahandler

import (
	"log/slog"
	"strings"
	"testing"
)

// Delayed starts require the URL of the timers queue. Only the worker of a queue with Client has this URL.
func TestNewClient_workerWithoutClientPermission_isAnError(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001", "PERDURE_HUB": "h", "PERDURE_TABLE": "t",
		"PERDURE_INBOX_URL":    "https://sqs/inbox.fifo",
		"PERDURE_WORK_QUEUES":  `{"default":"https://sqs/default"}`,
		"PERDURE_DEAD_LETTERS": `{"default":"https://sqs/dead"}`, "GOGC": "100", "GOMEMLIMIT": "off",
	}
	opts := []Option{
		WithEnvironment(func(name string) string { return set[name] }), WithLogger(slog.New(slog.DiscardHandler)),
	}
	if _, err := NewClient(t.Context(), opts...); err == nil ||
		!strings.Contains(err.Error(), "PERDURE_TIMERS_URL is required") {
		t.Errorf("worker without Client: got error %v", err)
	}
	set["PERDURE_TIMERS_URL"] = "https://sqs/timers"
	if c, err := NewClient(t.Context(), opts...); err != nil || c == nil {
		t.Errorf("worker with Client: got error %v", err)
	}
}
