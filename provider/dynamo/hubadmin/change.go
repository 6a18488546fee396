package hubadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	eventstypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// betweenLooks is how long changes of mappings are waited for before the next look.
const betweenLooks = time.Second

// change is that of a mapping: enabled or disabled, as Lambda's states on the way and in the end.
type change struct {
	uuid, state   string // as last seen
	way, end      string
	asked, isOver bool
	seen          bool // on the way
	told          bool
	refused       error // the last refusal, if the last request was refused
}

// tell calls note once, as soon as the mapping is on its way or there.
func (c *change) tell(note func(uuid string, asked bool) error) error {
	if c.told || !c.asked && c.state != c.way && c.state != c.end {
		return nil
	}
	c.told = true
	return note(c.uuid, c.asked)
}

// late is the error of a change that is not over when err ends the wait. What was asked for, and refused or undone until then, is another's doing.
func (c *change) late(err error) error {
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](c.refused)
	if undone := c.asked && (c.state == stateEnabled || c.state == stateDisabled); undone || c.refused != nil && !throttled {
		err = errors.Join(errMeanwhile, err)
	}
	return fmt.Errorf("hubadmin: mapping %s is %s: %w", c.uuid, c.state, errors.Join(err, c.refused))
}

// setAll enables or disables mappings, all at once, and waits until they are. As soon as one is on its way or there it calls note,
// whose error ends all; asked says whether this call has caused it. A mapping that fails holds up no other.
func (h *Hub) setAll(ctx context.Context, mappings []Mapping, enabled bool, note func(uuid string, asked bool) error) error {
	way, end := stateDisabling, stateDisabled
	if enabled {
		way, end = stateEnabling, stateEnabled
	}
	waiting := make([]*change, len(mappings))
	for i := range mappings {
		waiting[i] = &change{uuid: mappings[i].UUID, way: way, end: end}
	}

	var failed []error
	for {
		for _, c := range waiting {
			if err := h.advance(ctx, c, enabled); err != nil {
				if isGone(err) {
					err = errors.Join(errReplaced, err)
				}
				failed = append(failed, fmt.Errorf("hubadmin: mapping %s: %w", c.uuid, err))
				c.isOver = true
				continue
			}
			if err := c.tell(note); err != nil {
				return errors.Join(append(failed, err)...)
			}
		}

		waiting = slices.DeleteFunc(waiting, func(c *change) bool { return c.isOver })
		if len(waiting) == 0 {
			return errors.Join(failed...)
		}
		if err := h.Sleep(ctx, betweenLooks); err != nil {
			return errors.Join(append(failed, waiting[0].late(err))...)
		}
	}
}

// advance looks at a mapping, and asks for the change as soon as Lambda takes it: one that is being changed takes no other.
func (h *Hub) advance(ctx context.Context, c *change, enabled bool) error {
	state, err := h.stateOf(ctx, c.uuid)
	if isPassing(err) {
		c.refused = err
		return nil
	}
	if err != nil {
		return err
	}
	c.state = state
	c.isOver = c.state == c.end
	c.seen = c.seen || c.state == c.way

	settled := c.state == stateEnabled || c.state == stateDisabled
	switch {
	case c.isOver || !settled:
		return nil
	case c.asked && c.seen:
		return fmt.Errorf("is %s again: %w", c.state, errMeanwhile)
	case c.asked: // the state that is shown may lag behind
		return nil
	}
	err = h.ask(ctx, c.uuid, enabled)
	c.refused = err
	if isPassing(err) {
		return nil
	}
	c.asked = err == nil
	return err
}

// isGone reports whether there is no such mapping, or rule.
func isGone(err error) bool {
	_, mapping := errors.AsType[*lambdatypes.ResourceNotFoundException](err)
	_, rule := errors.AsType[*eventstypes.ResourceNotFoundException](err)
	return mapping || rule
}

// isPassing reports whether a change is refused for a while: another one of the mapping or its function is under way, or calls are throttled.
func isPassing(err error) bool {
	_, inUse := errors.AsType[*lambdatypes.ResourceInUseException](err)
	_, conflict := errors.AsType[*lambdatypes.ResourceConflictException](err)
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](err)
	return inUse || conflict || throttled
}
