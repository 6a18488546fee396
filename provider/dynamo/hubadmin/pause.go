package hubadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// lastWrite is how long the end of a pause may take, also where ctx has ended.
const lastWrite = 10 * time.Second

// MissingError means that mappings which Pause has disabled are not there any more: they were replaced, or the hub's table is of an
// earlier time. What took their place may be disabled, and only a resume of all mappings enables it.
type MissingError struct {
	// UUIDs are those of the mappings that are not there.
	UUIDs []string
}

func (e *MissingError) Error() string {
	return "hubadmin: mappings that were paused are not there any more: " + strings.Join(e.UUIDs, ", ")
}

// errMeanwhile means that a pause and a resume were under way at once, or one of them beside a deployment.
var errMeanwhile = errors.New("something else changes the mappings of this hub at the same time: a pause, a resume, or a deployment (look at the stack's events, and wait for its end)")

// errReplaced means that a mapping was deleted while it was to be changed.
var errReplaced = errors.New("it is not there any more: a deployment has replaced or removed it meanwhile (look at the stack's events, and wait for its end)")

// PausingError means that a pause has begun and not come to its end: it may be at work, and may disable mappings yet, or has died.
// The mappings are enabled, and stay written down.
type PausingError struct {
	// Since is when it began. Until is when it is over, whatever became of it.
	Since, Until time.Time
}

func (e *PausingError) Error() string {
	return fmt.Sprintf("hubadmin: a pause that began at %s has not come to its end, and may disable mappings until %s", e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
}

// Pause disables the enabled mappings of the hub's queues and the rule of its watch, and returns all of them when they are. First it writes down
// which those are, in the hub's table: Resume enables these alone, since others may be disabled for a reason. Repeating it
// is harmless, and goes on where another call has died.
func (h *Hub) Pause(ctx context.Context) ([]Mapping, error) {
	before, err := h.Mappings(ctx)
	if err != nil {
		return nil, err
	}
	written, err := h.readPaused(ctx)
	if err != nil {
		return before, err
	}
	var enabled, since []string
	var chosen []Mapping
	for i := range before {
		m := &before[i]
		if written.disabledSince(m) {
			since = append(since, m.UUID)
		}
		if m.State == stateDisabled {
			continue // what a resume enables from here on is not written down: the end of the pause finds it enabled, and says so
		}
		chosen = append(chosen, *m)
		if m.State != stateDisabling || written.uuids[m.UUID] {
			enabled = append(enabled, m.UUID)
		}
	}
	if err := h.beginPause(ctx, enabled, since); err != nil {
		return before, err
	}

	var disabled []string
	err = h.setAll(ctx, chosen, false, func(uuid string, asked bool) error {
		if asked {
			disabled = append(disabled, uuid)
		}
		return nil
	})
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer stop()
	if err := errors.Join(err, h.endPause(limited, disabled)); err != nil {
		return before, err
	}

	after, err := h.Mappings(ctx)
	for i := range after {
		if m := &after[i]; m.State != stateDisabled {
			return after, fmt.Errorf("hubadmin: mapping %s is %s: %w", m.UUID, m.State, errMeanwhile)
		}
	}
	return after, err
}

// Resume enables the mappings and the rule that Pause has disabled, or with all every mapping of the hub's queues and every rule of its
// watch, and returns all of them when they are. Each is forgotten as soon as Lambda begins to enable it: a later call leaves alone what
// somebody disables then. Without all, it returns provider.ErrNotFound where nothing is written down, and a MissingError where mappings
// are that are not there any more: the others are enabled. While a pause may be at work it forgets nothing, and returns a PausingError.
func (h *Hub) Resume(ctx context.Context, all bool) ([]Mapping, error) {
	there, err := h.Mappings(ctx)
	if err != nil {
		return nil, err
	}
	written, err := h.readPaused(ctx)
	if err != nil {
		return there, err
	}

	var chosen []Mapping
	var since []string
	for i := range there {
		switch m := &there[i]; {
		case all:
			chosen = append(chosen, *m)
		case written.disabledSince(m):
			since = append(since, m.UUID)
		case written.uuids[m.UUID], m.State == stateEnabling: // that was forgotten, and is waited for
			chosen = append(chosen, *m)
		}
	}
	if len(written.uuids)+len(chosen) == 0 && !all {
		return there, fmt.Errorf("hubadmin: hub %q: what was paused: %w", h.Where.Name, provider.ErrNotFound)
	}
	if err := h.enable(ctx, &written, chosen, since); err != nil {
		return there, err
	}
	if err := h.missing(ctx, &written, there, all); err != nil {
		return there, err
	}
	return h.Mappings(ctx)
}

// enable enables mappings, and forgets them and what somebody has disabled since.
func (h *Hub) enable(ctx context.Context, written *paused, chosen []Mapping, since []string) error {
	over := written.pausing.Add(mostPausing)
	pausing := !written.pausing.IsZero() && h.Now().Before(over)
	if !pausing {
		if err := errors.Join(h.forget(ctx, written, since...), h.beginResume(ctx, written, chosen)); err != nil {
			return err
		}
	}
	err := h.setAll(ctx, chosen, true, func(uuid string, _ bool) error {
		if pausing || !written.uuids[uuid] {
			return nil
		}
		return h.forget(ctx, written, uuid)
	})
	if err == nil && pausing {
		return &PausingError{Since: written.pausing, Until: over}
	}
	return err
}

// missing returns an error where mappings are written down that are not there any more. With all it forgets them.
func (h *Hub) missing(ctx context.Context, written *paused, there []Mapping, all bool) error {
	var missing []string
	for uuid := range written.uuids {
		if !slices.ContainsFunc(there, func(m Mapping) bool { return m.UUID == uuid }) {
			missing = append(missing, uuid)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 && !all {
		return &MissingError{UUIDs: missing}
	}
	return h.forget(ctx, written, missing...)
}
