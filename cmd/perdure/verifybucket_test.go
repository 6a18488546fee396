package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// turned is a codec that reverses the bytes.
type turned struct{}

func (turned) ID() string { return "turned" }

func (turned) Encode(_ context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	return around(doc), nil
}

func (turned) Decode(_ context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	return around(data), nil
}

func around(b []byte) []byte {
	b = bytes.Clone(b)
	slices.Reverse(b)
	return b
}

// storing is a hub with a bucket.
type storing struct {
	*fakeprovider.Provider
	bucket *bucket
}

func (s *storing) Payloads() provider.PayloadStore { return s.bucket }

func (*storing) SweepPayloads(context.Context, string) (next string, deleted int, err error) {
	return "", 0, nil
}

// bucket is a payload store that records its reads.
type bucket struct {
	provider.PayloadStore

	mu      sync.Mutex
	objects map[string][]byte
	reads   []string
	fails   func(reads int) error // default: no read fails
}

func (b *bucket) PutPayload(_ context.Context, key string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = bytes.Clone(data)
	return nil
}

func (b *bucket) GetPayload(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads = append(b.reads, key)
	if b.fails != nil {
		if err := b.fails(len(b.reads)); err != nil {
			return nil, err
		}
	}
	data, ok := b.objects[key]
	if !ok {
		return nil, fmt.Errorf("no object %s: %w", key, provider.ErrNotFound)
	}
	return data, nil
}

// put stores a text of the given size as a payload of an execution.
func (b *bucket) put(executionID string, length int, encoded bool) history.Payload {
	doc := []byte(`"` + strings.Repeat(strconv.Itoa(len(b.objects)), length) + `"`)
	s := history.EncodedPayload{Bytes: int64(len(doc))}
	if encoded {
		digest := sha256.Sum256(doc)
		s.Codec, s.Digest = turned{}.ID(), around(digest[:])
		doc = around(doc)
	}
	sum := sha256.Sum256(doc)
	s.SHA256 = hex.EncodeToString(sum[:])
	s.Key = provider.PayloadKey(executionID, s.SHA256)
	b.objects[s.Key] = doc
	return s.Payload()
}

// scanning returns a hub with an instance whose code read texts from the bucket, and made decisions by their lengths.
func scanning(t *testing.T, encoded bool, lengths ...int) (*tool, *bucket) {
	t.Helper()
	h, b := setup(t), &bucket{objects: map[string][]byte{}}
	h.client = client.New(&storing{h.Provider, b})
	h.mustRun("start", "fulfil", "--id", "a", "--input", strconv.Itoa(len(lengths)))
	h.Append("a", at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b-1"}))
	for range lengths {
		h.Append("a", at(time.Second, history.Event{
			Kind: history.ActivityScheduled, Name: "scan", Queue: "default", Input: history.Payload("null"),
		}))
	}
	h.Append("a", at(time.Minute, history.Event{Kind: history.TurnStarted, BuildID: "b-1", LargePayloads: true}))
	all := 0
	for i, length := range lengths {
		all += length
		h.Append("a", at(time.Minute, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: int64(3 + i), Result: b.put("x1", length, encoded),
		}))
	}
	h.Append("a", at(time.Minute, history.Event{
		Kind: history.ActivityScheduled, Name: "measure", Queue: "default", Input: history.Payload(strconv.Itoa(all)),
	}))
	return h, b
}

// unread fails the test unless the instance is unread for the given reason.
func (h *tool) unread(mentions, code string) {
	h.t.Helper()
	exit, v := h.verified(code)
	if exit != cli.CodeError || len(v.Findings) != 1 || v.Findings[0].Outcome != verification.OutcomeUnread ||
		v.Findings[0].InstanceID != "a" || !strings.Contains(v.Findings[0].Problem, mentions) {
		h.t.Errorf("exit %d, %+v; %s; want %s", exit, v, h.err.String(), mentions)
	}
}

