// Package wire encodes and decodes the bodies of records, which are inbox messages, work items and timers. Package
// provider defines their types and their JSON.
package wire

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

const fieldName = "name"

// Limits of fields that the engine or the code sets, in bytes.
const (
	maxStartIDBytes     = 1024
	maxExecutionIDBytes = 256
	maxReasonBytes      = 256
	// maxNameBytes is the maximum size of the name and the version of an orchestration that code starts.
	maxNameBytes = 16 << 10
)

// missing is the Problem of a missing field.
const missing = "is missing"

// DecodeMessage decodes an inbox message. It returns an error if a required field is missing, or if the version or the
// kind is not supported.
func DecodeMessage(body string) (m provider.Message, err error) {
	m, plain := plainMessage(body)
	if !plain {
		m, err = decoded[provider.Message](body)
	}
	if err = cmp.Or(err, checkVersion(m.V)); err == nil {
		err = checkMessage(&m)
	}
	if err != nil {
		return m, fmt.Errorf("provider: inbox message: %w", err)
	}
	return m, nil
}

func checkMessage(m *provider.Message) error {
	if field := missingField(m); field != "" {
		return &provider.FieldError{Field: field, Problem: missing}
	}
	if !isKnown(m.Kind) {
		return &provider.UnknownKindError{Kind: m.Kind}
	}
	return checkLimits(m)
}

// missingField returns the name of a missing required field, or an empty string.
func missingField(m *provider.Message) string {
	switch {
	case m.InstanceID == "":
		return "instanceId"
	case (carriesEvent(m.Kind) || m.Kind == provider.MessageStart) && m.Name == "":
		return fieldName
	case m.Kind == provider.MessageStart && m.StartID == "":
		return "startId"
	case (m.Kind == provider.MessageUpdate || m.Kind == provider.MessageUpdateSent) && m.EventID == "":
		return "eventId"
	case m.IsSent() && m.Parent == nil:
		return "parent"
	default:
		return ""
	}
}

// DecodeWorkItem decodes a work item. It returns an error if a required field is missing or the version is not
// supported.
func DecodeWorkItem(body string) (w provider.WorkItem, err error) {
	w, plain := plainWorkItem(body)
	if !plain {
		w, err = decoded[provider.WorkItem](body)
	}
	err = cmp.Or(err, checkVersion(w.V), checkIDs(w.InstanceID, w.ExecutionID, "activityId", w.ActivityID))
	if err == nil && w.Name == "" {
		err = &provider.FieldError{Field: fieldName, Problem: missing}
	}
	if err != nil {
		return w, fmt.Errorf("provider: work item: %w", err)
	}
	return w, nil
}

// DecodeTimer decodes a timer. It returns an error if a required field is missing or the version is not supported.
func DecodeTimer(body string) (provider.Timer, error) {
	t, err := decoded[provider.Timer](body)
	err = cmp.Or(err, checkVersion(t.V), checkIDs(t.InstanceID, t.ExecutionID, "timerId", t.TimerID))
	if err != nil {
		return t, fmt.Errorf("provider: timer: %w", err)
	}
	return t, nil
}

// checkIDs checks the IDs of a work item or timer. field is the name of number.
func checkIDs(instanceID, executionID, field string, number int64) error {
	if instanceID == "" || executionID == "" {
		return &provider.FieldError{Field: "instanceId, executionId", Problem: "are missing"}
	}
	if number < 1 {
		return &provider.FieldError{Field: field, Problem: "must be at least 1"}
	}
	return nil
}

// decoded decodes a body with encoding/json. The result does not share memory with the body.
func decoded[T any](body string) (into T, err error) {
	if err := json.Unmarshal([]byte(body), &into); err != nil {
		return into, fmt.Errorf("decode JSON: %w", err)
	}
	return into, nil
}

// checkVersion checks the version of a body.
func checkVersion(v int) error {
	if v < 1 || v > provider.WireVersion {
		problem := fmt.Sprintf("%d is not supported by this release (1 to %d)", v, provider.WireVersion)
		return &provider.FieldError{Field: "v", Problem: problem}
	}
	return nil
}

// checkLimits checks the limits of the fields of a message.
func checkLimits(m *provider.Message) error {
	if err := inputcheck.Text("instanceId", m.InstanceID, 1, provider.MaxInstanceIDBytes); err != nil {
		return err
	}
	for _, f := range []struct {
		field, text string
		longest     int
	}{
		{"executionId", m.ExecutionID, maxExecutionIDBytes},
		{"startId", m.StartID, maxStartIDBytes},
		{"eventId", m.EventID, provider.MaxEventIDBytes},
		{"reason", m.Reason, maxReasonBytes},
		{"version", m.Version, maxNameBytes},
		{fieldName, m.Name, maxNameBytes},
	} {
		if len(f.text) > f.longest {
			return &provider.FieldError{Field: f.field, Problem: inputcheck.LengthProblem(f.text, 0, f.longest)}
		}
	}
	if !carriesEvent(m.Kind) {
		return inputcheck.Tags(m.Tags)
	}
	if err := inputcheck.Text(fieldName, m.Name, 1, provider.MaxEventNameBytes); err != nil {
		return err
	}
	return inputcheck.Text("eventId", m.EventID, 0, provider.MaxEventIDBytes)
}

func isKnown(k provider.MessageKind) bool {
	switch k {
	case provider.MessageWake, provider.MessageActivityOutcomes, provider.MessageActivityAttempts,
		provider.MessageActivityPending, provider.MessageTimerFired, provider.MessageEventRaised,
		provider.MessageTerminate, provider.MessageStart, provider.MessageChildOutcome, provider.MessageCancel,
		provider.MessageCancelActivity, provider.MessageCancelChildOutcome, provider.MessageEventSent,
		provider.MessageEventAnswered, provider.MessageUpdateSent, provider.MessageUpdateAnswered,
		provider.MessageExecutionSuspended, provider.MessageExecutionResumed, provider.MessageUpdate:
		return true
	default:
		return false
	}
}

// carriesEvent reports whether messages of the kind contain an external event or an update.
func carriesEvent(k provider.MessageKind) bool {
	return k == provider.MessageEventRaised || k == provider.MessageEventSent || k == provider.MessageUpdate ||
		k == provider.MessageUpdateSent
}

// SubjectOf reads the subject of a record. In records of later releases, it reads the fields that this release knows.
func SubjectOf(body string) (s provider.Subject) {
	_ = json.Unmarshal([]byte(body), &s) // unreadable fields stay empty
	return s
}
