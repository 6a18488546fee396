package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// fakeQueues answers sends by answer, and keeps them.
type fakeQueues struct {
	QueueAPI

	sent   []*sqs.SendMessageBatchInput
	answer func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error)
}

func (q *fakeQueues) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.sent = append(q.sent, in)
	if q.answer == nil {
		return &sqs.SendMessageBatchOutput{}, nil
	}
	return q.answer(in)
}

func bodies(in *sqs.SendMessageBatchInput) (all []string) {
	for _, e := range in.Entries {
		all = append(all, *e.MessageBody)
	}
	return all
}

func entriesOf(texts ...string) (all []entry) {
	for _, body := range texts {
		all = append(all, entry{body: body})
	}
	return all
}

// failing answers with these failures of the entries whose bodies are named.
func failing(fault bool, which ...string) func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	return func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		out := &sqs.SendMessageBatchOutput{}
		for _, e := range in.Entries {
			if slices.Contains(which, *e.MessageBody) {
				code := "InternalError"
				if fault {
					code = "InvalidMessageContents"
				}
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: &code, Message: aws.String("why"), SenderFault: fault})
			}
		}
		return out, nil
	}
}

// R9: every batch entry's result is checked, and what was accepted is not sent twice.
func TestOnlyFailedEntriesAreSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueues{}
		q.answer = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			return failing(false, map[int][]string{1: {"b", "d"}, 2: {"d"}}[len(q.sent)]...)(in)
		}
		if err := (&Provider{queues: q}).sendBatch(t.Context(), "url", entriesOf("a", "b", "c", "d")); err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, in := range q.sent {
			got = append(got, bodies(in))
		}
		if want := [][]string{{"a", "b", "c", "d"}, {"b", "d"}, {"d"}}; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

func TestASendersFaultIsNotRepeated(t *testing.T) {
	t.Parallel()
	q := &fakeQueues{answer: failing(true, "b")}
	err := (&Provider{queues: q}).sendBatch(t.Context(), "url", entriesOf("a", "b"))
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Retryable || e.Op != "SQS.SendMessageBatch" || len(q.sent) != 1 || !strings.Contains(err.Error(), "InvalidMessageContents why") {
		t.Errorf("%d sends, %v", len(q.sent), err)
	}
}

// A batch has up to 10 messages and 1 MiB (quotas of SQS).
func TestBatches(t *testing.T) {
	t.Parallel()
	const half = messageLimit / 2
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
		"one of the limit": {[]int{1, messageLimit, 1}, []int{1, 1, 1}},
		"one over it":      {[]int{1, messageLimit + 1, 1}, []int{1, 1, 1}},
	} {
		var entries []entry
		for _, size := range c.sizes {
			entries = append(entries, entry{body: strings.Repeat("x", size)})
		}
		var got []int
		for _, b := range batches(entries) {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: batches of %v, want %v", name, got, c.want)
		}
	}
}

func TestInOrderOneBatchWaitsForTheOther(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	q := &fakeQueues{answer: func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) { return nil, refused }}
	err := (&Provider{queues: q}).sendInOrder(t.Context(), "url", make([]entry, 25))
	if !errors.Is(err, refused) || len(q.sent) != 1 {
		t.Errorf("%d batches were sent after one was refused: %v", len(q.sent), err)
	}
}

func TestTogetherIsBoundedAndJoinsErrors(t *testing.T) {
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
			t.Errorf("%d at once, want %d", now.Load(), awscall.MaxParallel)
		}
		close(release)
		if err := <-done; !errors.Is(err, errOdd) || most.Load() != awscall.MaxParallel {
			t.Errorf("%d at most, error %v", most.Load(), err)
		}
	})
}

// SQS refuses U+FFFE and U+FFFF; as escapes they are the same JSON.
func TestSQSText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "\uFFFE\uFFFF", "a\uFFFFb\uFFFFc", "\uFFFD", "🙂", "\x00\x1f"} {
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got := sqsText(doc)
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != s {
			t.Errorf("%q is sent as %s, which is read as %q: %v", s, got, back, err)
		}
		if strings.ContainsAny(got, "\uFFFE\uFFFF\x00\x1f") {
			t.Errorf("%q is sent as %q", s, got)
		}
	}
}

// A dead letter's error has only characters that SQS takes, and never makes the message exceed its limit.
func TestADeadLetterHasItsReason(t *testing.T) {
	t.Parallel()
	long := errors.New("bad \x00\uFFFF" + strings.Repeat("日", 1000))
	for name, c := range map[string]struct {
		body string
		want bool
	}{"small": {"x", true}, "leaves little": {strings.Repeat("x", messageLimit-20), true}, "leaves nothing": {strings.Repeat("x", messageLimit), false}} {
		q := &fakeQueues{}
		p := &Provider{queues: q, hub: HubConfig{DeadLetters: map[string]string{"inbox": "url"}}}
		r := provider.Record{ID: "m", Body: c.body, Group: "g"}
		if err := p.DeadLetter(t.Context(), provider.QueueInbox, provider.Unreadable{Record: r, Err: long}); err != nil {
			t.Fatal(err)
		}
		e := q.sent[0].Entries[0]
		v, has := e.MessageAttributes[attrReason]
		text := aws.ToString(v.StringValue)
		if has != c.want || has && !strings.HasPrefix(text, "bad") || strings.ContainsAny(text, "\x00\uFFFF") || !utf8.ValidString(text) {
			t.Errorf("%s: reason %q", name, text)
		}
		if size := len(*e.MessageBody) + len(attrReason) + len(aws.ToString(v.DataType)) + len(text); has && size > messageLimit {
			t.Errorf("%s: %d bytes", name, size)
		}
		if *e.MessageBody != c.body || *e.MessageGroupId != "g" || *e.MessageDeduplicationId == "" {
			t.Errorf("%s: group %v, deduplication %v", name, e.MessageGroupId, e.MessageDeduplicationId)
		}
	}
}

