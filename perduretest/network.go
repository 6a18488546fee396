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
)

// Goroutines that wait for the network hold virtual time still, and those of a connection that is kept alive wait as long as it lives. So what uses the
// network runs outside of the bubble, while virtual time waits for it.

// WithNetwork runs activities in real time, while virtual time stops. Use it for activities that use the network, files
// or processes, such as an HTTP client with keep-alive connections to a server of the test. Without names it applies to
// all activities. Activities with a stub are not affected.
//
// These activities run one at a time. Their context ends after half of the time of WithHangTimeout, and never because
// of a cancellation or an activity timeout, because no virtual time passes. They and the servers that they call may use
// Env.Client, but cannot wait for an instance.
func WithNetwork(activities ...string) Option {
	return option(func(o *options) {
		o.network = append(o.network, activities...)
		o.allNetwork = o.allNetwork || len(activities) == 0
	})
}

// network runs activities outside of the bubble.
type network struct {
	all      bool
	names    []string
	patience time.Duration
	// tickets are made outside of the bubble, as their channels must be.
	tickets chan *ticket
	running sync.Map // tickets by the goroutine that serves them
	// calls are what others than the activity that runs outside, such as a server that it has called, have done in the bubble meanwhile.
	calls chan func()
}

// ticket has one activity run outside.
type ticket struct {
	work  chan func()
	calls chan func() // what the activity has done in the bubble
	done  chan struct{}
}

func newNetwork(o *options) *network {
	return &network{all: o.allNetwork, names: o.network, patience: o.patience, tickets: make(chan *ticket), calls: make(chan func())}
}

// isBusy reports whether an activity runs outside.
func (n *network) isBusy() (busy bool) {
	n.running.Range(func(any, any) bool {
		busy = true
		return false
	})
	return busy
}

// concerns reports whether an activity runs outside.
func (n *network) concerns(activity string) bool { return n.all || slices.Contains(n.names, activity) }

// issue makes tickets until over is closed.
func (n *network) issue(over <-chan struct{}) {
	for n.all || len(n.names) > 0 {
		t := &ticket{work: make(chan func()), calls: make(chan func()), done: make(chan struct{})}
		select {
		case n.tickets <- t:
			go n.serve(t)
		case <-over:
			return
		}
	}
}

func (n *network) serve(t *ticket) {
	work := <-t.work
	id := thisGoroutine().id
	n.running.Store(id, t)
	defer close(t.done)
	defer n.running.Delete(id)
	work()
}

// ticket returns that of the calling goroutine; nil where it has none.
func (n *network) ticket() *ticket {
	if !n.all && len(n.names) == 0 {
		return nil
	}
	t, ok := n.running.Load(thisGoroutine().id)
	if !ok {
		return nil
	}
	return t.(*ticket) //nolint:forcetypeassert // nothing else is stored
}

// goroutines are those that run activities now.
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

// errEnded is the error of an activity that ended its goroutine.
var errEnded = errors.New("goroutine was ended by runtime.Goexit")

// run runs an activity's code outside, and does in the bubble what it asks for meanwhile.
func (n *network) run(ctx context.Context, code activityCode, input json.RawMessage) (out json.RawMessage, f *history.Failure) {
	beats := &keptBeats{}
	heartbeats, some := activityctx.HeartbeatsFrom(ctx)
	if some {
		beats.last = heartbeats.LastDetails()
	}

	f = &history.Failure{Message: errEnded.Error()}
	t := <-n.tickets
	t.work <- func() {
		ctx, cancel := context.WithTimeout(activityctx.WithHeartbeats(valuesOf{ctx}, beats), n.patience/2)
		defer cancel()
		out, f = code(ctx, input) //nolint:contextcheck // it has the values of the context, and an end of its own
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
			beats.handOn(heartbeats)
		}
		return out, f
	}
}

// valuesOf has the values of a context of the bubble, whose end is of the bubble.
type valuesOf struct {
	context.Context //nolint:containedctx // it is one
}

func (valuesOf) Deadline() (at time.Time, ok bool) { return at, false }
func (valuesOf) Done() <-chan struct{}             { return nil }
func (valuesOf) Err() error                        { return nil }

// keptBeats keeps the heartbeats of an activity until it is over: no virtual time passes before.
type keptBeats struct {
	last json.RawMessage

	mu   sync.Mutex
	kept []beat
}

type beat struct {
	details json.RawMessage
	err     error
}

// Record implements activityctx.Heartbeats.
func (k *keptBeats) Record(details json.RawMessage, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, beat{details, err})
}

// LastDetails implements activityctx.Heartbeats.
func (k *keptBeats) LastDetails() json.RawMessage { return k.last }

func (k *keptBeats) handOn(to activityctx.Heartbeats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.kept {
		to.Record(b.details, b.err)
	}
}
