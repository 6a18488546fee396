package perduretest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/perduretest/internal/goroutines"
)

// Virtual time stops while a goroutine waits for the network, and a keep-alive connection always waits. Activities that
// use the network therefore run outside of the bubble, and virtual time waits for them.

// WithNetwork runs activities in real time, while virtual time stops. Use it for activities that use the network, files
// or processes, such as an HTTP client with keep-alive connections to a server of the test. Without names it applies to
// all activities. Activities with a stub are not affected.
//
// These activities run one at a time. Their context ends after half of the duration of WithHangTimeout. A cancellation
// or an activity timeout does not end the context, because no virtual time passes. These activities and the servers
// that they call may use Env.Client, but cannot wait for an instance.
func WithNetwork(activities ...string) Option {
	return option(func(o *options) {
		o.network = append(o.network, activities...)
		o.allNetwork = o.allNetwork || len(activities) == 0
	})
}

// network runs activities outside of the bubble.
type network struct {
	all         bool
	names       []string
	hangTimeout time.Duration
	// tickets are created outside of the bubble, because channels of the bubble cannot be used outside of it.
	tickets chan *ticket
	running sync.Map // maps the ID of a goroutine to its ticket
	// calls receives calls for the bubble from other goroutines, such as a server that the running activity calls.
	calls chan func()
}

// ticket runs one activity outside of the bubble.
type ticket struct {
	work  chan func()
	calls chan func() // calls of the activity for the bubble
	done  chan struct{}
}

func newNetwork(o *options) *network {
	return &network{
		all: o.allNetwork, names: o.network, hangTimeout: o.hangTimeout,
		tickets: make(chan *ticket), calls: make(chan func()),
	}
}

// isBusy reports whether an activity is running outside of the bubble.
func (n *network) isBusy() (busy bool) {
	n.running.Range(func(any, any) bool {
		busy = true
		return false
	})
	return busy
}

// concerns reports whether an activity runs outside of the bubble.
func (n *network) concerns(activity string) bool { return n.all || slices.Contains(n.names, activity) }

// issue creates tickets until ended is closed.
func (n *network) issue(ended <-chan struct{}) {
	for n.all || len(n.names) > 0 {
		t := &ticket{work: make(chan func()), calls: make(chan func()), done: make(chan struct{})}
		select {
		case n.tickets <- t:
			go n.serve(t)
		case <-ended:
			return
		}
	}
}

func (n *network) serve(t *ticket) {
	work := <-t.work
	id := goroutines.Current().ID
	n.running.Store(id, t)
	defer close(t.done)
	defer n.running.Delete(id)
	work()
}

// ticket returns the ticket of the calling goroutine, or nil.
func (n *network) ticket() *ticket {
	if !n.all && len(n.names) == 0 {
		return nil
	}
	t, ok := n.running.Load(goroutines.Current().ID)
	if !ok {
		return nil
	}
	return t.(*ticket) //nolint:forcetypeassert // nothing else is stored
}

// goroutines returns the IDs of the goroutines that run activities.
func (n *network) goroutines() (ids []string) {
	n.running.Range(func(id, _ any) bool {
		ids = append(ids, id.(string)) //nolint:forcetypeassert // nothing else is stored
		return true
	})
	slices.Sort(ids)
	return ids
}

// do runs f in the bubble.
func (t *ticket) do(f func()) {
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// errEnded is the error of an activity that called runtime.Goexit.
var errEnded = errors.New("goroutine was ended by runtime.Goexit")

// run runs the code of an activity outside of the bubble, and its calls in the bubble.
func (n *network) run(
	ctx context.Context, code activityCode, input json.RawMessage,
) (out json.RawMessage, f *history.Failure) {
	buffer := &heartbeatBuffer{}
	heartbeats, some := activityctx.HeartbeatsFrom(ctx)
	if some {
		buffer.last = heartbeats.LastDetails()
	}

	f = &history.Failure{Message: errEnded.Error()}
	t := <-n.tickets
	t.work <- func() {
		ctx, cancel := context.WithTimeout(activityctx.WithHeartbeats(valuesOf{ctx}, buffer), n.hangTimeout/2)
		defer cancel()
		out, f = code(ctx, input) //nolint:contextcheck // the context has the same values and its own end
	}
	for {
		select {
		case call := <-t.calls:
			call()
			continue
		case call := <-n.calls:
			call()
			continue
		case <-t.done:
		}
		if some {
			buffer.flush(heartbeats)
		}
		return out, f
	}
}

// valuesOf is a context with the values of another context, but without its end. The end belongs to the bubble.
type valuesOf struct {
	context.Context //nolint:containedctx // valuesOf is a context
}

func (valuesOf) Deadline() (at time.Time, ok bool) { return at, false }
func (valuesOf) Done() <-chan struct{}             { return nil }
func (valuesOf) Err() error                        { return nil }

// heartbeatBuffer stores the heartbeats of an activity until the activity has ended, because no virtual time passes
// before its end.
type heartbeatBuffer struct {
	last json.RawMessage

	mu      sync.Mutex
	records []heartbeat
}

type heartbeat struct {
	details json.RawMessage
	err     error
}

// Record implements activityctx.Heartbeats.
func (k *heartbeatBuffer) Record(details json.RawMessage, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, heartbeat{details, err})
}

// LastDetails implements activityctx.Heartbeats.
func (k *heartbeatBuffer) LastDetails() json.RawMessage { return k.last }

func (k *heartbeatBuffer) flush(to activityctx.Heartbeats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.records {
		to.Record(b.details, b.err)
	}
}
