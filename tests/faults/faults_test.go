package faults_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/faults/app"
	"github.com/perdure/perdure/tests/localcloud"
)

const queue = "default"

// start starts an instance named after the test, and returns the start time.
func start(t *testing.T, orchestration string, input any) (instance string, at time.Time) {
	t.Helper()
	at = time.Now()
	instance, err := hub.client.Start(t.Context(), orchestration, input, client.WithInstanceID(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	return instance, at
}

// wantEnd fails the test unless an instance completes after the fault has ended.
func wantEnd(t *testing.T, instance string) {
	t.Helper()
	if s, err := hub.client.Wait(t.Context(), instance); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("after the fault: got %+v, error %v", s, err)
	}
}

func TestAlarms_healthyHub_changeNoMetric(t *testing.T) {
	quiet := []metric{
		{alarm: "Errors-Orchestrator", name: "Errors", read: errorsOf(t, "orchestrator")},
		{alarm: "Errors-Worker-default", name: "Errors", read: errorsOf(t, "worker-default")},
		{
			alarm: "Unregistered-default", name: "ActivitiesUnregistered",
			read: embedded(t, "worker-default", "ActivitiesUnregistered"),
		},
		{alarm: "InstancesBlocked", name: "InstancesBlocked", read: embedded(t, "renewer", "InstancesBlocked")},
		{
			alarm: "DeadLetters-default", name: "ApproximateNumberOfMessagesVisible",
			read: visible(hub.place.DeadLetters[queue]),
		},
		{alarm: "TimersWaiting", name: "ApproximateNumberOfMessagesVisible", read: visible(hub.place.TimersURL)},
	}
	instance, _ := start(t, "greeting", "world")
	wantEnd(t, instance)
	for _, m := range quiet {
		if v := m.read(t); v != 0 {
			t.Errorf("%s: got %v, want 0", m.alarm, v)
		}
	}
}

// A worker exits during initialization: its invocations fail, and its work items age.
func TestAlarms_workerExitsAtInit_changeMetrics(t *testing.T) {
	failures, oldest := errorsOf(t, "worker-default"), age(hub.place.WorkQueues[queue])
	var instance string
	t.Run("fault", func(t *testing.T) {
		withVariable(t, "worker-default", app.Fault, app.ExitAtInit)
		var at time.Time
		instance, at = start(t, "greeting", "world")
		wantMetricChange(t, at, metric{alarm: "Errors-Worker-default", name: "Errors", read: failures})
		wantMetricChange(t, at, metric{
			alarm: "WorkAge-default", name: "ApproximateAgeOfOldestMessage", from: 20, read: oldest,
		})
	})
	wantEnd(t, instance)
}

// A worker has a build without registrations: each delivery of an activity counts.
func TestAlarms_workerWithoutRegistrations_changeMetric(t *testing.T) {
	unregistered := embedded(t, "worker-default", "ActivitiesUnregistered")
	var instance string
	t.Run("fault", func(t *testing.T) {
		withVariable(t, "worker-default", app.Fault, app.NoRegistrations)
		var at time.Time
		instance, at = start(t, "greeting", "world")
		wantMetricChange(t, at, metric{
			alarm: "Unregistered-default", name: "ActivitiesUnregistered", read: unregistered,
		})
	})
	wantEnd(t, instance)
}

// An orchestrator has a build without registrations: the instance is blocked, and the next sweep counts it.
func TestAlarms_orchestratorWithoutRegistrations_changeMetric(t *testing.T) {
	blocked := embedded(t, "renewer", "InstancesBlocked")
	var instance string
	t.Run("fault", func(t *testing.T) {
		var at time.Time
		instance, at = start(t, "napping", time.Second) // before the faulty build is deployed
		withVariable(t, "orchestrator", app.Fault, app.NoRegistrations)
		wantMetricChange(t, at, metric{alarm: "InstancesBlocked", name: "InstancesBlocked", read: blocked})
	})
	if err := hub.client.Terminate(t.Context(), instance, "the test has ended"); err != nil {
		t.Error(err)
	}

	// A build reports its registrations before its first turn. After this instance has ended, the orchestrations of the
	// next test are registered again.
	if s, err := hub.client.Wait(t.Context(), instance); err != nil || s.Status != client.StatusTerminated {
		t.Errorf("after the fault: got %+v, error %v", s, err)
	}
}

// The mapping of the timers queue is disabled: timers are due, and no function receives them.
func TestAlarms_timersMappingDisabled_changeMetric(t *testing.T) {
	id := mapping(t, "renewer")
	enable := func(enabled bool) {
		lambda(t, http.MethodPut, "event-source-mappings/"+id, map[string]any{"Enabled": enabled})
	}
	enable(false)
	instance, at := start(t, "napping", time.Second)
	wantMetricChange(t, at, metric{
		alarm: "TimersWaiting", name: "ApproximateNumberOfMessagesVisible", read: visible(hub.place.TimersURL),
	})
	enable(true)
	wantEnd(t, instance)
}

// The table is throttled: requests are rejected, and the messages in the inbox age. Nothing is lost.
func TestAlarms_throttledTable_changeMetrics(t *testing.T) {
	table := localcloud.NewThrottlingTable(t, hub.cloud.Cloud)
	withVariable(t, "orchestrator", "AWS_ENDPOINT_URL_DYNAMODB", table.URL)

	table.Refuses.Store(true)
	instance, at := start(t, "greeting", "world")
	wantMetricChange(t, at, metric{
		alarm: "TableThrottles", name: "ThrottledRequests", read: func(*testing.T) float64 {
			return float64(table.Refused.Load())
		},
	})
	wantMetricChange(t, at, metric{
		alarm: "InboxAge", name: "ApproximateAgeOfOldestMessage", from: 20, read: age(hub.place.InboxURL),
	})
	table.Refuses.Store(false)
	wantEnd(t, instance)
}

// A message that cannot be decoded, and an activity that ends its process in each attempt, arrive in the dead-letter
// queues of their queues.
func TestAlarms_poisonedMessages_changeMetrics(t *testing.T) {
	at := time.Now()
	body := "{ this is no message"
	group := t.Name()
	if _, err := hub.queues.SendMessage(t.Context(),
		&sqs.SendMessageInput{
			QueueUrl: &hub.place.InboxURL, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &group,
		}); err != nil {
		t.Fatal(err)
	}
	wantMetricChange(t, at, metric{
		alarm: "DeadLetters-inbox", name: "ApproximateNumberOfMessagesVisible",
		read: visible(hub.place.DeadLetters["inbox"]),
	})

	failures := errorsOf(t, "worker-default")
	_, at = start(t, "deadly", "world")
	wantMetricChange(t, at, metric{alarm: "Errors-Worker-default", name: "Errors", read: failures})
	wantMetricChange(t, at, metric{
		alarm: "DeadLetters-default", name: "ApproximateNumberOfMessagesVisible",
		read: visible(hub.place.DeadLetters[queue]),
	})
}
