package history

import "encoding/json"

// TraceParent is a W3C trace context of version 00, or empty. Invalid values become empty.
type TraceParent string

// The positions of the parts of a traceparent. The parts are the version, the trace ID, the parent ID and the flags,
// separated by hyphens.
const (
	traceParentBytes = 55
	traceIDAt        = 3
	parentIDAt       = 36
	flagsAt          = 53
)

// ParseTraceParent parses a trace context of any version and returns it as version 00. It returns an empty TraceParent
// if s is invalid. The format is defined at https://www.w3.org/TR/trace-context.
func ParseTraceParent(s string) TraceParent {
	switch {
	case len(s) < traceParentBytes, s[traceIDAt-1] != '-', s[parentIDAt-1] != '-', s[flagsAt-1] != '-':
		return ""
	case s[:2] == "ff", s[:2] == "00" && len(s) > traceParentBytes,
		len(s) > traceParentBytes && s[traceParentBytes] != '-':
		return ""
	}
	t := s[traceIDAt:traceParentBytes]
	version, traceID, parentID, flags := s[:2], t[:32], t[33:49], t[50:]
	if !isHex(version) || !isHex(traceID) || !isHex(parentID) || !isHex(flags) || isZero(traceID) || isZero(parentID) {
		return ""
	}
	if version == "00" {
		return TraceParent(s)
	}
	return TraceParent("00-" + t)
}

// UnmarshalJSON decodes a trace context. An invalid value becomes empty and is not an error.
func (t *TraceParent) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		s = ""
	}
	*t = ParseTraceParent(s)
	return nil
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isZero(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}
