package dynamo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// keyring is a hub whose processes sign and read tokens.
type keyring struct {
	t     *testing.T
	cloud *simaws.Cloud
	hub   dynamo.HubConfig
	log   bytes.Buffer

	mu    sync.Mutex
	fault simaws.Interceptor
	reads int
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	k := &keyring{t: t}
	k.cloud = simaws.New(simaws.WithTable(table()),
		simaws.WithInterceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			k.mu.Lock()
			fault := k.fault
			if readsKeys(c) {
				k.reads++
			}
			k.mu.Unlock()
			if fault != nil {
				return fault(ctx, c, next)
			}
			return next()
		}))
	k.hub = dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: k.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
		WorkQueues: map[string]string{
			"default": k.cloud.Queues.Create("default", simaws.QueueConfig{VisibilityTimeout: time.Minute}),
		},
	}
	return k
}

// readsKeys reports whether a call reads the keys of a hub.
func readsKeys(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.QueryInput)
	if !ok {
		return false
	}
	sk, ok := in.ExpressionAttributeValues[":sk"].(*types.AttributeValueMemberS)
	return ok && sk.Value == "key#"
}

func (k *keyring) set(fault simaws.Interceptor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault, k.reads = fault, 0
}

// polls returns the number of reads of the keys since the last call of set.
func (k *keyring) polls() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reads
}

// process returns a process that has just started.
func (k *keyring) process() *dynamo.Provider {
	k.t.Helper()
	p, err := dynamo.New(k.hub, dynamo.Clients{Table: k.cloud.Table, Queues: k.cloud.Queues},
		dynamo.WithLogger(slog.New(slog.NewTextHandler(&k.log, nil))))
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

var work = provider.WorkItem{
	V: 1, InstanceID: "i", ExecutionID: "x", Segment: 1, ActivityID: 3, Name: "n", Queue: "default", Attempt: 1,
}

// token returns the token of a work item that a process sends.
func (k *keyring) token(p *dynamo.Provider) string {
	k.t.Helper()
	if err := p.PutWorkItems(k.t.Context(), work); err != nil {
		k.t.Fatal(err)
	}
	url := k.hub.WorkQueues["default"]
	out, err := k.cloud.Queues.ReceiveMessage(k.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
	if err != nil || len(out.Messages) != 1 {
		k.t.Fatalf("%d messages, %v", len(out.Messages), err)
	}
	if err := p.DeleteRecords(k.t.Context(), "default",
		provider.Record{ReceiptHandle: *out.Messages[0].ReceiptHandle}); err != nil {
		k.t.Fatal(err)
	}
	var body struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(*out.Messages[0].Body), &body); err != nil || body.Token == "" {
		k.t.Fatalf("%s, %v", *out.Messages[0].Body, err)
	}
	return body.Token
}

// opens reports whether a process accepts a token.
func (k *keyring) opens(p *dynamo.Provider, token string) bool {
	k.t.Helper()
	w, err := p.VerifyWorkItemToken(k.t.Context(), token)
	if err != nil && !errors.Is(err, provider.ErrInvalidToken) || err == nil && w.ActivityID != work.ActivityID {
		k.t.Fatalf("%+v, %v", w, err)
	}
	return err == nil
}

// put writes a key into the table, like an operator who follows the manual.
func (k *keyring) put(sk, secret string) {
	k.t.Helper()
	it := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "hub"}, "sk": &types.AttributeValueMemberS{Value: sk},
		"secret": &types.AttributeValueMemberS{Value: secret},
	}
	if _, err := k.cloud.Table.PutItem(k.t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keyring) remove(sk string) {
	k.t.Helper()
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "hub"}, "sk": &types.AttributeValueMemberS{Value: sk},
	}
	if _, err := k.cloud.Table.DeleteItem(k.t.Context(),
		&dynamodb.DeleteItemInput{TableName: aws.String("perdure"), Key: key}); err != nil {
		k.t.Fatal(err)
	}
}

func secretOf(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// Interleaving: two processes find no key and create the first one. One of them succeeds, and both sign with its key.
func TestSigningKey_twoProcessesCreateTheFirst_bothUseOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		first, second := k.process(), k.process()
		var concurrent string
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.PutItemInput); ok && concurrent == "" &&
				strings.HasPrefix(in.Item["sk"].(*types.AttributeValueMemberS).Value, "key#") {
				k.set(nil)
				concurrent = k.token(second) // between the read and the write of the first process
			}
			return next()
		})
		token := k.token(first)
		if concurrent == "" || token != concurrent {
			t.Errorf("signed tokens %s and %s", token, concurrent)
		}
		third := k.process()
		for _, p := range []*dynamo.Provider{first, second, third} {
			if !k.opens(p, token) {
				t.Error("a process rejects the token")
			}
		}
		if k.token(third) != token {
			t.Error("a third process signs with another key")
		}
	})
}