// The command reads payloads from the bucket for the code. The payloads fit in its cache or are larger, and a codec of
// the binary has encoded some of them.
func TestVerify_payloadsInBucket_areRead(t *testing.T) {
	t.Parallel()
	for _, encoded := range []bool{false, true} {
		code := "takes"
		if encoded {
			code = "takes, encoded"
		}
		h, b := scanning(t, encoded, 300<<10, 9<<20, 201<<10)
		if exit, v := h.verified(code); exit != 0 || v.Replayed != 1 || len(v.Findings) != 0 {
			t.Errorf("%s: exit %d, %+v; %s", code, exit, v, h.err.String())
		}
		if len(b.reads) != 3 {
			t.Errorf("%s: read %d objects: %v", code, len(b.reads), b.reads)
		}
	}
}

// Code that reads the payloads and then deviates from history would block the instance.
func TestVerify_codeDiffersAfterStoredPayload_isReported(t *testing.T) {
	t.Parallel()
	h, _ := scanning(t, false, 300<<10)
	exit, v := h.verified("takes, and weighs")
	if exit != cli.CodeFailed || len(v.Findings) != 1 || v.Findings[0].EventID != 6 ||
		!strings.Contains(v.Findings[0].Problem, `the code requested ActivityScheduled "weigh"`) {
		t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
}

// A binary without the codec would block the instance. verify reports this without reading the object.
func TestVerify_binaryWithoutCodec_isReported(t *testing.T) {
	t.Parallel()
	h, b := scanning(t, true, 300<<10)
	exit, v := h.verified("takes", "--allow-unread", "1")
	if exit != cli.CodeFailed || len(v.Findings) != 1 || v.Findings[0].Outcome != verification.OutcomeWouldBlock ||
		!strings.Contains(v.Findings[0].Problem, `codec "turned"`) || len(b.reads) != 0 {
		t.Errorf("exit %d, %+v; %s; read %v", exit, v, h.err.String(), b.reads)
	}
}

// If an object is missing, changed or not readable, the instance counts as unread and the command fails.
func TestVerify_unreadableObject_countsAsUnread(t *testing.T) {
	t.Parallel()
	h, b := scanning(t, false, 300<<10)
	clear(b.objects)
	h.unread("not found in the payload store", "takes")

	h, b = scanning(t, false, 300<<10)
	for key := range b.objects {
		b.objects[key] = []byte(`"another"`)
	}
	h.unread("encoded payload at ", "takes")

	h, b = scanning(t, false, 300<<10)
	b.fails = func(int) error { return &provider.Error{Op: "S3.GetObject", Err: errors.New("AccessDenied")} }
	h.unread("AccessDenied", "takes")

	h, _ = scanning(t, false, 300<<10)
	h.client = nil // a hub without a bucket
	h.unread("this program has no payload store", "takes")
}

// If a bucket throttles for longer than the SDK retries, the command retries until --timeout. Throttling does not make
// an instance unread.
func TestVerify_bucketThrottles_retriesUntilTimeout(t *testing.T) {
	t.Parallel()
	throttled := &provider.Error{Op: "S3.GetObject", Retryable: true, Err: errors.New("503 SlowDown")}
	h, b := scanning(t, false, 300<<10)
	b.fails = func(reads int) error {
		if reads <= 7 {
			return throttled
		}
		return nil
	}
	var pauses []time.Duration
	h.sleep = func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return nil
	}
	exit, v := h.verified("takes")
	want := []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
		30 * time.Second,
	}
	if exit != 0 || len(v.Findings) != 0 || !slices.Equal(pauses, want) {
		t.Errorf("exit %d, %+v; %s; paused for %v", exit, v, h.err.String(), pauses)
	}

	h, b = scanning(t, false, 300<<10)
	b.fails = func(int) error { return throttled }
	h.sleep = func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if exit, v := h.verified("takes", "--timeout", "1s"); exit != cli.CodeTimeout || len(v.Findings) != 0 {
		t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
}

