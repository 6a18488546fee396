package turnpayload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// stored returns a payload that is in the payload store under a key.
func stored(key string) history.Payload {
	return history.EncodedPayload{Key: key, SHA256: strings.Repeat("0", 64), Bytes: 1}.Payload()
}

// A build without a payload store commits payloads unchanged, but rejects stored payloads of messages, which expire.
func TestMessages_noStore_acceptsOnlyPayloadsThatDoNotExpire(t *testing.T) {
	t.Parallel()
	e := &Encoder{Clock: time.Now}
	for name, c := range map[string]struct {
		data history.Payload
		ok   bool
	}{
		"inline":               {history.Payload("1"), true},
		"stored for a message": {stored(provider.MessagePayloadPrefix + "a"), false},
	} {
		taken := []provider.InboxMessage{{Message: provider.Message{Kind: provider.MessageEventRaised, Data: c.data}}}
		err := e.Messages(t.Context(), perdure.PayloadInfo{ExecutionID: "x"}, taken)
		if _, refused := errors.AsType[*perdure.PayloadError](err); refused == c.ok {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// Workers in other languages can send error details of any size. History contains no large details.
func TestFailures_details_largeOnesAreRemoved(t *testing.T) {
	t.Parallel()
	e := &Encoder{Clock: time.Now}
	details := func(n int) *history.Failure {
		doc, _ := json.Marshal(strings.Repeat("x", n))
		return &history.Failure{Type: "E", Details: history.NewInlinePayload(doc)}
	}
	taken := []provider.InboxMessage{{Message: provider.Message{
		Error:    details(history.MaxFailureDetailsBytes),
		Outcomes: []provider.ActivityOutcome{{Error: details(1)}, {Error: details(history.MaxFailureDetailsBytes)}, {}},
	}}}
	if err := e.Failures(t.Context(), perdure.PayloadInfo{}, taken); err != nil {
		t.Fatal(err)
	}
	m := &taken[0]
	for i, f := range []*history.Failure{m.Error, m.Outcomes[0].Error, m.Outcomes[1].Error} {
		if kept := len(f.Details) > 0; kept != (i == 1) {
			t.Errorf("failure %d has details: %v, want %v", i, kept, i == 1)
		}
	}
	if m.Outcomes[2].Error != nil {
		t.Error("a result became a failure")
	}
}

// Each delivery of a message starts the same execution, which owns the payloads that an earlier delivery has copied.
// Another start of the ID is another execution.
func TestUpdateStart_redelivered_startsTheSameExecution(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	e := &Encoder{Clock: func() time.Time { now = now.Add(time.Minute); return now }}
	id := func(startID string) string {
		m := &provider.InboxMessage{Message: provider.Message{InstanceID: "i-1"}}
		m.Record.SentAt = time.Unix(50, 0)
		start, data := &provider.InboxMessage{Message: provider.Message{StartID: startID}}, stored(
			provider.MessagePayloadPrefix+"a")
		if err := e.UpdateStart(t.Context(), m, start, &data); err == nil {
			t.Error("a stored payload was accepted without a store")
		}
		return start.NewExecutionID
	}
	if first, second := id("start-1"), id("start-1"); first == "" || first != second {
		t.Errorf("two deliveries start executions %q and %q", first, second)
	}
	if id("start-1") == id("start-2") {
		t.Error("two starts have the same execution")
	}
}
