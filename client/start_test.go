package client_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

func setup(t *testing.T) (*client.Client, *fakeprovider.Provider) {
	t.Helper()
	p := fakeprovider.New(func() time.Time { return began }, "hello", "bye")
	return connect(p, client.WithClock(func() time.Time { return began })), p
}

func TestStart_allOptions_areInStatusAndHistory(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	tags := map[string]string{"team": "a"}
	id, err := c.Start(t.Context(), "hello", map[string]int{"n": 1}, client.WithInstanceID("h/1#ü"),
		client.WithVersion("1.0.0"), client.WithTags(tags))
	if err != nil || id != "h/1#ü" {
		t.Fatalf("Start: got %q, error %v", id, err)
	}
	s, err := c.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if s.Orchestration != "hello" || s.Version != "1.0.0" || s.Status != client.StatusPending ||
		s.Tags["team"] != "a" || !s.CreatedAt.Equal(began) {
		t.Errorf("Status: got %+v", s)
	}
	for e, err := range p.ReadHistory(t.Context(), s.InstanceID, s.ExecutionID, 0) {
		if err != nil || string(e.Input) != `{"n":1}` {
			t.Errorf("input: got %s, error %v", e.Input, err)
		}
	}
}

func TestStart_noInstanceID_generatesULID(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	first, err := c.Start(t.Context(), "hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Start(t.Context(), "hello", nil)
	if err != nil || first == second {
		t.Fatalf("two starts: got IDs %q and %q, error %v", first, second, err)
	}
	u, err := ulid.ParseStrict(first)
	if err != nil || !ulid.Time(u.Time()).Equal(began) {
		t.Errorf("ID %q: want a ULID with the time of the clock, got error %v", first, err)
	}
}

func TestStart_repeatedIdempotencyKey_startsOneInstance(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	start := func(name string, opts ...client.StartOption) string {
		t.Helper()
		id, err := c.Start(t.Context(), name, nil, opts...)
		if err != nil {
			t.Fatalf("start %s: %v", name, err)
		}
		return id
	}
	key := client.WithIdempotencyKey("k")
	first := start("hello", key)
	if again := start("hello", key); again != first {
		t.Errorf("repeated start: got %q, then %q", first, again)
	}
	if other := start("hello", client.WithIdempotencyKey("l")); other == first {
		t.Error("start with another key: got the same instance")
	}
	if other := start("bye", key); other == first {
		t.Error("start of another orchestration: got the same instance")
	}
	start("hello", key, client.WithInstanceID("mine"))
	start("hello", key, client.WithInstanceID("mine"))
	if _, err := c.Start(t.Context(), "bye", nil, key, client.WithInstanceID("mine")); !errors.Is(err,
		client.ErrAlreadyExists) {
		t.Errorf("same key for another orchestration: got error %v", err)
	}
}

func TestStart_invalidField_isRejected(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	tags := func(k, v string) client.StartOption { return client.WithTags(map[string]string{k: v}) }
	many := map[string]string{}
	for i := range 17 {
		many[string(rune('a'+i))] = ""
	}
	for name, tt := range map[string]struct {
		orchestration string
		input         any
		opt           client.StartOption
		field         string
	}{
		"no orchestration":       {orchestration: "", field: "orchestration"},
		"long orchestration":     {orchestration: long(257), field: "orchestration"},
		"empty id":               {opt: client.WithInstanceID(""), field: "instanceId"},
		"long id":                {opt: client.WithInstanceID(long(1025)), field: "instanceId"},
		"id with newline":        {opt: client.WithInstanceID("a\nb"), field: "instanceId"},
		"id with C1 control":     {opt: client.WithInstanceID("a\u009bb"), field: "instanceId"},
		"id not UTF-8":           {opt: client.WithInstanceID("a\xff"), field: "instanceId"},
		"negative delay":         {opt: client.WithDelay(-1), field: "delay"},
		"more than ten years":    {opt: client.WithDelay(client.MaxDelay + 1), field: "delay"},
		"long version":           {opt: client.WithVersion(long(65)), field: "version"},
		"too many tags":          {opt: client.WithTags(many), field: "tags"},
		"empty tag key":          {opt: tags("", "v"), field: "tags"},
		"long tag key":           {opt: tags(long(65), "v"), field: "tags"},
		"long tag value":         {opt: tags("k", long(257)), field: "tags"},
		"empty key":              {opt: client.WithIdempotencyKey(""), field: "idempotencyKey"},
		"long key":               {opt: client.WithIdempotencyKey(long(257)), field: "idempotencyKey"},
		"input that is a chan":   {input: make(chan int), field: "input"},
		"raw input not JSON":     {input: json.RawMessage(`{"a":`), field: "input"},
		"raw input of no bytes":  {input: json.RawMessage{}, field: "input"},
		"raw input not UTF-8":    {input: json.RawMessage("\"\xff\""), field: "input"},
		"raw input with garbage": {input: json.RawMessage(`1 2`), field: "input"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			if tt.orchestration == "" && tt.field != "orchestration" {
				tt.orchestration = "hello"
			}
			var opts []client.StartOption
			if tt.opt != nil {
				opts = append(opts, tt.opt)
			}
			_, err := c.Start(t.Context(), tt.orchestration, tt.input, opts...)
			var field *provider.FieldError
			if !errors.As(err, &field) || field.Field != tt.field {
				t.Errorf("got error %v, want a FieldError for %s", err, tt.field)
			}
			if page, err := p.ListInstances(t.Context(), provider.ListQuery{}); err != nil || len(page.Instances) != 0 {
				t.Errorf("got instances %v, error %v, want none", page.Instances, err)
			}
		})
	}
}

