package fakeprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/worktoken"
)

// Provider is a hub in memory. It is safe for concurrent use.
type Provider struct {
	provider.NoDeadLetterRecovery
	provider.NoRetentions

	now    func() time.Time
	tokens *worktoken.Signer

	mu         sync.Mutex
	queues     map[string]*queue
	identities map[string]*identity  // by instance ID
	executions map[string]*execution // by execution ID, including erased ones
	facts      map[string]*facts     // by execution ID
	marks      map[string]*crashMark
	builds     []provider.Build // in the order of their last reports
	wakeAsked  time.Time        // the last request for a report of a build
	round      blockedRound
	updates    map[string]provider.UpdateResult // by instance ID and update ID
	jobs       []provider.Job
	schedules  map[string]time.Time
	workers    map[string]provider.WorkerReport

	hooks
}

var _ provider.Provider = (*Provider)(nil)

// hubName is the name of the hub in records and tokens.
const hubName = "test"

// The work queues of a hub. The first one also has an exclusive queue.
const (
	DefaultQueue = "default"
	OtherQueue   = "payments"
)

// New returns an empty hub for tests of clients, whose build has these orchestrations. now is its clock.
func New(now func() time.Time, orchestrations ...string) *Provider {
	b := provider.Build{ID: "test", Orchestrations: map[string][]string{}}
	for _, name := range orchestrations {
		b.Orchestrations[name] = []string{"1.0.0"}
	}
	p := NewHub(now, time.Minute)
	p.builds, p.forClients = []provider.Build{b}, true
	return p
}

// NewHub returns an empty hub to which no build has reported. visibility is the visibility timeout of its queues.
func NewHub(now func() time.Time, visibility time.Duration) *Provider {
	p := &Provider{
		now: now, tokens: worktoken.NewSigner(hubName, worktoken.NewKey("1", []byte("secret of the fake provider"))),
		queues: map[string]*queue{}, identities: map[string]*identity{}, executions: map[string]*execution{},
		facts: map[string]*facts{}, marks: map[string]*crashMark{}, updates: map[string]provider.UpdateResult{},
		schedules: map[string]time.Time{},
	}
	for _, name := range []string{
		provider.QueueInbox, provider.QueueTimers, DefaultQueue, OtherQueue, history.ExclusiveQueue(DefaultQueue),
	} {
		_, exclusive := history.BaseQueue(name)
		fifo := exclusive || name == provider.QueueInbox
		p.queues[name] = &queue{fifo: fifo, visibility: visibility, dead: &queue{fifo: fifo, visibility: visibility}}
	}
	return p
}

// begin locks the hub for one call, unless the call fails.
func (p *Provider) begin(ctx context.Context) error {
	p.mu.Lock()
	err := p.failure
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.mu.Unlock()
		return err
	}
	return nil
}

// time returns the current time with the resolution in which it is stored.
func (p *Provider) time() time.Time { return p.now().UTC().Truncate(time.Millisecond) }

// identity is everything that the hub knows about an instance ID. Most of it outlives the instance.
type identity struct {
	instance *instance // nil if the ID is free
	// spent are the StartIDs of deleted instances. rejected are StartIDs that must never create an instance (R10).
	spent, rejected map[string]bool
	// purgedAt and watermark are those of the last deleted instance (R3).
	purgedAt  time.Time
	watermark provider.Position
	// events are the rejected events of other instances (R24). senders are their executions, the latest last.
	events        provider.RejectedEvents
	senders       []string
	interruptedAt time.Time
}

// instance is an instance with its executions, the oldest first.
type instance struct {
	provider.Instance

	executions []*execution
	// written is the sequence of the last segment from which the status was written (R9).
	written int64
	// wakeAt is the time at which the sweeper finds a pending instance again.
	wakeAt time.Time
}

// execution is a history. Its segments are never changed.
type execution struct {
	provider.Execution

	instanceID, previous string
	segments             []provider.Segment
	decisions            []decision
	erased               bool
}

