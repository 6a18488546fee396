package inbox

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
)

// Two releases of a function may send the same outcome. The deduplication ID must not change between releases or depend
// on the segment.
func TestDedupID_isTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	m := provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: "a", ExecutionID: "x",
		Outcomes: []provider.ActivityOutcome{
			{ActivityID: 3, Attempt: 1, Result: history.Payload("1")}, {ActivityID: 4, Attempt: 2},
		},
	}
	m.Segment = 9 // the segment is not part of the content
	if got, want := deduplicationID(&m), "fc7c8b270470473366ca865888bcf7e7b1838979"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
	fired := provider.Message{Kind: provider.MessageTimerFired, InstanceID: "a", ExecutionID: "x", TimerID: 3}
	if got, want := deduplicationID(&fired), "ff081e2166410299e53b0bcdbce5733a830ed2f5"; got != want {
		t.Errorf("timer: %s, want %s", got, want)
	}
}

// A repeated message is dropped for five minutes, unless each message of its kind must arrive.
func TestDedupID_repeatedMessage_isEqualOnlyForIdempotentKinds(t *testing.T) {
	t.Parallel()
	of := func(kind provider.MessageKind) provider.Message {
		return provider.Message{
			Kind: kind, InstanceID: "a", StartID: "s", ExecutionID: "x", SourceEventID: 7, Name: "n",
			Parent: &history.Parent{ExecutionID: "p", EventID: 3},
		}
	}
	named := func(m provider.Message) provider.Message { m.EventID = "e"; return m }
	fromClient := func(m provider.Message) provider.Message { m.Parent = nil; return m }
	for name, tt := range map[string]struct {
		m   provider.Message
		one bool
	}{
		"start":                    {of(provider.MessageStart), true},
		"outcomes":                 {of(provider.MessageActivityOutcomes), true},
		"attempts":                 {of(provider.MessageActivityAttempts), true},
		"timer":                    {of(provider.MessageTimerFired), true},
		"event with an id":         {named(of(provider.MessageEventRaised)), true},
		"event without one":        {of(provider.MessageEventRaised), false},
		"event of an instance":     {of(provider.MessageEventSent), true},
		"update of an instance":    {of(provider.MessageUpdateSent), true},
		"response to events":       {of(provider.MessageEventAnswered), true},
		"response to an update":    {of(provider.MessageUpdateAnswered), true},
		"end of a child":           {of(provider.MessageChildOutcome), true},
		"why a child is not ended": {of(provider.MessageCancelChildOutcome), true},
		"cancel by a parent":       {of(provider.MessageCancel), true},
		"cancel by a client":       {fromClient(of(provider.MessageCancel)), false},
		"pause with an id":         {named(of(provider.MessageExecutionSuspended)), true},
		"pause without one":        {of(provider.MessageExecutionSuspended), false},
		"update":                   {named(of(provider.MessageUpdate)), true},
		"wake":                     {of(provider.MessageWake), false},
		"terminate":                {of(provider.MessageTerminate), false},
		"cancel of an activity":    {of(provider.MessageCancelActivity), false},
	} {
		again := tt.m
		if one := deduplicationID(&tt.m) == deduplicationID(&again); one != tt.one {
			t.Errorf("%s: same deduplication ID: %v, want %v", name, one, tt.one)
		}
		other := tt.m
		other.InstanceID, other.ExecutionID, other.Parent = "b", "y", &history.Parent{ExecutionID: "q", EventID: 3}
		if deduplicationID(&tt.m) == deduplicationID(&other) {
			t.Errorf("%s: a message of another instance has the same deduplication ID", name)
		}
	}
}

func TestDedupID_differentMessages_differ(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	add := func(name string, m provider.Message) {
		id := deduplicationID(&m)
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s have the same deduplication ID", name, other)
		}
		if len(id) > 128 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			t.Errorf("%s: SQS does not accept %q", name, id)
		}
		seen[id] = name
	}
	outcomes := func(execution string, ids ...int64) provider.Message {
		m := provider.Message{Kind: provider.MessageActivityOutcomes, ExecutionID: execution}
		for i := 0; i < len(ids); i += 2 {
			m.Outcomes = append(m.Outcomes, provider.ActivityOutcome{ActivityID: ids[i], Attempt: int(ids[i+1])})
		}
		return m
	}
	add("3/1", outcomes("x", 3, 1))
	transferred := outcomes("x", 3, 1)
	transferred.Kind = provider.MessageActivityPending
	add("3/1 is pending", transferred)
	for _, name := range []string{"a look", "the next look"} {
		at := time.Unix(int64(len(name)), 0)
		add(name, provider.Message{
			Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3, Attempt: 1, FireAt: &at,
		})
	}
	add("3/2", outcomes("x", 3, 2))
	add("4/1", outcomes("x", 4, 1))
	add("3/1 and 4/1", outcomes("x", 3, 1, 4, 1))
	add("31/4", outcomes("x", 31, 4))
	add("3/1 of another", outcomes("y", 3, 1))
	attempts := func(run string) provider.Message {
		m := outcomes("x", 3, 1)
		m.Kind, m.Outcomes[0].Run = provider.MessageActivityAttempts, run
		return m
	}
	add("one run of 3/1", attempts("m.1"))
	add("another run of 3/1", attempts("m.2"))
	add("attempt of 3 that is due", provider.Message{
		Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3, Attempt: 2,
	})
	add("the next", provider.Message{Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3, Attempt: 3})
	add("timer", provider.Message{Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3})
	add("timer of another", provider.Message{Kind: provider.MessageTimerFired, ExecutionID: "y", TimerID: 3})
	add("wake", provider.Message{Kind: provider.MessageWake, ExecutionID: "x"})
	add("another wake", provider.Message{Kind: provider.MessageWake, ExecutionID: "x"})
}

func TestSend_messageOverTheLimit_errorNamesTheInstance(t *testing.T) {
	t.Parallel()
	m := provider.Message{Kind: provider.MessageActivityOutcomes, InstanceID: "a", Outcomes: []provider.ActivityOutcome{
		{ActivityID: 3, Result: history.Payload(`"` + strings.Repeat("x", sqsqueue.MessageLimit) + `"`)},
	}}
	q := &sqsfake.Queues{}
	err := New(nil, sqsqueue.New(q, sqsqueue.Config{}, nil), nil).Send(t.Context(), m)
	if err == nil || !strings.Contains(err.Error(), `"a"`) || len(q.Sent) != 0 {
		t.Errorf("%d sends, %v", len(q.Sent), err)
	}
}
