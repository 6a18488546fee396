package workqueue

import (
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Outcomes that are considered small without measuring fit one message, even if all characters are escaped. Short
// results of a fan-out are considered small.
func TestFitOneMessage_outcomesAreSmall_bundleIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 13, 0, 0, 123_456_789, time.UTC)
	for _, text := range []string{"a", "<", "\x00", "\xff", `"`, "é", "\u2028", "\uFFFE", "\U0001F600"} {
		o := provider.ActivityOutcome{
			ActivityID: -1 << 62, Attempt: -1 << 62, Segment: -1 << 62, RetryAt: &now, RetryInMs: -1 << 62,
			SeenAt: &now,
		}
		most := sort.Search(maxBundleBytes, func(length int) bool { // the greatest length that is considered small
			o.Run, o.Ended, o.Result = strings.Repeat(text, length), text,
				history.Payload(`"`+strings.Repeat("<", length)+`"`)
			return !fitOneMessage(completed(o, 5))
		}) - 1
		o.Run, o.Result = strings.Repeat(text, most), history.Payload(`"`+strings.Repeat("<", most)+`"`)
		if bytes := 5 * (outcomeBytes(&o) + len(",")); bytes > maxBundleBytes || !fitOneMessage(completed(o, 5)) {
			t.Errorf("five outcomes with %d times %q are considered small and have %d bytes", most, text, bytes)
		}
	}
	if !fitOneMessage(completed(provider.ActivityOutcome{ActivityID: 7, Attempt: 1, Result: history.Payload(`"done"`)},
		10)) {
		t.Error("ten short results do not fit one message")
	}
}

// A message has as many outcomes as fit. A result that fits no message is replaced with an error.
func TestBundleOutcomes_largeOutcomes_areSplitBySize(t *testing.T) {
	t.Parallel()
	third := provider.ActivityOutcome{
		ActivityID: 7, Attempt: 1, Result: history.Payload(`"` + strings.Repeat("x", maxBundleBytes/3) + `"`),
	}
	ms := bundleOutcomes(completed(third, 5))
	if len(ms) != 3 || len(ms[0].Outcomes) != 2 || len(ms[1].Outcomes) != 2 || len(ms[2].Outcomes) != 1 {
		t.Errorf("%d messages for five outcomes of a third of the limit each", len(ms))
	}
	larger := provider.ActivityOutcome{
		ActivityID: 7, Attempt: 1, Result: history.Payload(`"` + strings.Repeat("<", maxBundleBytes/6) + `"`),
	}
	ms = bundleOutcomes(completed(larger, 1))
	if len(ms) != 1 || ms[0].Outcomes[0].Error == nil || ms[0].Outcomes[0].Error.Type != history.TypePayloadTooLarge {
		t.Errorf("a result that exceeds a message is sent: %d messages", len(ms))
	}
}

// completed returns n work items of one execution with an outcome.
func completed(o provider.ActivityOutcome, n int) []provider.CompletedWorkItem {
	done := make([]provider.CompletedWorkItem, n)
	for i := range done {
		own := o
		done[i] = provider.CompletedWorkItem{
			LockedWorkItem: &provider.LockedWorkItem{WorkItem: provider.WorkItem{ExecutionID: "x"}}, Outcome: &own,
		}
	}
	return done
}
