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

// pollInterval is the interval between two polls of mappings that are changing.
const pollInterval = time.Second

// change is the enabling or disabling of a mapping.
type change struct {
	uuid, state        string // state is the last known one
	transition, target string // the transitional and the final state
	requested, done    bool
	started            bool // the transitional state was seen
	reported           bool
	lastErr            error // error of the last request
}

// report calls note once, when the mapping first has the transitional or the final state.
func (c *change) report(note func(uuid string, requested bool) error) error {
	if c.reported || !c.requested && c.state != c.transition && c.state != c.target {
		return nil
	}
	c.reported = true
	return note(c.uuid, c.requested)
}

// timeout returns the error of a change that has not completed when err ends the wait. If the request was rejected or
// reverted, another caller changes the mapping.
func (c *change) timeout(err error) error {
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](c.lastErr)
	if undone := c.requested && (c.state == stateEnabled || c.state == stateDisabled); undone ||
		c.lastErr != nil && !throttled {
		err = errors.Join(errConcurrentChange, err)
	}
	return fmt.Errorf("hubadmin: mapping %s is %s: %w", c.uuid, c.state, errors.Join(err, c.lastErr))
}

// setAll enables or disables mappings concurrently, and waits until all have the final state. It calls note for each
// mapping as soon as its state changes, and stops if note returns an error. requested is true if this call changed the
// state. A mapping that fails does not delay the others.
func (h *Admin) setAll(
	ctx context.Context, mappings []Mapping, enabled bool, note func(uuid string, requested bool) error,
) error {
	transition, target := stateDisabling, stateDisabled
	if enabled {
		transition, target = stateEnabling, stateEnabled
	}
	waiting := make([]*change, len(mappings))
	for i := range mappings {
		waiting[i] = &change{uuid: mappings[i].UUID, transition: transition, target: target}
	}

	var failed []error
	for {
		for _, c := range waiting {
			if err := h.advance(ctx, c, enabled); err != nil {
				if isGone(err) {
					err = errors.Join(errReplaced, err)
				}
				failed = append(failed, fmt.Errorf("hubadmin: mapping %s: %w", c.uuid, err))
				c.done = true
				continue
			}
			if err := c.report(note); err != nil {
				return errors.Join(append(failed, err)...)
			}
		}

		waiting = slices.DeleteFunc(waiting, func(c *change) bool { return c.done })
		if len(waiting) == 0 {
			return errors.Join(failed...)
		}
		if err := h.Sleep(ctx, pollInterval); err != nil {
			return errors.Join(append(failed, waiting[0].timeout(err))...)
		}
	}
}

// advance polls a mapping, and requests the change as soon as no other change of the mapping is in progress.
func (h *Admin) advance(ctx context.Context, c *change, enabled bool) error {
	state, err := h.stateOf(ctx, c.uuid)
	if isTemporary(err) {
		c.lastErr = err
		return nil
	}
	if err != nil {
		return err
	}
	c.state = state
	c.done = c.state == c.target
	c.started = c.started || c.state == c.transition

	settled := c.state == stateEnabled || c.state == stateDisabled
	switch {
	case c.done || !settled:
		return nil
	case c.requested && c.started:
		return fmt.Errorf("the state is %s again: %w", c.state, errConcurrentChange)
	case c.requested: // the state is eventually consistent
		return nil
	}
	err = h.setState(ctx, c.uuid, enabled)
	c.lastErr = err
	if isTemporary(err) {
		return nil
	}
	c.requested = err == nil
	return err
}

// isGone reports whether the mapping or rule does not exist.
func isGone(err error) bool {
	_, mapping := errors.AsType[*lambdatypes.ResourceNotFoundException](err)
	_, rule := errors.AsType[*eventstypes.ResourceNotFoundException](err)
	return mapping || rule
}

// isTemporary reports whether err is temporary: another change of the mapping or its function is in progress, or the
// request was throttled.
func isTemporary(err error) bool {
	_, inUse := errors.AsType[*lambdatypes.ResourceInUseException](err)
	_, conflict := errors.AsType[*lambdatypes.ResourceConflictException](err)
	_, throttled := errors.AsType[*lambdatypes.TooManyRequestsException](err)
	return inUse || conflict || throttled
}
