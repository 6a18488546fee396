package memhub

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/worktoken"
)

// Hub is a minimal provider: a hub in memory. Each embedded store implements a part of the contract.
type Hub struct {
	*base
	*queues
	*crashMarkers
	*inbox
	*timers
	*histories
	*instances
	*activities
	*workQueues
	*builds
	*starts
	*rejections
	*turns
	*attempts
	*deletions
	*sweeps
	// optional interfaces
	*annotations
	*jobs
	*schedules
	*monitoring
	provider.NoDeadLetterRecovery
	provider.NoRetentions
}

var _ provider.Provider = (*Hub)(nil)

// Name is the name of every Hub, in records and tokens.
const Name = "test"

// The work queues of a hub. The first one also has an exclusive queue.
const (
	DefaultQueue = "default"
	OtherQueue   = "payments"
)

// New returns an empty hub to which no build has reported. visibility is the visibility timeout of its queues.
func New(now func() time.Time, visibility time.Duration) *Hub {
	b := &base{now: now}
	h := &Hub{base: b, schedules: &schedules{base: b, entries: map[string]time.Time{}}}
	h.queues = &queues{base: b, byName: newQueues(visibility)}
	h.crashMarkers = &crashMarkers{base: b, marks: map[string]*crashMark{}}
	h.inbox = &inbox{base: b, queues: h.queues, interruptedAt: map[string]time.Time{}}
	h.timers = &timers{base: b, queues: h.queues}
	h.histories = &histories{base: b, byID: map[string]*execution{}}
	h.instances = &instances{base: b, histories: h.histories, byID: map[string]*identity{}}
	h.activities = &activities{base: b, histories: h.histories, byID: map[string]*facts{}}
	h.rejections = &rejections{
		base: b, instances: h.instances, inbox: h.inbox, results: map[string]provider.UpdateResult{},
	}
	h.workQueues = &workQueues{
		base: b, queues: h.queues, inbox: h.inbox, histories: h.histories,
		tokens: worktoken.NewSigner(Name, worktoken.NewKey("1", []byte("secret of the fake provider"))),
	}
	out := &outbox{
		base: b, inbox: h.inbox, workQueues: h.workQueues, timers: h.timers, rejections: h.rejections,
		activities: h.activities,
	}
	h.builds = &builds{base: b, inbox: h.inbox}
	h.starts = &starts{
		base: b, builds: h.builds, histories: h.histories, instances: h.instances, inbox: h.inbox, timers: h.timers,
		outbox: out,
	}
	h.turns = &turns{base: b, histories: h.histories, instances: h.instances, outbox: out}
	h.attempts = &attempts{
		base: b, histories: h.histories, instances: h.instances, activities: h.activities, workQueues: h.workQueues,
		timers: h.timers,
	}
	h.annotations = &annotations{base: b, instances: h.instances}
	h.deletions = &deletions{
		base: b, histories: h.histories, instances: h.instances, activities: h.activities, rejections: h.rejections,
		outbox: out,
	}
	h.sweeps = &sweeps{base: b, builds: h.builds, instances: h.instances}
	h.jobs = &jobs{base: b, instances: h.instances}
	h.monitoring = &monitoring{
		base: b, queues: h.queues, instances: h.instances, workers: map[string]provider.WorkerReport{},
	}
	return h
}

// encode returns the JSON of a value of package provider, which can always be encoded.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("memhub: " + err.Error())
	}
	return string(b)
}
