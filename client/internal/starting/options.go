// Package starting starts instances. It checks the options of a start, derives IDs, encodes and stores the input, and
// resolves conflicts of instance IDs.
package starting

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Limits of a start.
const (
	MaxIdempotencyKeyBytes = 256
	MaxDelay               = 3653 * 24 * time.Hour // ten years with three leap days
)

// Policies for an instance ID that is in use (Options.IfExists).
const (
	UseExisting = "ignore"
	Replace     = "replace"
)

const (
	fieldIfExists = "ifExists"
	// FieldFrom is the field of Options.FromEvent.
	FieldFrom = "from"
)

// Options are the options of a start. A nil pointer means that the option is not set.
type Options struct {
	InstanceID     *string
	IdempotencyKey *string
	Version        string
	Delay          time.Duration
	Tags           map[string]string
	// VersionSet and TagsSet report whether the caller set them, for a restart, which has other defaults.
	VersionSet, TagsSet bool
	IfExists            *string
	// FromEvent is an option of a restart. Source is the history that the restart copies.
	FromEvent *int64
	Source    *provider.RestartSource
}

// Check checks the options and the name of the orchestration.
func (o *Options) Check(orchestration string) error {
	if err := inputcheck.Text("orchestration", orchestration, 1, inputcheck.MaxOrchestrationBytes); err != nil {
		return err
	}
	if o.InstanceID != nil {
		if err := inputcheck.InstanceID(*o.InstanceID); err != nil {
			return err
		}
	}
	if err := inputcheck.Text("version", o.Version, 0, inputcheck.MaxVersionBytes); err != nil {
		return err
	}
	if k := o.IdempotencyKey; k != nil && (*k == "" || len(*k) > MaxIdempotencyKeyBytes) {
		return &provider.FieldError{
			Field: "idempotencyKey", Problem: inputcheck.LengthProblem(*k, 1, MaxIdempotencyKeyBytes),
		}
	}
	if o.Delay < 0 || o.Delay > MaxDelay {
		return &provider.FieldError{
			Field: "delay", Problem: fmt.Sprintf("must be 0s to %s (ten years), is %s", MaxDelay, o.Delay),
		}
	}
	if err := o.checkIfExists(); err != nil {
		return err
	}
	if o.FromEvent != nil && o.Source == nil {
		return &provider.FieldError{Field: FieldFrom, Problem: "requires Restart"}
	}
	return inputcheck.Tags(o.Tags)
}

func (o *Options) checkIfExists() error {
	switch {
	case o.IfExists == nil:
		return nil
	case *o.IfExists != UseExisting && *o.IfExists != Replace:
		return &provider.FieldError{Field: fieldIfExists, Problem: fmt.Sprintf("must be %s or %s, is %q",
			UseExisting, Replace, provider.Excerpt(*o.IfExists))}
	case o.InstanceID == nil:
		return &provider.FieldError{Field: fieldIfExists, Problem: "requires an instance ID"}
	default:
		return nil
	}
}

// RejectIfExists returns an error if the options have a conflict policy, for calls that do not support it.
func (o *Options) RejectIfExists() error {
	if o.IfExists != nil {
		return &provider.FieldError{Field: fieldIfExists, Problem: "requires Start, StartOrRaiseEvent or StartOrUpdate"}
	}
	return nil
}