// requestForever runs a binary that requests an object without a reference in a history, and then one object in a loop.
func requestForever() {
	l := replaycheck.NewBinaryConn(os.Stdin, os.Stdout)
	query := func(key string) bool {
		var response replaycheck.Request
		if l.Send(replaycheck.Reply{Object: key}) != nil || l.Receive(&response) != nil {
			return false
		}
		if response.Bytes > 0 {
			_, err := l.ReceiveObject(response.Bytes)
			return err == nil
		}
		return response.Problem != ""
	}
	var requested replaycheck.Request
	if l.Send(replaycheck.Reply{Ready: map[string][]string{"fulfil": {"1"}}}) != nil || l.Receive(&requested) != nil {
		return
	}
	for i := range requested.Replay.Events {
		if key := requested.Replay.Events[i].Result.StorageKey(); key != "" {
			for query("x/00/another/object") && query(key) {
				fmt.Fprintln(os.Stderr, "asked for", key)
			}
		}
	}
}

// The command stops a binary that requests objects in an endless loop. The binary cannot read objects to which the
// history does not refer.
func TestVerify_binaryRequestsObjectsEndlessly_isStopped(t *testing.T) {
	t.Parallel()
	h, b := scanning(t, false, 9<<20, 300<<10)
	h.unread("binary requested payloads from the payload store 8 times, but instance \"a\" has only 2 there", "asks on")
	if len(b.reads) != 4 || slices.Contains(b.reads, "x/00/another/object") {
		t.Errorf("read %v", b.reads)
	}
}

// import has no bucket for an exported history. It reports payloads of the bucket as unreadable.
func TestImport_payloadInBucket_isReportedAsUnreadable(t *testing.T) {
	t.Parallel()
	h, b := scanning(t, false, 300<<10)
	file, _ := h.exported()
	if exit := h.run(t.Context(), "import", file, "--binary", orchestratorOf(t, "takes")); exit != cli.CodeError ||
		!strings.Contains(h.err.String(), "this program has no payload store") || len(b.reads) != 0 {
		t.Errorf("exit %d, %s; read %v", exit, h.err.String(), b.reads)
	}

	h, _ = scanning(t, true, 300<<10)
	file, _ = h.exported()
	if exit := h.run(t.Context(), "import", file, "--binary", orchestratorOf(t, "takes")); exit != cli.CodeError ||
		!strings.Contains(h.err.String(), "does not have the codec") {
		t.Errorf("without the codec: exit %d, %s", exit, h.err.String())
	}
}

// verify replays a history of the engine with encoded payloads in the bucket.
func TestVerify_encodedPayloadsOfEngine_areReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := codeToVerify("takes, encoded")
		var scanned, read atomic.Int64 // functions run concurrently
		perdure.AddActivity(r, "scan", func(context.Context, any) (string, error) {
			return strings.Repeat(strconv.FormatInt(scanned.Add(1), 10), 300<<10), nil
		})
		perdure.AddActivity(r, "measure", func(context.Context, int) (int, error) { return 0, perdure.ErrPending })
		hub, err := simhub.New(simhub.Options{
			Registry: r, Bucket: true, Codecs: []perdure.Codec{turned{}},
			BatchSize: 1, Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "GetObject" {
					read.Add(1)
				}
				return next()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer synctest.Wait()
		defer hub.Close()
		h := setup(t)
		h.client = client.New(hub.Provider)
		h.mustRun("start", "fulfil", "--id", "a", "--input", "3")
		hub.ServeFor(t.Context(), time.Minute)
		read.Store(0)
		if exit, v := h.verified("takes, encoded"); exit != 0 || v.Replayed != 1 || len(v.Findings) != 0 ||
			read.Load() != 3 {
			t.Errorf("exit %d, %+v; %s; read %d", exit, v, h.err.String(), read.Load())
		}
	})
}