func TestStart_valuesAtTheLimits_areAccepted(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]client.StartOption{
		"id":      client.WithInstanceID(strings.Repeat("ü", 512)),
		"key":     client.WithIdempotencyKey(strings.Repeat("k", 256)),
		"tags":    client.WithTags(map[string]string{strings.Repeat("k", 64): strings.Repeat("v", 256), "empty": ""}),
		"version": client.WithVersion(""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := setup(t)
			if _, err := c.Start(t.Context(), "hello", nil, opt); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStart_delay_setsTheStartTime(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]time.Time{
		0:                       {},
		90 * time.Second:        began.Add(90 * time.Second),
		time.Nanosecond:         began.Add(time.Millisecond), // rounded up
		1500 * time.Microsecond: began.Add(2 * time.Millisecond),
		client.MaxDelay:         began.Add(client.MaxDelay),
	} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			id, err := c.Start(t.Context(), "hello", nil, client.WithDelay(delay))
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Status(t.Context(), id)
			if err != nil || !s.StartAt.Equal(want) {
				t.Errorf("got start time %s, error %v; want %s", s.StartAt, err, want)
			}
			b, err := json.Marshal(s)
			if err != nil || strings.Contains(string(b), "startAt") != (delay > 0) {
				t.Errorf("got %s, error %v", b, err)
			}
			for e, err := range p.ReadHistory(t.Context(), id, s.ExecutionID, 0) {
				if err != nil || (e.StartAt != nil) != (delay > 0) {
					t.Errorf("got start time %v in the history, error %v", e.StartAt, err)
				}
			}
		})
	}
}

func TestStart_inputOverTheLimit_isRejected(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	input := func(bytes int) string { return strings.Repeat("x", bytes-len(`""`)) }
	if _, err := c.Start(t.Context(), "hello", input(200<<10)); err != nil {
		t.Errorf("200 KiB: got error %v", err)
	}
	_, err := c.Start(t.Context(), "hello", input(200<<10+1))
	var large *perdure.PayloadTooLargeError
	if !errors.As(err, &large) || large.Name != "input" || large.Bytes != 200<<10+1 || large.Limit != 200<<10 {
		t.Errorf("200 KiB and one byte: got error %v", err)
	}
}

func TestStart_providerFails_returnsItsError(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	if _, err := c.Start(t.Context(), "missing", nil); !errors.Is(err, client.ErrUnknownOrchestration) {
		t.Errorf("unknown name: got error %v", err)
	}
	if _, err := c.Start(t.Context(), "hello", nil, client.WithVersion("9.9.9")); !errors.Is(err,
		client.ErrUnknownOrchestration) {
		t.Errorf("unknown version: got error %v", err)
	}
	id := client.WithInstanceID("one")
	if _, err := c.Start(t.Context(), "hello", nil, id); err != nil {
		t.Fatal(err)
	}
	p.Append("one", history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
	if _, err := c.Start(t.Context(), "hello", nil, id); !errors.Is(err, client.ErrAlreadyExists) {
		t.Errorf("ID of an ended instance: got error %v", err)
	}
	p.FailWith(&provider.Error{Op: "DynamoDB.TransactWriteItems", Retryable: true, Err: errors.New("timed out")})
	got, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("two"))
	var failed *provider.Error
	if !errors.As(err, &failed) || !failed.Retryable || got != "two" {
		t.Errorf("send timeout: got %q, error %v", got, err)
	}
}
