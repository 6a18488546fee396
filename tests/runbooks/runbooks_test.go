package runbooks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/faults/app"
	"github.com/perdure/perdure/tests/localcloud"
)

// One worker exits during initialization, and an activity ends the process of another.
func TestRunbook_faultyWorker_isFixed(t *testing.T) {
	crashing := hub.start(t, "deadly", "world", "deadly")
	until(t, "its activity has begun", func() bool { return hub.status(t, crashing) == client.StatusRunning })
	before := hub.set(t, "worker-default", map[string]string{app.Fault: app.ExitAtInit})
	instance := hub.start(t, "greeting", "world")
	page := read(t, hub, "Bad worker", map[string]string{"INSTANCE": instance, "QUEUE": "default"})
	until(t, "the instance runs", func() bool { return hub.status(t, instance) == client.StatusRunning })
	page.run("greet")

	hub.set(t, "worker-default", map[string]string{app.Fault: before[app.Fault]})
	page.run("hello, world")

	until(t, "the activity has failed", func() bool { return hub.status(t, crashing) == client.StatusFailed })
	page.run("poison: ")
	if n, err := hub.admin.CountDeadLetters(t.Context()); err != nil ||
		slices.ContainsFunc(n, func(n admin.DeadLetterCount) bool {
			return n.Visible+n.InFlight > 0
		}) {
		t.Errorf("got remaining %v, error %v", n, err)
	}
}

// A build without registrations blocks the instance until another build is deployed.
func TestRunbook_faultyDeployment_isFixed(t *testing.T) {
	const build = "PERDURE_BUILD_ID"
	hub.set(t, "orchestrator", map[string]string{app.Fault: app.NoRegistrations, build: "bad"})
	instance := hub.start(t, "greeting", "world")
	page := read(t, hub, "Bad deployment", map[string]string{"INSTANCE": instance})
	until(t, "the instance is blocked", func() bool { return hub.status(t, instance) == client.StatusBlocked })
	page.run(instance, "unregistered")
	page.run("Disabled", "rule/")

	hub.set(t, "orchestrator", map[string]string{app.Fault: "", build: "fixed"})
	page.run("Enabled", "hello, world")
}

// A table rejects the requests of the orchestrator until the test ends the throttling.
func TestRunbook_throttledTable_isFixed(t *testing.T) {
	table := localcloud.NewThrottlingTable(t, hub.cloud.Cloud)
	const variable = "AWS_ENDPOINT_URL_DYNAMODB"
	hub.set(t, "orchestrator", map[string]string{variable: table.URL})
	defer hub.set(t, "orchestrator", map[string]string{variable: ""})

	table.Refuses.Store(true)
	instance := hub.start(t, "greeting", "world")
	page := read(t, hub, "Throttled table", map[string]string{"INSTANCE": instance})
	until(t, "the table refuses", func() bool { return table.Refused.Load() > 0 })
	page.run("PAY_PER_REQUEST", "Pending")
	page.run()
	out, err := hub.tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &hub.place.Table})
	if err != nil || out.Table.OnDemandThroughput == nil || *out.Table.OnDemandThroughput.MaxWriteRequestUnits != -1 {
		t.Errorf("got table limits %+v, error %v", out.Table.OnDemandThroughput, err)
	}

	table.Refuses.Store(false)
	page.run("hello, world")
}

// waiting starts a completed instance, an instance with an unprocessed work item, and an instance with a timer. The
// timer must not fire before the test pauses the hub, because SQS drops repeats of its messages for five minutes.
func waiting(t *testing.T, d *deployment, nap time.Duration) (over, working, napping string) {
	t.Helper()
	over = d.start(t, "greeting", "world", "over")
	if s, err := d.client.Wait(t.Context(), over); err != nil || s.Status != client.StatusCompleted {
		t.Fatal(s, err)
	}
	d.set(t, "worker-default", map[string]string{app.Fault: app.ExitAtInit})
	working = d.start(t, "greeting", "world", "working")
	napping = d.start(t, "napping", nap, "napping")
	for _, id := range []string{working, napping} {
		until(t, id+" runs", func() bool { return d.status(t, id) == client.StatusRunning })
	}
	return over, working, napping
}

// wantAll fails the test unless all instances complete.
func wantAll(t *testing.T, d *deployment, instances ...string) {
	t.Helper()
	for _, id := range instances {
		if s, err := d.client.Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("%s: got status %s, error %v", id, s.Status, err)
		}
	}
}

// The region is lost. A second cloud has a copy of the table and empty queues.
func TestRunbook_lostRegion_isRecovered(t *testing.T) {
	other := <-elsewhere
	elsewhere <- other // withHub stops this deployment
	if other == nil {
		t.Fatal("the hub is not deployed")
	}
	over, working, napping := waiting(t, hub, 15*time.Second)
	other.replace(t, other.place.Table, hub.items(t, hub.place.Table))
	hub.set(t, "worker-default", map[string]string{app.Fault: ""})
	page := read(t, other, "Lost region", map[string]string{"OTHER_REGION": other.cloud.Env["AWS_REGION"]})
	page.run("2 not ended, ")
	wantAll(t, other, over, working, napping)
	wantAll(t, hub, working, napping) // the other hub must not affect this hub
}

// The table is restored to a point in time, and later changes are lost.
func TestRunbook_restoredTable_isReconciled(t *testing.T) {
	over, working, napping := waiting(t, hub, time.Minute)
	then := hub.items(t, hub.place.Table)
	restored := strings.ToLower(hubName) + "-restored"
	page := read(t, hub, "Table restore", map[string]string{
		"NEW_TABLE": restored, "RESTORE_TO": time.Now().UTC().Format(time.RFC3339), "LOOKBACK": "17d",
	})

	// This instance is lost by the restore. It sends no message that is repeated after the restore. SQS drops repeats
	// for five minutes, and the tool of this test does not wait that long.
	late := hub.start(t, "greeting", "world", "late")
	until(t, "it has sent its work", func() bool { return hub.status(t, late) == client.StatusRunning })

	page.run(`"table":"` + hub.place.Table + `"`)
	page.run(`"ReservedConcurrentExecutions": 0`)
	page.run("Disabled", "rule/")
	page.run(late)
	page.run()
	page.run()
	page.run("ENABLED", `"DeletionProtectionEnabled": true`)
	hub.replace(t, restored, then) // the local cloud restores the current state
	hub.set(t, "worker-default", map[string]string{app.Fault: ""})
	hub.deployOn(t, restored)
	page.run("Disabled", "rule/")
	page.run(working, "TTL on the attribute ttl is off")
	page.run()
	page.run()
	hub.atRest(t)
	page.run("deleted: about ", "2 not ended, ")
	page.run("Enabled")
	page.run()
	page.run()
	wantAll(t, hub, over, working, napping)
	if _, err := hub.client.Status(t.Context(), late); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("instance started after the backup: got error %v", err)
	}
	if n := hub.reservedConcurrency(t, "api"); n != nil {
		t.Errorf("reserved concurrency of the API: got %d, want none", *n)
	}
}
