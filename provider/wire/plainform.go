package wire

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// plainForm decodes the JSON of work items and activity outcomes, the most frequent records. It accepts only the form
// that this module writes, with fields in order and without spaces and escapes. It needs a fifth of the time of
// encoding/json, which took an eighth of the engine's time. For all other forms, such as rare fields or non-ASCII text,
// the caller uses encoding/json.
//
// Call its methods for the fields in order. Each method decodes its field if that field is next. Otherwise it does not
// change the value.
type plainForm struct {
	rest  string
	opens byte // the delimiter before the next field: '{' or ','
	other bool // the body does not have the plain form
	small bool // decoded texts may share the memory of the body
}

// smallBody is the maximum size of a body that a decoded text may keep in memory. Copies of the texts would need as
// much memory.
const smallBody = 1 << 10

func newPlainForm(body string) *plainForm {
	return &plainForm{rest: body, opens: '{', small: len(body) <= smallBody}
}

// next reads the name of a field.
func (p *plainForm) next(name string) bool {
	if n := len(name) + 4; p.other || len(p.rest) < n || p.rest[0] != p.opens || p.rest[1] != '"' ||
		p.rest[2:n-2] != name || p.rest[n-2] != '"' || p.rest[n-1] != ':' {
		return false
	}
	p.rest = p.rest[len(name)+4:]
	p.opens = ','
	return true
}

// ended reports whether the object has ended and no text remains.
func (p *plainForm) ended() bool { return !p.other && p.opens == ',' && p.rest == "}" }

// text decodes a string. It copies the text of a large body, so that a stored ID does not keep a megabyte in memory.
func (p *plainForm) text(name string, into *string) {
	if !p.next(name) {
		return
	}
	if p.rest == "" || p.rest[0] != '"' {
		p.other = true
		return
	}
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			if *into = p.rest[1:i]; !p.small {
				*into = strings.Clone(*into)
			}
			p.rest = p.rest[i+1:]
			return
		case c < ' ' || c == '\\' || c > '~':
			p.other = true
			return
		}
	}
	p.other = true
}

// number decodes integers from 0 to 10^18-1.
func (p *plainForm) number(name string, into *int64) {
	if !p.next(name) {
		return
	}
	n, digits := int64(0), 0
	for digits < len(p.rest) && '0' <= p.rest[digits] && p.rest[digits] <= '9' {
		n = 10*n + int64(p.rest[digits]-'0')
		if digits++; digits > 18 {
			break
		}
	}
	if digits == 0 || digits > 18 || digits > 1 && p.rest[0] == '0' ||
		digits < len(p.rest) && strings.IndexByte(".eE", p.rest[digits]) >= 0 {
		p.other = true
		return
	}
	*into = n
	p.rest = p.rest[digits:]
}

func (p *plainForm) count(name string, into *int) {
	n := int64(*into)
	p.number(name, &n)
	*into = int(n)
}

// trace decodes a trace context. An invalid context becomes empty, as in history.TraceParent.
func (p *plainForm) trace(into *history.TraceParent) {
	var s string
	p.text("traceparent", &s)
	*into = history.ParseTraceParent(s)
}

func (p *plainForm) yes(name string, into *bool) {
	if !p.next(name) {
		return
	}
	var found bool
	if p.rest, found = strings.CutPrefix(p.rest, "true"); found {
		*into = true
		return
	}
	p.other = true
}

// payload reads a whole JSON value.
func (p *plainForm) payload(name string, into *history.Payload) {
	if !p.next(name) {
		return
	}
	end := valueEnd(p.rest)
	value := []byte(p.rest[:end])
	if len(value) == 0 || value[0] <= ' ' || value[len(value)-1] <= ' ' || !json.Valid(value) {
		p.other = true
		return
	}
	*into = value
	p.rest = p.rest[end:]
}

// deepest is the maximum depth of a payload in the plain form. It is below the limit of encoding/json for the whole
// body.
const deepest = 1000

// valueEnd returns the end of the JSON value at the beginning of s, which is the position of the next comma or bracket.
func valueEnd(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return 0
			}
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return i
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0
}

// plainWorkItem decodes a work item in the plain form. ok is false for other forms.
func plainWorkItem(body string) (w provider.WorkItem, ok bool) {
	p := newPlainForm(body)
	p.count("v", &w.V)
	p.text("instanceId", &w.InstanceID)
	p.text("executionId", &w.ExecutionID)
	p.number("seq", &w.Segment)
	p.number("activityId", &w.ActivityID)
	p.text("name", &w.Name)
	p.text("queue", &w.Queue)
	p.count("attempt", &w.Attempt)
	p.payload("input", &w.Input)
	p.number("startToCloseMs", &w.StartToCloseMs)
	p.trace(&w.TraceParent)
	p.number("heartbeatMs", &w.HeartbeatMs)
	p.text("fairnessKey", &w.FairnessKey)
	p.text("exclusiveKey", &w.ExclusiveKey)
	p.text("hub", &w.Hub)
	p.yes("again", &w.PossibleDuplicate)
	p.yes("waitCancel", &w.WaitForCancellation)
	p.yes("atMostOnce", &w.AtMostOnce)
	p.text("token", &w.Token)
	return w, p.ended()
}

// plainMessage decodes an inbox message in the plain form, in particular results of activities. ok is false for other
// forms.
func plainMessage(body string) (m provider.Message, ok bool) {
	p := newPlainForm(body)
	p.count("v", &m.V)
	p.text("kind", (*string)(&m.Kind))
	p.text("instanceId", &m.InstanceID)
	p.text("executionId", &m.ExecutionID)
	p.text("hub", &m.Hub)
	p.number("seq", &m.Segment)
	p.outcomes("outcomes", &m.Outcomes)
	p.text("name", &m.Name)
	p.text("eventId", &m.EventID)
	p.payload("data", &m.Data)
	p.trace(&m.TraceParent)
	return m, p.ended()
}

// oftenTogether is the maximum initial capacity for outcomes, the size of a batch of records.
const oftenTogether = 10

// outcomes decodes a list of results. A list with a failure or a pending attempt does not have the plain form.
func (p *plainForm) outcomes(name string, into *[]provider.ActivityOutcome) {
	if !p.next(name) {
		return
	}
	rest, found := strings.CutPrefix(p.rest, "[")
	list := make([]provider.ActivityOutcome, 0, min(strings.Count(rest, `{"activityId":`), oftenTogether))
	for found {
		item := plainForm{rest: rest, opens: '{'}
		var o provider.ActivityOutcome
		item.number("activityId", &o.ActivityID)
		item.count("attempt", &o.Attempt)
		item.payload("result", &o.Result)

		if rest, found = strings.CutPrefix(item.rest, "}"); !found || item.other || item.opens == '{' {
			break
		}
		list = append(list, o)
		if p.rest, found = strings.CutPrefix(rest, "]"); found {
			*into = list
			return
		}
		rest, found = strings.CutPrefix(rest, ",")
	}
	p.other = true
}
