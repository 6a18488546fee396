package client

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
)

// The operations that interceptors learn of.
const (
	callStart          = "Start"
	callRaise          = "Raise"
	callCancel         = "Cancel"
	callCancelActivity = "CancelActivity"
	callTerminate      = "Terminate"
	callUpdate         = "Update"
	callPause          = "Pause"
	callResume         = "Resume"
	callPurge          = "Purge"
	callBulk           = "Bulk"
	callCancelJob      = "CancelJob"
	callComplete       = "Complete"
	callFail           = "Fail"
)

// WithInterceptors adds interceptors whose ClientCall functions run around the calls that perdure.ClientCall names. The
// first interceptor is the outermost one. Interceptors of earlier options come before those of later ones. A panic of
// an interceptor is logged to slog.Default.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(c *Client) { c.intercept = append(c.intercept, interceptors...) }
}

type callChain = intercept.Chain[perdure.ClientCall, error]

func interceptorsOf(all []perdure.Interceptor) *callChain {
	return intercept.New("a client call", slog.Default(), all, func(i perdure.Interceptor) intercept.Func[perdure.ClientCall, error] { return i.ClientCall })
}

// call makes a call of the hub within the interceptors that there are.
func (c *Client) call(ctx context.Context, operation, instanceID, name string, do func(context.Context) error) error {
	return c.interceptors.Run(ctx, perdure.ClientCall{Operation: operation, InstanceID: instanceID, Name: name}, do)
}

// traceOf is the trace context that a call sends along.
func traceOf(ctx context.Context) history.TraceParent {
	return history.TraceParent(perdure.TraceParentFrom(ctx))
}
