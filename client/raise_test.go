package client_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

func TestRaiseEvent_withOrWithoutEventID_sendsMessage(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	for _, opts := range [][]client.RaiseOption{{client.WithEventID("e-1")}, nil, nil} {
		if err := c.RaiseEvent(t.Context(), "one", "approved", map[string]int{"n": 1}, opts...); err != nil {
			t.Fatal(err)
		}
	}
	sent := p.Sent()
	if len(sent) != 3 || sent[0].Kind != provider.MessageEventRaised || sent[0].Name != "approved" ||
		sent[0].EventID != "e-1" || string(sent[0].Data) != `{"n":1}` {
		t.Fatalf("got messages %+v", sent)
	}
	if sent[1].EventID == "" || sent[1].EventID == sent[2].EventID {
		t.Errorf("events without IDs: got IDs %q and %q", sent[1].EventID, sent[2].EventID)
	}
}

func TestRaiseEventAndTerminate_invalidRequest_isRejected(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	mustStart(t, c, "over")
	p.Append("over", completed("1"))
	raise := func(id, event string, data any, opts ...client.RaiseOption) error {
		return c.RaiseEvent(t.Context(), id, event, data, opts...)
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for field, err := range map[string]error{
		"event":      raise("one", "", nil),
		"event ":     raise("one", long(257), nil),
		"instanceId": raise("a\n", "e", nil),
		"data":       raise("one", "e", json.RawMessage(`{`)),
		"data ":      raise("one", "e", make(chan int)),
		"eventId":    raise("one", "e", nil, client.WithEventID("")),
		"eventId ":   raise("one", "e", nil, client.WithEventID(long(257))),
		"eventId  ":  raise("one", "e", nil, client.WithEventID("\xff")), // in JSON this ID would change
		"message":    c.Terminate(t.Context(), "one", long(1025)),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != strings.TrimSpace(field) {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	if large, ok := errors.AsType[*perdure.PayloadTooLargeError](raise("one", "e", long(200<<10))); !ok ||
		large.Name != "data" {
		t.Errorf("too large data: got %v", large)
	}
	for want, ids := range map[error]string{client.ErrNotFound: "missing", client.ErrEnded: "over"} {
		if err := raise(ids, "e", nil); !errors.Is(err, want) {
			t.Errorf("raise for %s: got error %v", ids, err)
		}
		if err := c.Terminate(t.Context(), ids, ""); !errors.Is(err, want) {
			t.Errorf("terminate %s: got error %v", ids, err)
		}
	}
	if sent := p.Sent(); len(sent) > 0 {
		t.Errorf("got messages %+v, want none", sent)
	}
}
