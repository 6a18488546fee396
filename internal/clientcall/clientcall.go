// Package clientcall contains code that the packages client and admin share. It identifies the caller of a call, and
// runs interceptors around the call.
package clientcall

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// Operations of perdure.ClientCall.
const (
	Start          = "Start"
	Raise          = "Raise"
	Cancel         = "Cancel"
	CancelActivity = "CancelActivity"
	Terminate      = "Terminate"
	Update         = "Update"
	Pause          = "Pause"
	Resume         = "Resume"
	Annotate       = "Annotate"
	Purge          = "Purge"
	Bulk           = "Bulk"
	CancelJob      = "CancelJob"
	Complete       = "Complete"
	Fail           = "Fail"
)

// Identifier is a backend that returns the IAM identity of its credentials.
type Identifier interface {
	// Caller returns the IAM identity, or an empty string if it is unknown. Only the first call may make a request.
	Caller(ctx context.Context) string
}

// Identify is a function that returns the name of the caller, or an empty string if it is unknown.
type Identify func(ctx context.Context) string

// IdentifyBy returns the Identify function of a backend's credentials, or nil if the backend does not implement
// Identifier.
func IdentifyBy[H any](backend H) Identify {
	if i, ok := unwrap.As[Identifier](backend); ok {
		return i.Caller
	}
	return nil
}

// Fixed returns an Identify function for a fixed name.
func Fixed(name string) Identify { return func(context.Context) string { return name } }

// Runner runs calls. It is safe for concurrent use.
type Runner struct {
	identify     Identify // nil: unknown
	interceptors *intercept.Chain[perdure.ClientCall, error]
}

// NewRunner returns a Runner. The first interceptor is the outermost one. identify may be nil.
func NewRunner(identify Identify, interceptors []perdure.Interceptor) *Runner {
	clientCall := func(i perdure.Interceptor) intercept.Func[perdure.ClientCall, error] { return i.ClientCall }
	return &Runner{
		identify: identify, interceptors: intercept.New("a client call", slog.Default(), interceptors, clientCall),
	}
}

// Caller returns the name of the caller as histories and jobs record it. It is empty if the caller is unknown. The name
// in ctx (client.ContextWithCaller) takes precedence.
func (r *Runner) Caller(ctx context.Context) string {
	if name, known := provider.RequesterOf(ctx); known {
		return history.Requester(name)
	}
	if r.identify == nil {
		return ""
	}
	return history.Requester(r.identify(ctx))
}

// Run runs a call inside the interceptors.
func (r *Runner) Run(ctx context.Context, call perdure.ClientCall, do func(context.Context) error) error {
	return r.interceptors.Run(ctx, call, do)
}
