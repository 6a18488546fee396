package provider

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/history"
)

// plainForm reads the JSON of what travels most, work items and activity outcomes, in the very form in which it is
// written: fields in their order, no spaces, no escapes. It takes a fifth of the time of encoding/json, which was
// an eighth of the engine's. Whatever has another form is left to encoding/json: a rare field, a text beyond ASCII, a
// message written by hand.
//
// Its methods are called for the fields in their order. Each takes its field where it is next, and leaves the value
// as it is where it is not.
type plainForm struct {
	rest  string
	opens byte // what is before the next field: '{' or ','
	other bool // the form is another one
	small bool // texts may share the body's memory
}

// smallBody is up to which size a text that is kept may keep its body: copies of ten texts take as much.
const smallBody = 1 << 10

func newPlainForm(body string) *plainForm {
	return &plainForm{rest: body, opens: '{', small: len(body) <= smallBody}
}

// next takes the name of a field.
func (p *plainForm) next(name string) bool {
	if n := len(name) + 4; p.other || len(p.rest) < n || p.rest[0] != p.opens || p.rest[1] != '"' || p.rest[2:n-2] != name || p.rest[n-2] != '"' || p.rest[n-1] != ':' {
		return false
	}
	p.rest = p.rest[len(name)+4:]
	p.opens = ','
	return true
}

// ended reports whether the object has ended, and nothing is left.
func (p *plainForm) ended() bool { return !p.other && p.opens == ',' && p.rest == "}" }

// text copies from a large body, so that an id which is kept does not keep a megabyte.
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

// number reads integers from 0 to 10^18-1.
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
	if digits == 0 || digits > 18 || digits > 1 && p.rest[0] == '0' || digits < len(p.rest) && strings.IndexByte(".eE", p.rest[digits]) >= 0 {
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

// trace drops a context that is none, as history.TraceParent reads itself.
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

// payload takes a whole JSON value.
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

// deepest is how deep payloads may be nested here. The limit of encoding/json counts from the whole body.
const deepest = 1000

// valueEnd returns where the JSON value ends that s begins with, if it is one: at the comma or the bracket behind it.
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

// plainWorkItem reads a work item of the plain form. ok is false for another.
func plainWorkItem(body string) (w WorkItem, ok bool) {
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

// plainMessage reads an inbox message of the plain form: the results of activities above all. ok is false for another.
func plainMessage(body string) (m Message, ok bool) {
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

// oftenTogether is for how many outcomes there is room at once: for those of a batch of records.
const oftenTogether = 10

// outcomes takes a list of results. One that failed, or that is waited for, has another form.
func (p *plainForm) outcomes(name string, into *[]ActivityOutcome) {
	if !p.next(name) {
		return
	}
	rest, found := strings.CutPrefix(p.rest, "[")
	list := make([]ActivityOutcome, 0, min(strings.Count(rest, `{"activityId":`), oftenTogether))
	for found {
		item := plainForm{rest: rest, opens: '{'}
		var o ActivityOutcome
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