// An entry that SQS will never take is its output's failure; the others go on, also those that fail for a moment.
func TestR9ASendersFaultIsAnOutputsFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueues{}
		q.answer = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if len(q.sent) > 1 {
				return &sqs.SendMessageBatchOutput{}, nil
			}
			return &sqs.SendMessageBatchOutput{Failed: []types.BatchResultErrorEntry{
				{Id: aws.String("0"), SenderFault: true, Code: aws.String("InvalidMessageContents")},
				{Id: aws.String("1"), Code: aws.String("InternalError")},
			}}, nil
		}
		p := senderTo(q)
		refused, err := p.sendOutputs(t.Context(), &provider.Outputs{WorkItems: []provider.WorkItem{{ActivityID: 3, Queue: "default"}, {ActivityID: 4, Queue: "default"}}})
		if err != nil || len(refused) != 1 || refused[0].EventID != 3 || len(q.sent) != 2 {
			t.Errorf("refused %v, %v, %d sends", refused, err, len(q.sent))
		}
	})
}

// senderTo returns a provider that sends work items to queues, and has the key of their tokens.
func senderTo(q *fakeQueues) *Provider {
	p := &Provider{queues: q, now: time.Now, hub: HubConfig{WorkQueues: map[string]string{"default": "u"}}}
	p.keys.known.Store(&knownKeys{tokens: provider.NewTokens("h", provider.NewTokenKey("1", make([]byte, secretBytes)))})
	return p
}

// A misconfigured role, a disabled key, a throttled queue: SQS calls each of them the sender's fault, and an activity
// must not fail for them. Only SQS's errors about the message itself are final.
func TestR9OnlyWhatSQSSaysOfTheMessageItselfIsForGood(t *testing.T) {
	t.Parallel()
	for code, forGood := range map[string]bool{
		"InvalidMessageContents": true, "InvalidParameterValue": true, "InvalidAttributeValue": true,
		"AWS.SimpleQueueService.InvalidMessageContents": true, "com.amazonaws.sqs#InvalidMessageContents": true,

		"AccessDenied": false, "AccessDeniedException": false, "InvalidClientTokenId": false, "RequestThrottled": false, "ThrottlingException": false,
		"OverLimit": false, "KMS.AccessDeniedException": false, "KMS.DisabledException": false, "KMS.ThrottlingException": false,
		"KmsThrottled": false, "InternalError": false, "ServiceUnavailable": false, "InvalidSecurity": false, "MissingParameter": false,
		"AWS.SimpleQueueService.NonExistentQueue": false, "AWS.SimpleQueueService.UnsupportedOperation": false, "SomethingNew": false, "": false,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				q := &fakeQueues{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					out := &sqs.SendMessageBatchOutput{}
					for _, e := range in.Entries {
						if time.Since(began) < time.Hour && strings.Contains(*e.MessageBody, `"activityId":3`) {
							out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, SenderFault: true, Code: &code})
						}
					}
					return out, nil
				}}
				p := senderTo(q)
				out := &provider.Outputs{WorkItems: []provider.WorkItem{{ActivityID: 3, Queue: "default"}, {ActivityID: 4, Queue: "default"}}}
				refused, err := p.sendOutputs(t.Context(), out)
				if forGood && (err != nil || len(refused) != 1 || refused[0].EventID != 3 || len(q.sent) != 1) {
					t.Errorf("refused %v, %v, in %d sends; want #3", refused, err, len(q.sent))
				}
				if failed, ok := errors.AsType[*provider.Error](err); !forGood && (!ok || !failed.Retryable || len(refused) > 0 || len(q.sent) != awscall.MaxTries) {
					t.Errorf("refused %v, %v, in %d sends; want it to be tried again", refused, err, len(q.sent))
				}
				time.Sleep(time.Hour)
				if refused, err := p.sendOutputs(t.Context(), out); err != nil || len(refused) > 0 {
					t.Errorf("an hour later: refused %v, %v", refused, err)
				}
			})
		})
	}
}

// A group's messages keep their order when one of them fails for a moment: those behind it are sent again behind it.
func TestInOrderKeepsTheOrderOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueues{}
		q.answer = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if len(q.sent) == 1 {
				return failing(false, "1")(in)
			}
			return failing(false)(in)
		}
		entries := entriesOf("1", "2", "3")
		for i := range entries {
			entries[i].group, entries[i].dedup = "g", entries[i].body
		}
		if err := (&Provider{queues: q}).sendInOrder(t.Context(), "url", entries); err != nil {
			t.Fatal(err)
		}
		if again := bodies(q.sent[len(q.sent)-1]); len(again) != 3 || again[0] != "1" || again[2] != "3" {
			t.Errorf("sent again: %v", again)
		}
	})
}
