package hubadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/perdure/perdure/provider"
)

// lastWrite limits the last write of a pause, which is made even if the context has ended.
const lastWrite = 10 * time.Second

// MissingTriggersError is returned by Admin.Resume if mappings that Pause disabled no longer exist, because they were
// replaced or the hub's table was restored. Mappings that replaced them may be disabled. Only a resume of all mappings
// enables the replacements.
type MissingTriggersError struct {
	// UUIDs are the UUIDs of the missing mappings.
	UUIDs []string
}

func (e *MissingTriggersError) Error() string {
	return "hubadmin: mappings that perdure pause disabled no longer exist: " + strings.Join(e.UUIDs, ", ")
}

// errConcurrentChange means that another pause, resume or deployment runs at the same time.
var errConcurrentChange = errors.New("concurrent change by another pause, resume or deployment; " +
	"wait until it has ended (check the stack's events)")

// errReplaced means that a mapping was deleted while Pause or Resume changed it.
var errReplaced = errors.New("the mapping no longer exists because a deployment replaced or removed it; " +
	"wait until the deployment has ended (check the stack's events)")

// PauseInProgressError is returned by Admin.Resume if a pause started and did not complete. The pause was interrupted,
// or it is still running and can disable more mappings. The mappings are enabled, and stay recorded as paused.
type PauseInProgressError struct {
	// Since is the time when the pause started. Until is the time by which a running pause has ended.
	Since, Until time.Time
}

func (e *PauseInProgressError) Error() string {
	return fmt.Sprintf("hubadmin: a pause that started at %s did not complete, and may still disable mappings until %s",
		e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
}

// Pause disables the enabled mappings of the hub's queues and the sweeper's rule. It waits until they are disabled, and
// returns all mappings. Pause records the mappings that it disables in the hub's table, and Resume enables only the
// recorded ones. Pause is idempotent. After an error, repeat Pause to continue. It returns an error if another pause,
// resume or deployment changes the mappings at the same time.
func (h *Admin) Pause(ctx context.Context) ([]Mapping, error) {
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
			continue // if a concurrent resume enables the mapping now, the check at the end of Pause returns an error
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
	err = h.setAll(ctx, chosen, false, func(uuid string, requested bool) error {
		if requested {
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
			return after, fmt.Errorf("hubadmin: mapping %s is %s: %w", m.UUID, m.State, errConcurrentChange)
		}
	}
	return after, err
}

// Resume enables the mappings and the rule that Pause disabled. If all is true, it enables every mapping of the hub's
// queues and every rule of its sweeper. It waits until they are enabled, and returns all mappings. Resume removes each
// mapping from the record as soon as Lambda starts to enable it, so that later calls ignore the mapping. After an
// error, repeat Resume to continue.
//
// Resume returns these errors:
//   - provider.ErrNotFound if all is false and no mapping is recorded as paused.
//   - *MissingTriggersError if all is false and recorded mappings no longer exist. The others are enabled.
//   - *PauseInProgressError if a pause may still be running. The mappings are enabled, and stay recorded.
func (h *Admin) Resume(ctx context.Context, all bool) ([]Mapping, error) {
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
		case written.uuids[m.UUID], m.State == stateEnabling: // an earlier resume enables the mapping, so only wait
			chosen = append(chosen, *m)
		}
	}
	if len(written.uuids)+len(chosen) == 0 && !all {
		return there, fmt.Errorf("hubadmin: resume hub %q: no mapping is recorded as paused: %w",
			h.Config.Name, provider.ErrNotFound)
	}
	if err := h.enable(ctx, &written, chosen, since); err != nil {
		return there, err
	}
	if err := h.missing(ctx, &written, there, all); err != nil {
		return there, err
	}
	return h.Mappings(ctx)
}

// enable enables mappings. It removes them, and the mappings that another caller disabled since, from the record.
func (h *Admin) enable(ctx context.Context, written *paused, chosen []Mapping, since []string) error {
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
		return &PauseInProgressError{Since: written.pausing, Until: over}
	}
	return err
}

// missing returns an error if recorded mappings no longer exist. If all is true, it removes them from the record.
func (h *Admin) missing(ctx context.Context, written *paused, there []Mapping, all bool) error {
	var missing []string
	for uuid := range written.uuids {
		if !slices.ContainsFunc(there, func(m Mapping) bool { return m.UUID == uuid }) {
			missing = append(missing, uuid)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 && !all {
		return &MissingTriggersError{UUIDs: missing}
	}
	return h.forget(ctx, written, missing...)
}

var passing = retry.IsErrorRetryables(append(retry.DefaultRetryables,
	retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}))

// IsTransient reports whether err is transient: AWS throttled the request, failed temporarily or did not respond.
func IsTransient(err error) bool { return passing.IsErrorRetryable(err) == aws.TrueTernary }
