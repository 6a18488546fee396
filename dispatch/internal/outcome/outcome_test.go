package outcome

import (
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A failure of an activity with a retry policy names its run, so that a repeated report is recognized. A stored outcome
// already contains its run.
func TestWithRun_failureWithARetryPolicy_namesTheRun(t *testing.T) {
	t.Parallel()
	f := &history.Failure{Type: "E"}
	policy := &history.RetryPolicy{}
	for name, c := range map[string]struct {
		outcome *provider.ActivityOutcome
		policy  *history.RetryPolicy
		want    string
	}{
		"failure":           {&provider.ActivityOutcome{Error: f}, policy, "r1.2"},
		"stored failure":    {&provider.ActivityOutcome{Error: f, Run: "r1.1"}, policy, "r1.1"},
		"failure, no retry": {&provider.ActivityOutcome{Error: f}, nil, ""},
		"result":            {&provider.ActivityOutcome{}, policy, ""},
	} {
		it := &provider.LockedWorkItem{Record: provider.Record{ID: "r1", ReceiveCount: 2}}
		it.Retry, it.Segment = c.policy, 7
		before := *c.outcome
		got := WithRun(it, c.outcome)
		if got.Run != c.want || c.want == "r1.2" && got.Segment != 7 {
			t.Errorf("%s: got run %q of segment %d, want run %q", name, got.Run, got.Segment, c.want)
		}
		if c.outcome.Run != before.Run {
			t.Errorf("%s: the given outcome was changed", name)
		}
	}
	if WithRun(&provider.LockedWorkItem{}, nil) != nil {
		t.Error("no outcome became an outcome")
	}
}
