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

// betweenLooks is the interval between two polls of mappings that are changing.
const betweenLooks = time.Second

// change is the enabling or disabling of a mapping.
type change struct {
	uuid, state   string // state is the last known one
	way, end      string // the transitional and the final state
	asked, isOver bool
	seen          bool // the transitional state was seen
	told          bool
	refused       error // error of the last request
}

// tell calls note once, as soon as the mapping has the transitional or the final state.
func (c *change) tell(note func(uuid string, asked bool) error) error {
	if c.told || !c.asked && c.state != c.way && c.state != c.end {
		return nil
	}
	c.told = true
	return note(c.uuid, c.asked)
}

// late returns the error of a change that has not completed when err ends the wait. If the request was rejected or
// reverted, another caller changes the mapping.
func (c *change) late(err error) error {
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](c.refused)
	if undone := c.asked && (c.state == stateEnabled || c.state == stateDisabled); undone ||
		c.refused != nil && !throttled {
		err = errors.Join(errMeanwhile, err)
	}
	return fmt.Errorf("hubadmin: mapping %s is %s: %w", c.uuid, c.state, errors.Join(err, c.refused))
}

// setAll enables or disables mappings concurrently, and waits until all have the final state. It calls note for each
// mapping as soon as its state changes, and stops if note returns an error. asked is true if this call changed the
// state. A mapping that fails does not delay the others.
func (h *Admin) setAll(
	ctx context.Context, mappings []Mapping, enabled bool, note func(uuid string, asked bool) error,
) error {
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

// advance polls a mapping, and requests the change as soon as no other change of the mapping is in progress.
func (h *Admin) advance(ctx context.Context, c *change, enabled bool) error {
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
		return fmt.Errorf("the state is %s again: %w", c.state, errMeanwhile)
	case c.asked: // the state is eventually consistent
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

// isGone reports whether the mapping or rule does not exist.
func isGone(err error) bool {
	_, mapping := errors.AsType[*lambdatypes.ResourceNotFoundException](err)
	_, rule := errors.AsType[*eventstypes.ResourceNotFoundException](err)
	return mapping || rule
}

// isPassing reports whether err is temporary: another change of the mapping or its function is in progress, or the
// request was throttled.
func isPassing(err error) bool {
	_, inUse := errors.AsType[*lambdatypes.ResourceInUseException](err)
	_, conflict := errors.AsType[*lambdatypes.ResourceConflictException](err)
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](err)
	return inUse || conflict || throttled
}
