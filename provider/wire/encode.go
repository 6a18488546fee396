package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// object writes the JSON of encoding/json, in a fraction of its time. Work items and messages have many fields, most of
// which are empty, and reflection visits all of them. Rare fields use encoding/json. The tests compare each field.
type object struct {
	b   []byte
	err error
}

// objects are reused, with buffers of up to reusedBytes.
var objects = sync.Pool{New: func() any { return &object{b: make([]byte, 0, initialBytes)} }}

const (
	initialBytes = 1 << 10
	reusedBytes  = 16 << 10
)

// newObject returns an object with its version, which is the first field of a record.
func newObject(v int) *object {
	o, _ := objects.Get().(*object)
	o.b = strconv.AppendInt(append(o.b[:0], `{"v":`...), int64(v), 10)
	o.err = nil
	return o
}

// end returns the text of the object, which must not be used afterwards.
func (o *object) end() (string, error) {
	doc, err := string(append(o.b, '}')), o.err
	if cap(o.b) <= reusedBytes {
		objects.Put(o)
	}
	return doc, err
}

func (o *object) name(name string) { o.b = append(append(append(o.b, `,"`...), name...), `":`...) }

// requiredText writes a text even if it is empty.
func (o *object) requiredText(name, s string) {
	o.name(name)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			o.value(s)
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}

func (o *object) text(name, s string) {
	if s != "" {
		o.requiredText(name, s)
	}
}

// requiredNumber writes a number even if it is zero.
func (o *object) requiredNumber(name string, n int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) number(name string, n int64) {
	if n != 0 {
		o.requiredNumber(name, n)
	}
}

func (o *object) yes(name string, yes bool) {
	if yes {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

// payload writes a JSON value without white space. encoding/json also escapes the characters <, >, &, U+2028 and
// U+2029. The last two begin with the byte E2.
func (o *object) payload(name string, p history.Payload) {
	if len(p) == 0 {
		return
	}
	o.name(name)
	if bytes.ContainsAny(p, " \t\r\n<>&") || bytes.IndexByte(p, 0xE2) >= 0 || !json.Valid(p) {
		o.value(p)
		return
	}
	o.b = append(o.b, p...)
}

// rare writes a field with encoding/json if it is there.
func (o *object) rare(name string, there bool, v any) {
	if there {
		o.name(name)
		o.value(v)
	}
}

func (o *object) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("encode JSON: %w", err)
	}
	o.b = append(o.b, b...)
}

// EncodeWorkItem encodes a work item like encoding/json. It returns an error if a payload is not JSON.
func EncodeWorkItem(w *provider.WorkItem) (string, error) {
	o := newObject(w.V)
	o.requiredText("instanceId", w.InstanceID)
	o.requiredText("executionId", w.ExecutionID)
	o.requiredNumber("seq", w.Segment)
	o.requiredNumber("activityId", w.ActivityID)
	o.requiredText("name", w.Name)
	o.requiredText("queue", w.Queue)
	o.requiredNumber("attempt", int64(w.Attempt))
	o.payload("input", w.Input)
	o.number("startToCloseMs", w.StartToCloseMs)
	o.rare("retry", w.Retry != nil, w.Retry)
	o.text("traceparent", string(w.TraceParent))
	o.rare("notBefore", w.NotBefore != nil, w.NotBefore)
	o.number("heartbeatMs", w.HeartbeatMs)
	o.rare("closeBy", w.ScheduleToCloseDeadline != nil, w.ScheduleToCloseDeadline)
	o.text("fairnessKey", w.FairnessKey)
	o.text("exclusiveKey", w.ExclusiveKey)
	o.text("hub", w.Hub)
	o.yes("again", w.PossibleDuplicate)
	o.rare("pickedUp", w.Redrive != nil, w.Redrive)
	o.number("anew", int64(w.ResendCount))
	o.yes("waitCancel", w.WaitForCancellation)
	o.yes("atMostOnce", w.AtMostOnce)
	o.text("token", w.Token)
	return o.end()
}

// EncodeMessage encodes an inbox message like encoding/json. It returns an error if a payload is not JSON.
func EncodeMessage(m *provider.Message) (string, error) {
	o := newObject(m.V)
	o.requiredText("kind", string(m.Kind))
	o.requiredText("instanceId", m.InstanceID)
	o.text("executionId", m.ExecutionID)
	o.text("hub", m.Hub)
	o.number("seq", m.Segment)
	o.outcomes("outcomes", m.Outcomes)
	o.number("timerId", m.TimerID)
	o.rare("fireAt", m.FireAt != nil, m.FireAt)
	o.yes("activity", m.Activity)
	o.number("attempt", int64(m.Attempt))
	o.text("name", m.Name)
	o.text("eventId", m.EventID)
	o.payload("data", m.Data)
	o.yes("named", m.CustomUpdateID)
	o.rare("sentAt", m.SentAt != nil, m.SentAt)
	o.text("message", m.Text)
	o.text("startId", m.StartID)
	o.text("version", m.Version)
	o.payload("input", m.Input)
	o.rare("parent", m.Parent != nil, m.Parent)
	o.rare("tags", len(m.Tags) > 0, m.Tags)
	o.rare("startAt", m.StartAt != nil, m.StartAt)
	o.yes("detached", m.Detached)
	o.text("orchestration", m.Orchestration)
	o.number("sourceEventId", m.SourceEventID)
	o.text("childInstanceId", m.ChildID)
	o.rare("sourceEventIds", len(m.SourceEventIDs) > 0, &m.SourceEventIDs)
	o.payload("result", m.Result)
	o.rare("error", m.Error != nil, m.Error)
	o.text("reason", m.Reason)
	o.text("requestedBy", m.RequestedBy)
	o.number("activityId", m.ActivityID)
	o.number("refresh", int64(m.Refresh))
	o.rare("pickedUp", m.Redrive != nil, m.Redrive)
	o.text("traceparent", string(m.TraceParent))
	return o.end()
}

// EncodeTimer encodes a timer like encoding/json.
func EncodeTimer(t *provider.Timer) (string, error) {
	doc, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode JSON: %w", err)
	}
	return string(doc), nil
}

func (o *object) outcomes(name string, list []provider.ActivityOutcome) {
	if len(list) == 0 {
		return
	}
	o.name(name)
	for i := range list {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		o.b = append(o.b, separator)
		o.outcome(&list[i])
	}
	o.b = append(o.b, ']')
}

func (o *object) outcome(of *provider.ActivityOutcome) {
	o.b = strconv.AppendInt(append(o.b, `{"activityId":`...), of.ActivityID, 10)
	o.requiredNumber("attempt", int64(of.Attempt))
	o.payload("result", of.Result)
	o.rare("error", of.Error != nil, of.Error)
	o.text("run", of.Run)
	o.number("seq", of.Segment)
	o.rare("retryAt", of.RetryAt != nil, of.RetryAt)
	o.number("retryInMs", of.RetryInMs)
	o.text("ended", of.Ended)
	o.rare("seenAt", of.SeenAt != nil, of.SeenAt)
	o.rare("pending", of.Pending != nil, of.Pending)
	o.b = append(o.b, '}')
}
