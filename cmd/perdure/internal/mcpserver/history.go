package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/instances"
	"github.com/perdure/perdure/history"
)

type historyArgs struct {
	ID        string `json:"id" jsonschema:"instance ID"`
	Execution string `json:"execution,omitempty" jsonschema:"execution ID, default the current one"`
	After     int64  `json:"after,omitempty" jsonschema:"ID of the event after which the page begins"`
	Last      bool   `json:"last,omitempty" jsonschema:"the last events instead of the first ones; reads the whole history"`
	Limit     int    `json:"limit,omitempty" jsonschema:"maximum number of events, 1 to 200, default 50"`
}

// events is a page of a history. It holds at most limit events and maxListBytes.
type events struct {
	limit int
	items []history.Event
	docs  []json.RawMessage
	size  int
	// more reports whether the page ends before the history.
	more bool
	// omitted counts the events before the page.
	omitted int
}

// add adds the next event of the history. It returns false if the page is full.
func (p *events) add(e *history.Event) (bool, error) {
	if len(p.items) == p.limit {
		p.more = true
		return false, nil
	}
	doc, err := encodeItem(e)
	if err != nil {
		return false, err
	}
	if p.size+len(doc) > maxListBytes {
		p.more = true
		return false, nil
	}
	p.items, p.docs = append(p.items, *e), append(p.docs, doc)
	p.size += len(doc) + 1
	return true, nil
}

func (p *events) readFirst(all iter.Seq2[history.Event, error]) error {
	for e, err := range all {
		if err != nil {
			return err
		}
		if added, err := p.add(&e); err != nil || !added {
			return err
		}
	}
	return nil
}

// readLast adds the last events of a history. It encodes only these.
func (p *events) readLast(all iter.Seq2[history.Event, error]) error {
	ring := make([]history.Event, p.limit)
	read := 0
	for e, err := range all {
		if err != nil {
			return err
		}
		ring[read%p.limit] = e
		read++
	}
	first := max(0, read-p.limit)
	for i := read - 1; i >= first; i-- {
		if added, err := p.add(&ring[i%p.limit]); err != nil {
			return err
		} else if !added {
			break
		}
	}
	slices.Reverse(p.items)
	slices.Reverse(p.docs)
	p.more, p.omitted = false, read-len(p.items)
	return nil
}

// historyHead is the data of a page of a history without its events. Next is the argument after of the next page.
type historyHead struct {
	InstanceID  string               `json:"instanceId"`
	ExecutionID string               `json:"executionId"`
	Status      client.RuntimeStatus `json:"status"`
	Notes       []client.Note        `json:"notes,omitempty"`
	Next        int64                `json:"next,omitempty"`
}

func (s *server) history(ctx context.Context, c call[historyArgs]) (*toolResult, error) {
	in := &c.in
	limit, err := limitOf(in.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	st, err := s.hub.Client.Status(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	execution := cmp.Or(in.Execution, st.ExecutionID)
	p := &events{limit: limit}
	read := p.readFirst
	if in.Last {
		read = p.readLast
	}
	err = read(s.hub.Client.History(ctx, in.ID, client.WithExecutionID(execution), client.AfterEvent(in.After)))
	if errors.Is(err, client.ErrNotFound) {
		return nil, instances.NoExecution(st, execution)
	}
	if err != nil {
		return nil, err
	}
	return p.toolResult(st, execution)
}

func (p *events) toolResult(st client.Status, execution string) (*toolResult, error) {
	head := historyHead{InstanceID: st.InstanceID, ExecutionID: execution, Status: st.Status, Notes: st.Notes}
	a := &toolResult{Summary: fmt.Sprintf("%d events.", len(p.items))}
	switch {
	case p.more:
		head.Next = p.items[len(p.items)-1].ID
		a.notifyf("There are more events: repeat the call with after set to %d.", head.Next)
	case p.omitted > 0:
		a.notifyf("%d earlier events are omitted.", p.omitted)
	}
	text := describe.InstanceHeader(st) + "execution " + execution + "\n\n" + describe.EventTable(p.items)
	return a, a.setData(text, head, list{"events", p.docs})
}
