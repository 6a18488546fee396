package perdure

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// SubOrchestrationCallOption is an option of CallSubOrchestration, CallSubOrchestrationByName and StartOrchestration.
type SubOrchestrationCallOption interface {
	applyToSubOrchestrationCall(c *subOrchestrationCall)
}

// subOrchestrationCall is a call of an orchestration with its options. If hasID is true, the ID can be invalid, even
// empty.
type subOrchestrationCall struct {
	replay.SubOrchestrationCall
	hasID bool
}

type subOrchestrationCallOption func(c *subOrchestrationCall)

func (o subOrchestrationCallOption) applyToSubOrchestrationCall(c *subOrchestrationCall) { o(c) }

// WithInstanceID sets the ID of the new instance. Without it, the ID is derived from the caller's ID. The ID is 1 to
// 1,024 bytes of UTF-8 without control characters. With WithRetry, the maximum is 1,008 bytes, because the ID of a
// retry has a suffix. If the ID is invalid, the call fails and nothing is scheduled. If another instance has the ID,
// even an ended instance, the call fails and is not retried.
func WithInstanceID(id string) SubOrchestrationCallOption {
	return subOrchestrationCallOption(func(c *subOrchestrationCall) { c.InstanceID, c.hasID = id, true })
}

// WithDelay delays the first turn of the new instance until d after ctx.Now, from 0 to ten years. If d is out of range,
// the call fails and nothing is scheduled. Until the first turn the instance is Pending: it has its ID, stores external
// events, and can be cancelled. With WithRetry, only the first attempt is delayed.
func WithDelay(d time.Duration) SubOrchestrationCallOption {
	return subOrchestrationCallOption(func(c *subOrchestrationCall) { c.Delay = d })
}

// CallSubOrchestration starts another orchestration as its own instance and returns the future of its result.
// CallSubOrchestration uses fn only to identify the orchestration and does not call it. Pass the registered function.
// The instance runs the highest version, or the version of WithVersion. CallSubOrchestration cannot identify a closure,
// an interface method, or a function that is registered under several names, and stops the turn with an error. Use
// CallSubOrchestrationByName for such functions.
//
// If the other orchestration fails, the future fails with a *SubOrchestrationError. If the input cannot be encoded or
// is larger than MaxPayloadBytes, the future fails and nothing is scheduled. When the caller ends, the instance is
// cancelled. To start an instance that outlives its caller, use StartOrchestration.
func CallSubOrchestration[In, Out any](
	ctx *OrchestrationContext, fn func(*OrchestrationContext, In) (Out, error), in In,
	opts ...SubOrchestrationCallOption,
) *Future[Out] {
	name, why := ctx.registry.OrchestrationOf(fn)
	if why != "" {
		ctx.replay.Refuse(why)
	}
	return callSubOrchestration[Out](ctx, name, in, opts)
}

// CallSubOrchestrationByName starts the orchestration of that name like CallSubOrchestration. The orchestration does
// not have to be registered in this program. CallSubOrchestrationByName panics if name is empty or not valid UTF-8.
func CallSubOrchestrationByName[Out any](
	ctx *OrchestrationContext, name string, in any, opts ...SubOrchestrationCallOption,
) *Future[Out] {
	names.Must("orchestration", name)
	return callSubOrchestration[Out](ctx, name, in, opts)
}

func callSubOrchestration[Out any](
	ctx *OrchestrationContext, name string, in any, opts []SubOrchestrationCallOption,
) *Future[Out] {
	c := newSubOrchestrationCall(name, opts)
	if err := c.complete(ctx, in); err != nil {
		return failed[Out](ctx, name, err)
	}
	return &Future[Out]{task: ctx.replay.ScheduleSubOrchestration(c.SubOrchestrationCall)}
}

// StartOrchestration starts a detached orchestration and returns the ID of its instance. The instance outlives its
// caller. The caller does not wait for the instance and gets no result. If the ID is already in use, no instance
// starts, and the caller gets no error.
//
// StartOrchestration returns an error, and schedules nothing, if the scope of ctx is cancelled (ctx.Err), the input or
// an option is invalid, or WithRetry is used. It panics if name is empty or not valid UTF-8.
func StartOrchestration(
	ctx *OrchestrationContext, name string, in any, opts ...SubOrchestrationCallOption,
) (instanceID string, err error) {
	names.Must("orchestration", name)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	c := newSubOrchestrationCall(name, opts)
	if c.Retry != nil {
		return "", fmt.Errorf(
			"perdure: StartOrchestration %q: WithRetry is not supported; use CallSubOrchestrationByName", name,
		)
	}
	if err := c.complete(ctx, in); err != nil {
		return "", err
	}
	return ctx.replay.StartDetached(c.SubOrchestrationCall), nil
}

func newSubOrchestrationCall(name string, opts []SubOrchestrationCallOption) subOrchestrationCall {
	c := subOrchestrationCall{SubOrchestrationCall: replay.SubOrchestrationCall{Name: name}}
	for _, opt := range opts {
		opt.applyToSubOrchestrationCall(&c)
	}
	return c
}

// complete checks the call and adds its input.
func (c *subOrchestrationCall) complete(ctx *OrchestrationContext, in any) (err error) {
	if c.hasID {
		err = names.CheckNewInstance("WithInstanceID", c.Name, c.InstanceID, c.Retry != nil)
	}
	if err == nil {
		err = names.CheckDelay("WithDelay", c.Name, c.Delay)
	}
	if err != nil {
		return err
	}
	c.Input, err = ctx.encode(payloadjson.Input(payloadjson.Orchestration, c.Name), in)
	return err
}
