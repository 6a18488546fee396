package deadletters

import (
	"errors"
	"slices"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
)

// If SQS rejects one message of a batch, the error names the other messages, which must not be sent again.
func TestRedriveDeadLetters_oneIsRejected_errorNamesSentOnes(t *testing.T) {
	t.Parallel()
	q := &sqsfake.Queues{Respond: sqsfake.Failing(true, "b")}
	dd := New(sqsqueue.New(q,
		sqsqueue.Config{
			WorkQueues: map[string]string{"default": "url"}, DeadLetters: map[string]string{"default": "dead"},
		}, nil), nil, nil)
	var letters []provider.DeadLetter
	for _, body := range []string{"a", "b", "c"} {
		letters = append(letters, provider.DeadLetter{
			Queue: "default", Record: provider.Record{ID: "letter " + body, Body: body},
		})
	}
	err := dd.RedriveDeadLetters(t.Context(), "default", letters...)
	if sent, ok := errors.AsType[*provider.SentError](err); !ok ||
		!slices.Equal(sent.IDs, []string{"letter a", "letter c"}) {
		t.Errorf("got error %v, want a SentError", err)
	}
	err = dd.RedriveDeadLetters(t.Context(), "default", letters[1])
	if err == nil || errors.As(err, new(*provider.SentError)) {
		t.Errorf("dead letter that was not sent: got error %v", err)
	}
}