// An operator adds a new key and keeps the old one. A new process signs with the new key. A process that verifies
// tokens reads the new key when it receives the first token of that key. Earlier tokens are valid until ten minutes
// after the deletion of the old key.
func TestSigningKey_isReplaced_earlierTokensStayValid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		orchestrator, renewer := k.process(), k.process()
		old := k.token(orchestrator)
		if !k.opens(renewer, old) {
			t.Fatal("the first token is rejected")
		}
		k.put("key#0000000002", secretOf("b"))
		if again := k.token(orchestrator); again != old {
			t.Error("a running process read the keys again to sign a token")
		}
		time.Sleep(2 * time.Minute)
		latest := k.token(k.process())
		if latest == old || !strings.HasPrefix(latest, "w1.2.") {
			t.Errorf("a new process signs the token %s", latest)
		}
		for _, p := range []*dynamo.Provider{orchestrator, renewer} {
			if !k.opens(p, latest) || !k.opens(p, old) {
				t.Error("a process with an old list of keys rejects a token")
			}
		}
		k.remove("key#0000000001")
		if !k.opens(renewer, old) {
			t.Error("a token of a cached key is rejected")
		}
		time.Sleep(10 * time.Minute)
		if k.opens(renewer, old) || !k.opens(renewer, latest) {
			t.Error("a key is still in use ten minutes after its deletion")
		}
		k.remove("key#0000000002") // all keys are deleted
		if anew := k.token(k.process()); anew == latest || !k.opens(k.process(), anew) {
			t.Errorf("signed token %s", anew)
		}
	})
}

// A token that no key has signed causes one read a minute, even if a client sends the token repeatedly. While the table
// cannot be read, the cached keys remain in use.
func TestSigningKey_tokenOfUnknownKey_costsOneReadAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		p := k.process()
		good := k.token(p)
		hostile := strings.Replace(good, "w1.1.", "w1.7.", 1)
		time.Sleep(2 * time.Minute)
		k.set(nil)
		for range 1000 {
			if k.opens(p, hostile) {
				t.Fatal("a token of an unknown key is accepted")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := k.polls(); n != 1 {
			t.Errorf("%d reads in 50 seconds, want 1", n)
		}
		time.Sleep(20 * time.Minute)
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsKeys(c) {
				return errors.New("refused")
			}
			return next()
		})
		if !k.opens(p, good) {
			t.Error("a token of a cached key is rejected while the table cannot be read")
		}
		failed, ok := errors.AsType[*provider.Error](last(p.VerifyWorkItemToken(t.Context(), hostile)))
		if !ok || failed.Op == "" {
			t.Errorf("got error %v, want the error of the read", failed)
		}
	})
}

// While the table is throttled, the tokens of a renewal of 100 leases share a read and its retries.
func TestSigningKey_tableIsThrottled_manyTokensShareTheFailedRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		p := k.process()
		good := k.token(p)
		time.Sleep(20 * time.Minute)
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsKeys(c) {
				time.Sleep(100 * time.Millisecond)
				return &types.ProvisionedThroughputExceededException{}
			}
			return next()
		})
		began := time.Now()
		for range 100 {
			if !k.opens(p, good) {
				t.Fatal("a token of a cached key is rejected while the table is throttled")
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("100 tokens took %v with %d reads, want the time of one failed read", took, k.polls())
		}
		k.set(nil)
		time.Sleep(10 * time.Second)
		if !k.opens(p, good) || k.polls() != 1 {
			t.Errorf("%d reads after the failure, want 1", k.polls())
		}
	})
}

func last[T any](_ T, err error) error { return err }

// An invalid item among the keys is skipped and logged, and all other work continues.
func TestSigningKey_invalidItem_isSkippedAndLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		k.put("key#0000000001", secretOf("a"))
		k.put("key#0000000002", "too short")
		k.put("key#0000000003", base64.StdEncoding.EncodeToString([]byte("too short")))
		k.put("key#latest", secretOf("c"))
		if token := k.token(k.process()); !strings.HasPrefix(token, "w1.1.") {
			t.Errorf("signed token %s", token)
		}
		for _, item := range []string{"key#0000000002", "key#0000000003", "key#latest"} {
			if !strings.Contains(k.log.String(), "level=ERROR") || !strings.Contains(k.log.String(), item) {
				t.Errorf("%s is not logged: %s", item, k.log.String())
			}
		}
		k.remove("key#0000000001") // no key is left
		if token := k.token(k.process()); !k.opens(k.process(), token) {
			t.Errorf("signed token %s", token)
		}
	})
}
