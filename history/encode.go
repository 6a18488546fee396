package history

import (
	"encoding/json"
	"fmt"
)

// Encode writes events as a JSON array. Every event must be valid.
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

// Decode reads what Encode wrote, in this release or an earlier one. It ignores fields that it does not know. A kind
// that it does not know is an error, since a replay without the event would not be the same history.
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

// Log joins runs of events into one history, and checks that the ids have no gap and that no event follows an end.
func Log(runs ...[]Event) ([]Event, error) {
	n := 0
	for _, run := range runs {
		n += len(run)
	}
	log := make([]Event, 0, n)
	for _, run := range runs {
		for i := range run {
			if want := int64(len(log)) + 1; run[i].ID != want {
				return nil, fmt.Errorf("history: event #%d (%s) where #%d is due", run[i].ID, run[i].Kind, want)
			}
			if n := len(log); n > 0 && log[n-1].Kind.Terminal() {
				return nil, fmt.Errorf("history: event #%d (%s) follows the end %s", run[i].ID, run[i].Kind, log[n-1].Kind)
			}
			log = append(log, run[i])
		}
	}
	return log, nil
}
