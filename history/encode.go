package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Encode encodes events as a JSON array. It returns an error if an event is invalid.
func Encode(events []Event) ([]byte, error) {
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return nil, err
		}
	}
	b, err := appendEvents(make([]byte, 0, 160*len(events)), events)
	if err != nil {
		return nil, fmt.Errorf("history: encode: %w", err)
	}
	return b, nil
}

// Decode decodes events that Encode of this release or an earlier release wrote. It ignores unknown fields. It returns
// an error for an unknown kind, because a replay without the event would be wrong.
func Decode(b []byte) ([]Event, error) {
	var events []Event
	if err := json.Unmarshal(b, &events); err != nil {
		return nil, fmt.Errorf("history: decode: %w", err)
	}
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// DecodeLast decodes only the last event of the events that Encode wrote. found is false if b contains no events.
func DecodeLast(b []byte) (last Event, found bool, err error) {
	b = bytes.TrimSpace(b)
	at, found := lastElement(b)
	if !found {
		_, err := Decode(b) // the array is empty or does not contain objects
		return Event{}, false, err
	}
	d := json.NewDecoder(bytes.NewReader(b[at:]))
	if err := d.Decode(&last); err != nil {
		return Event{}, false, fmt.Errorf("history: decode: %w", err)
	}
	// b may be truncated and other events may be missing
	if behind := b[at+int(d.InputOffset()):]; b[0] != '[' || string(bytes.TrimSpace(behind)) != "]" {
		return Event{}, false, errors.New("history: decode: events are not a complete JSON array")
	}
	return last, true, last.Validate()
}

// lastElement returns the position of the last object in a JSON array of objects.
func lastElement(b []byte) (at int, found bool) {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; c == '{' && depth == 2 {
				at, found = i, true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return at, found
}

// Concat concatenates sequences of events into one history. It returns an error if the IDs have a gap or an event
// follows a terminal event.
func Concat(runs ...[]Event) ([]Event, error) {
	n := 0
	for _, run := range runs {
		n += len(run)
	}
	log := make([]Event, 0, n)
	for _, run := range runs {
		for i := range run {
			if want := int64(len(log)) + 1; run[i].ID != want {
				return nil, fmt.Errorf("history: event #%d (%s): expected event #%d", run[i].ID, run[i].Kind, want)
			}
			if n := len(log); n > 0 && log[n-1].Kind.Terminal() {
				return nil, fmt.Errorf("history: event #%d (%s) follows the terminal event %s",
					run[i].ID, run[i].Kind, log[n-1].Kind)
			}
			log = append(log, run[i])
		}
	}
	return log, nil
}
