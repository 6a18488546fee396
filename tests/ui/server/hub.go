package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// hub is a hub in memory with the time of its next instance.
type hub struct {
	*fakeprovider.Provider
	*fakeprovider.Letters

	now time.Time
}

const (
	instances = 10_000
	// events is the number of events of the largest instance.
	events = 50_000

	alice = "arn:aws:sts::123456789012:assumed-role/Operators/alice"

	region, customer       = "region", "customer"
	fulfil, ship           = "fulfil", "ship"
	chargeCard, report     = "chargeCard", "report"
	defaultQueue, payments = "default", "payments"
	v100, v110, v120       = "1.0.0", "1.1.0", "1.2.0"
)

// QueryInstance returns a result for the query "progress" of every instance and for the state of entities. It rejects
// other queries.
func (h *hub) QueryInstance(_ context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	switch q.Name {
	case "progress":
		return json.RawMessage(fmt.Sprintf(`{"of":%q,"input":%s,"share":0.50}`, q.InstanceID, q.Input)), nil
	case perdure.EntityStateQuery:
		return json.RawMessage(`{"Available":12,"Reserved":{"order-7":2}}`), nil
	}
	return nil, &provider.QueryError{
		InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryHandlerNotFound, Known: []string{"progress"},
		Message: `unknown query, known queries: ["progress"]`,
	}
}

// CountWorkItems returns work in queues of the tests. No worker of the queue printers has reported.
func (h *hub) CountWorkItems(context.Context) (map[string]int, error) { //nolint:unparam // an interface
	return map[string]int{defaultQueue: 3, payments: 1, "printers": 1}, nil
}

// ReadWorkers returns workers that reported 20 seconds ago, however long the tests take.
func (h *hub) ReadWorkers(context.Context) (map[string]provider.WorkerReport, error) {
	report := provider.WorkerReport{BuildID: "b7", SeenAt: time.Now().Add(-20 * time.Second)}
	return map[string]provider.WorkerReport{defaultQueue: report, payments: report}, nil
}

// fill creates the instances of the tests. The newest ones have individual histories.
func (h *hub) fill() {
	versions := map[string][]string{}
	for _, name := range []string{fulfil, "charge", ship, "poller", "import", report} {
		versions[name] = []string{v100, v110, v120, "2.0.0"}
	}
	for _, name := range []string{schedule.OrchestrationName, perdure.EntityOrchestrationName("stock")} {
		versions[name] = []string{"1"}
	}
	if err := h.PutBuild(context.Background(), provider.Build{ID: "b7", Orchestrations: versions}); err != nil {
		panic(err)
	}

	end := h.now
	const scenarios = 11
	for n := range instances - scenarios {
		h.now = end.Add(-time.Duration(instances-n) * 37 * time.Second)
		h.common(n)
	}
	for i, story := range []func(end time.Time){
		h.schedules, h.entity, h.large, h.child, h.poller, h.failed, h.terminated, h.blocked, h.paused, h.waiting,
		h.order,
	} {
		h.now = end.Add(-time.Duration(scenarios-i) * time.Second)
		story(end)
	}
	h.now = end
}

// start starts an instance in the past and returns its execution ID.
func (h *hub) start(id, name, version string, ago time.Duration, tags map[string]string, input string) string {
	now := h.now
	h.now = now.Add(-ago)
	in, err := h.StartOrchestration(context.Background(), provider.Start{
		InstanceID: id, Name: name, Version: version, StartID: "start of " + id, Input: history.Payload(input),
		Tags: tags, RequestedBy: alice,
	})
	h.now = now
	if err != nil {
		panic(err)
	}
	return in.ExecutionID
}

// common starts one of the many similar instances.
func (h *hub) common(n int) {
	names := []string{fulfil, "charge", ship, report}
	id := fmt.Sprintf("order-%05d", n)
	h.start(id, names[n%len(names)], v100, 0,
		map[string]string{customer: strconv.Itoa(n % 97), region: []string{"eu", "us", "ap"}[n%3]},
		fmt.Sprintf(`{"order":%d}`, n))
	at := h.now.Add(120 * time.Millisecond)
	took := time.Duration(n%50+1) * 311 * time.Millisecond
	h.Append(id, history.Event{Kind: history.TurnStarted, Time: at, Version: []string{v100, v110}[n%2], BuildID: "b7"})
	switch {
	case n%23 == 0:
		h.Append(id, history.Event{
			Kind: history.OrchestrationFailed, Time: at.Add(took),
			Error: &history.Failure{Type: "DeclinedError", Message: "the card was declined"},
		})
	case n%31 == 0:
		h.Append(id, history.Event{
			Kind: history.OrchestrationCancelled, Time: at.Add(took), Reason: "requested",
			Message: "the customer asked",
		})
	case n%97 == 0:
	default:
		h.Append(id, history.Event{
			Kind: history.OrchestrationCompleted, Time: at.Add(took), Output: history.Payload(`{"ok":true}`),
		})
	}
}

// setStatus sets the custom status of an instance.
func (h *hub) setStatus(id string, doc json.RawMessage) {
	h.Edit(id, func(in *memhub.Editor) { in.CustomStatus = doc })
}

// bury adds dead letters of every kind, and many of one kind.
func (h *hub) bury() {
	for n := range 30 {
		h.Bury(provider.QueueInbox, "corrupt: item x#7 h#3",
			fmt.Sprintf(`{"v":1,"kind":"eventRaised","instanceId":"order-7","name":"packed","data":{"parcel":%d}}`, n))
	}
	h.Bury(provider.QueueInbox, "poison: its turn took the process down in 13 deliveries",
		`{"v":1,"kind":"cancel","instanceId":"order-9"}`)
	h.Bury(provider.QueueTimers, "",
		`{"v":1,"instanceId":"order-8","executionId":"x1","seq":2,"timerId":4,"fireAt":"2030-01-01T00:00:00Z"}`)
	h.Bury(defaultQueue, "picked up: the work item is in its queue again",
		`{"v":1,"instanceId":"import-2026","executionId":"x2","activityId":3,"name":"copyFile","attempt":2}`)
	for n := range 1200 {
		h.Bury(payments, "later: field deadline",
			fmt.Sprintf(`{"v":9,"instanceId":"charge-%d","activityId":3,"name":"chargeCard","attempt":1}`, n))
	}
}