// decision is what a turn has cancelled.
type decision struct {
	segment int64
	cancels provider.Cancels
}

// identity returns the entry of an instance ID and creates it if necessary.
func (p *Provider) identity(instanceID string) *identity {
	id := p.identities[instanceID]
	if id == nil {
		id = &identity{spent: map[string]bool{}, rejected: map[string]bool{}}
		p.identities[instanceID] = id
	}
	return id
}

// instance returns an instance, or ErrNotFound.
func (p *Provider) instance(instanceID string) (*instance, error) {
	if id := p.identities[instanceID]; id != nil && id.instance != nil {
		return id.instance, nil
	}
	return nil, fmt.Errorf("fake: instance %q: %w", instanceID, provider.ErrNotFound)
}

// add adds a segment with the cancel decisions of its turn.
func (x *execution) add(s provider.Segment, cancels provider.Cancels) {
	x.segments = append(x.segments, s)
	if len(cancels) > 0 {
		x.decisions = append(x.decisions, decision{s.Sequence, slices.Clone(cancels)})
	}
}

// erase deletes the history, and cancels all activities because the instance is deleted.
func (x *execution) erase(now time.Time) {
	var cancels provider.Cancels
	for _, d := range x.decisions {
		cancels = append(cancels, d.cancels...)
	}
	x.decisions = []decision{{0, cancels.WithDeletion(now)}}
	x.segments, x.erased = nil, true
}

// current returns the current execution.
func (in *instance) current() *execution { return in.executions[len(in.executions)-1] }

// events returns copies of the events of all segments.
func (x *execution) events() (all []history.Event) {
	for i := range x.segments {
		all = append(all, copyEvents(x.segments[i].Events)...)
	}
	return all
}

// state returns the state of the execution.
func (x *execution) state(keep history.Tracking) *history.State {
	s := history.NewState(keep)
	for i := range x.segments {
		s.Apply(x.segments[i].Events...)
	}
	return s
}

// copyEvents returns a copy that shares only documents, which are never changed.
func copyEvents(events []history.Event) []history.Event {
	all := slices.Clone(events)
	for i := range all {
		all[i].CarriedEvents = slices.Clone(all[i].CarriedEvents)
		all[i].Inputs = slices.Clone(all[i].Inputs)
	}
	return all
}

// PutBuild implements provider.Orchestrations.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	b.FirstReportedAt, b.LastReportedAt = p.time(), p.time()
	if i := slices.IndexFunc(p.builds, func(o provider.Build) bool { return o.ID == b.ID }); i >= 0 {
		b.FirstReportedAt = p.builds[i].FirstReportedAt
		p.builds = slices.Delete(p.builds, i, i+1)
	}
	p.builds = append(p.builds, b)
	return nil
}

// ReadBuild implements provider.Orchestrations.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Build{}, err
	}
	defer p.mu.Unlock()
	for i := range p.builds {
		if p.builds[i].ID == id {
			return p.builds[i], nil
		}
	}
	return provider.Build{}, fmt.Errorf("fake: build %q: %w", id, provider.ErrNotFound)
}

// registered reports whether a build has the orchestration. Before the first report, every name is registered, because
// the start causes that report.
func (p *Provider) registered(name, version string) bool {
	for i := range p.builds {
		versions, known := p.builds[i].Orchestrations[name]
		if known && (version == "" || slices.Contains(versions, version)) {
			return true
		}
	}
	return len(p.builds) == 0
}

// askForReport requests a report of the build, at most once a minute.
func (p *Provider) askForReport() {
	if now := p.now(); now.Sub(p.wakeAsked) >= time.Minute {
		p.wakeAsked = now
		p.sendMessages(provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID})
	}
}

// encode returns the JSON of a value of package provider, which can always be encoded.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakeprovider: " + err.Error())
	}
	return string(b)
}
