package perdure

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// SubOrchestrationCallOption is an option of CallSubOrchestration, CallSubOrchestrationByName and StartOrchestration.
type SubOrchestrationCallOption interface {
	applyToSubOrchestrationCall(c *subOrchestrationCall)
}

// subOrchestrationCall is a call with its options. An id that is given may be wrong, even empty.
type subOrchestrationCall struct {
	replay.SubOrchestrationCall
	hasID bool
}

type instanceIDOption string

func (id instanceIDOption) applyToSubOrchestrationCall(c *subOrchestrationCall) {
	c.InstanceID, c.hasID = string(id), true
}

// WithInstanceID gives the new instance an id, instead of one that derives from its caller's. It has 1 to 1,024 bytes of UTF-8
// without control characters; with WithRetry 16 less, which leaves room for the number of the attempt. Another id is an error of
// the call, and nothing is scheduled.
//
// An id that another instance has, be it running or over, fails the call, and is not tried again.
func WithInstanceID(id string) SubOrchestrationCallOption { return instanceIDOption(id) }

type delayOption time.Duration

func (d delayOption) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.Delay = time.Duration(d) }

// WithDelay delays the first turn of the new instance until d after ctx.Now: 0, which is at once, to ten years; another delay is an error of
// the call, and nothing is scheduled. Until then the instance is Pending, has its id, keeps the external events that are raised, and can be cancelled.
// With WithRetry the first attempt alone is delayed.
func WithDelay(d time.Duration) SubOrchestrationCallOption { return delayOption(d) }

// maxDelay is that of a client's start.
const maxDelay = 3653 * 24 * time.Hour

// CallSubOrchestration starts another orchestration, as an instance of its own, and returns the future of its result. fn
// only identifies it, as in CallActivity: it is the function that was registered. The version is the highest, or WithVersion's.
// Functions that cannot be identified (closures, one function under several names, methods through an interface) stop the turn with
// an error that explains it: use CallSubOrchestrationByName.
//
// The failure of the other orchestration is a *SubOrchestrationError. An input that does not encode, or of more than
// MaxPayloadBytes, fails the future, and nothing is scheduled. What is to outlive its caller is started with StartOrchestration.
func CallSubOrchestration[In, Out any](ctx *OrchestrationContext, fn func(*OrchestrationContext, In) (Out, error), in In, opts ...SubOrchestrationCallOption) *Future[Out] {
	name, why := ctx.registry.OrchestrationOf(fn)
	if why != "" {
		ctx.replay.Refuse(why)
	}
	return callSubOrchestration[Out](ctx, name, in, opts)
}

// CallSubOrchestrationByName is CallSubOrchestration for an orchestration that this program need not know. An empty name panics.
func CallSubOrchestrationByName[Out any](ctx *OrchestrationContext, name string, in any, opts ...SubOrchestrationCallOption) *Future[Out] {
	mustName("orchestration", name)
	return callSubOrchestration[Out](ctx, name, in, opts)
}

func callSubOrchestration[Out any](ctx *OrchestrationContext, name string, in any, opts []SubOrchestrationCallOption) *Future[Out] {
	c := newSubOrchestrationCall(name, opts)
	if err := c.complete(ctx, in); err != nil {
		return failed[Out](ctx, name, err)
	}
	return &Future[Out]{task: ctx.replay.ScheduleSubOrchestration(c.SubOrchestrationCall)}
}

// StartOrchestration starts another orchestration that goes on by itself, whatever becomes of this one, and returns the id of its
// instance. This one does not wait for it, and never learns how it ended, nor that it could not be started because its id is taken.
//
// The error is that of an input or an option that does not fit, or ctx.Err; nothing is scheduled then. WithRetry is such an option.
// An empty name panics.
func StartOrchestration(ctx *OrchestrationContext, name string, in any, opts ...SubOrchestrationCallOption) (instanceID string, err error) {
	mustName("orchestration", name)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	c := newSubOrchestrationCall(name, opts)
	if c.Retry != nil {
		return "", fmt.Errorf("perdure: StartOrchestration of %q: WithRetry needs somebody who waits, and nobody waits for what is started so: use CallSubOrchestrationByName", name)
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

// complete adds the input, if all is well.
func (c *subOrchestrationCall) complete(ctx *OrchestrationContext, in any) error {
	if err := c.checkID(); err != nil {
		return fmt.Errorf("perdure: WithInstanceID of orchestration %q: %w", c.Name, err)
	}
	if c.Delay < 0 || c.Delay > maxDelay {
		return fmt.Errorf("perdure: WithDelay of orchestration %q: must be 0 to %v, is %v", c.Name, maxDelay, c.Delay)
	}
	doc, err := ctx.encode(payload{input, orchestration, c.Name}, in)
	c.Input = doc
	return err
}

// checkID holds an id against the rule that clients' starts are held against.
func (c *subOrchestrationCall) checkID() error {
	longest, room := history.MaxInstanceIDBytes, ""
	if c.Retry != nil { // each attempt is an instance of its own
		longest -= history.RetrySuffixBytes
		room = fmt.Sprintf(": WithRetry needs %d bytes for the number of the attempt", history.RetrySuffixBytes)
	}
	if !c.hasID {
		return nil
	}
	return checkInstanceID(c.InstanceID, longest, room)
}

// checkInstanceID holds an id against the rule, of so many bytes at the most; room says why they are fewer than elsewhere.
func checkInstanceID(id string, longest int, room string) error {
	switch at := strings.IndexFunc(id, unicode.IsControl); {
	case id == "":
		return errors.New("the instance id is empty")
	case len(id) > longest:
		return fmt.Errorf("the instance id must be 1 to %d bytes, is %d%s", longest, len(id), room)
	case !utf8.ValidString(id):
		return fmt.Errorf("the instance id %q is not valid UTF-8", id)
	case at >= 0:
		return fmt.Errorf("the instance id %q has a control character at byte %d", id, at)
	default:
		return nil
	}
}
