package simhub

import (
	"context"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/simaws"
)

// FaultInjector injects crashes and outages into a running hub whose option Intercept is FaultInjector.Intercept. Its
// methods are safe for concurrent use.
type FaultInjector struct {
	mu    sync.Mutex
	calls int64
	crash crash
	until map[string]time.Time
}

// Intercept is the interceptor for the hub.
func (t *FaultInjector) Intercept(ctx context.Context, c simaws.Call, next func() error) error {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv != nil && inv.crashed.Load() {
		return ErrCrashed
	}
	crashesNow := false
	after := false
	if inv != nil && !inv.client {
		crashesNow, after = t.count()
	}
	if crashesNow && !after {
		inv.crashed.Store(true)
		return ErrCrashed
	}
	err := t.unavailable(c)
	if err == nil {
		err = next()
	}
	if crashesNow {
		inv.crashed.Store(true)
		return ErrCrashed
	}
	return err
}

// crash is the call at which a process crashes; 0 means none.
type crash struct {
	at    int64
	after bool // the call is done
}

// count counts a call of a function, and reports whether its process crashes at the call.
func (t *FaultInjector) count() (crashesNow, after bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return t.calls == t.crash.at, t.crash.after
}

// mappingDelete is the only call of an event source mapping that needs its queue.
const mappingDelete = "DeleteMessageBatch"

// unavailable returns the error of a service during an outage, or nil.
func (t *FaultInjector) unavailable(c simaws.Call) error {
	service := c.Service
	if service == lambda && c.Operation == mappingDelete {
		service = "SQS"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if bubbleTime().Before(t.until[service]) {
		return &smithy.GenericAPIError{
			Code: "ServiceUnavailable", Message: service + " is not available", Fault: smithy.FaultServer,
		}
	}
	return nil
}

// CrashAt kills the process of a function that makes the n-th call from now on, before or after the call is executed.
func (t *FaultInjector) CrashAt(n int64, after bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crash = crash{t.calls + n, after}
}

// Calls returns the number of calls that functions have made.
func (t *FaultInjector) Calls() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls
}

// Fail makes all calls of a service fail until a time.
func (t *FaultInjector) Fail(service string, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil {
		t.until = map[string]time.Time{}
	}
	t.until[service] = until
}
