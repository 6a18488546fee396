package payloadjson

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// Stored identifies a payload that the history or the payload store contains. Fields that are not known are empty.
type Stored struct {
	Kind                    history.PayloadKind
	Name                    string
	InstanceID, ExecutionID string
	Codec, Key              string
}

// String describes the payload for an error.
func (s *Stored) String() string {
	what := string(s.Kind)
	if s.Name != "" {
		what += fmt.Sprintf(" of %q", s.Name)
	}
	if s.InstanceID != "" {
		what = fmt.Sprintf("instance %q: %s", s.InstanceID, what)
	}
	if s.ExecutionID != "" && s.Key != "" {
		what += ", execution " + s.ExecutionID
	}
	if s.Codec != "" {
		what += fmt.Sprintf(", codec %q", s.Codec)
	}
	if s.Key != "" {
		what += ", at " + s.Key
	}
	return what
}
