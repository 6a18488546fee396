package sqsqueue

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
)

func entriesOf(texts ...string) (all []Entry) {
	for _, body := range texts {
		all = append(all, Entry{Body: body})
	}
	return all
}

// R9: the result of every batch entry is checked. Accepted entries are not sent again.
func TestSendBatch_someEntriesFail_onlyTheseAreSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &sqsfake.Queues{}
		q.Respond = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			return sqsfake.Failing(false, map[int][]string{1: {"b", "d"}, 2: {"d"}}[len(q.Sent)]...)(in)
		}
		if err := New(q, Config{}, nil).SendBatch(t.Context(), "url", entriesOf("a", "b", "c", "d")); err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, in := range q.Sent {
			got = append(got, sqsfake.Bodies(in))
		}
		if want := [][]string{{"a", "b", "c", "d"}, {"b", "d"}, {"d"}}; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

func TestSendBatch_senderFault_isNotRetried(t *testing.T) {
	t.Parallel()
	q := &sqsfake.Queues{Respond: sqsfake.Failing(true, "b")}
	err := New(q, Config{}, nil).SendBatch(t.Context(), "url", entriesOf("a", "b"))
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Retryable || e.Op != "SQS.SendMessageBatch" || len(q.Sent) != 1 ||
		!strings.Contains(err.Error(), "InvalidMessageContents why") {
		t.Errorf("%d sends, %v", len(q.Sent), err)
	}
}

// A batch has up to 10 messages and 1 MiB (quotas of SQS).
func TestBatches_countAndSize_areWithinTheQuotas(t *testing.T) {
	t.Parallel()
	const half = MessageLimit / 2
	for name, c := range map[string]struct {
		sizes []int
		want  []int
	}{
		"none":             {nil, nil},
		"one":              {[]int{1}, []int{1}},
		"ten":              {slices.Repeat([]int{1}, 10), []int{10}},
		"eleven":           {slices.Repeat([]int{1}, 11), []int{10, 1}},
		"exactly 1 MiB":    {[]int{half, half}, []int{2}},
		"a byte more":      {[]int{half, half, 1}, []int{2, 1}},
		"halves and more":  {[]int{half + 1, half, half, 1}, []int{1, 2, 1}},
		"one of the limit": {[]int{1, MessageLimit, 1}, []int{1, 1, 1}},
		"one over it":      {[]int{1, MessageLimit + 1, 1}, []int{1, 1, 1}},
	} {
		var entries []Entry
		for _, size := range c.sizes {
			entries = append(entries, Entry{Body: strings.Repeat("x", size)})
		}
		var got []int
		for _, b := range Batches(entries) {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: batches of %v, want %v", name, got, c.want)
		}
	}
}

func TestSendInOrder_batchFails_laterBatchesAreNotSent(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	q := &sqsfake.Queues{Respond: func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		return nil, refused
	}}
	err := New(q, Config{}, nil).SendInOrder(t.Context(), "url", make([]Entry, 25))
	if !errors.Is(err, refused) || len(q.Sent) != 1 {
		t.Errorf("%d batches were sent after a rejected batch: %v", len(q.Sent), err)
	}
}

func TestParallel_manyFunctions_limitsConcurrencyAndJoinsErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		errOdd := errors.New("odd")
		fs := make([]func() error, 5*awscall.MaxParallel)
		release := make(chan struct{})
		for i := range fs {
			fs[i] = func() error {
				most.Store(max(most.Load(), now.Add(1)))
				<-release
				now.Add(-1)
				if i == 7 {
					return errOdd
				}
				return nil
			}
		}
		done := make(chan error)
		go func() { done <- awscall.Parallel(fs...) }()
		synctest.Wait()
		if now.Load() != awscall.MaxParallel {
			t.Errorf("%d concurrent sends, want %d", now.Load(), awscall.MaxParallel)
		}
		close(release)
		if err := <-done; !errors.Is(err, errOdd) || most.Load() != awscall.MaxParallel {
			t.Errorf("at most %d concurrent sends, error %v", most.Load(), err)
		}
	})
}

// SQS rejects U+FFFE and U+FFFF. SqsText escapes them, which results in the same JSON value.
func TestSqsText_charactersThatSQSRejects_areEscaped(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "\uFFFE\uFFFF", "a\uFFFFb\uFFFFc", "\uFFFD", "🙂", "\x00\x1f"} {
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got := SqsText(string(doc))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != s {
			t.Errorf("%q is sent as %s and decoded as %q: %v", s, got, back, err)
		}
		if strings.ContainsAny(got, "\uFFFE\uFFFF\x00\x1f") {
			t.Errorf("%q is sent as %q", s, got)
		}
	}
}

// The reason of a dead letter has only characters that SQS accepts, and never makes the message exceed the size limit.
func TestPutDeadLetter_longReason_isValidAndWithinTheLimit(t *testing.T) {
	t.Parallel()
	long := errors.New("bad \x00\uFFFF" + strings.Repeat("日", 1000))
	for name, c := range map[string]struct {
		body string
		want bool
	}{
		"small": {"x", true}, "leaves little": {strings.Repeat("x", MessageLimit-20), true},
		"leaves nothing": {strings.Repeat("x", MessageLimit), false},
	} {
		q := &sqsfake.Queues{}
		p := New(q, Config{DeadLetters: map[string]string{"inbox": "url"}}, nil)
		r := provider.Record{ID: "m", Body: c.body, Group: "g"}
		if err := p.Dead().Put(t.Context(), provider.QueueInbox,
			provider.Unreadable{Record: r, Err: long}); err != nil {
			t.Fatal(err)
		}
		e := q.Sent[0].Entries[0]
		v, has := e.MessageAttributes[AttrReason]
		text := aws.ToString(v.StringValue)
		if has != c.want || has && !strings.HasPrefix(text, "bad") || strings.ContainsAny(text, "\x00\uFFFF") ||
			!utf8.ValidString(text) {
			t.Errorf("%s: reason %q", name, text)
		}
		if size := len(*e.MessageBody) + len(AttrReason) + len(aws.ToString(v.DataType)) + len(text); has &&
			size > MessageLimit {
			t.Errorf("%s: %d bytes", name, size)
		}
		if *e.MessageBody != c.body || *e.MessageGroupId != "g" || *e.MessageDeduplicationId == "" {
			t.Errorf("%s: group %v, deduplication %v", name, e.MessageGroupId, e.MessageDeduplicationId)
		}
	}
}

// If a message of a group fails for a moment, the later messages of the group are sent again after it.
func TestSendInOrder_messageOfAGroupFails_keepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &sqsfake.Queues{}
		q.Respond = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if len(q.Sent) == 1 {
				return sqsfake.Failing(false, "1")(in)
			}
			return sqsfake.Failing(false)(in)
		}
		entries := entriesOf("1", "2", "3")
		for i := range entries {
			entries[i].Group, entries[i].Dedup = "g", entries[i].Body
		}
		if err := New(q, Config{}, nil).SendInOrder(t.Context(), "url", entries); err != nil {
			t.Fatal(err)
		}
		if again := sqsfake.Bodies(q.Sent[len(q.Sent)-1]); len(again) != 3 || again[0] != "1" || again[2] != "3" {
			t.Errorf("messages to send again: %v", again)
		}
	})
}
