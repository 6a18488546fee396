package providertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Operations on records that do not depend on their content.
func records() group {
	return group{"records", []testCase{
		{name: "UnreadableInboxRecordsAreReturnedApart", run: unreadableInbox},
		{name: "UnreadableWorkItemsAreReturnedApart", run: unreadableWork},
		{name: "UnreadableTimersAreReturnedApart", run: unreadableTimers},
		{name: "MessagesAreSortedByInstanceInOrder", run: sortedByInstance},
		{name: "DeadLettersAreCopies", run: deadLetters},
		{name: "UnknownQueuesAreNamed", run: unknownQueues},
		{name: "MoreRecordsThanABatchHolds", run: manyRecords},
		{name: "NoRecordsAtAll", run: noRecords},
	}}
}

// record returns a record that no queue has delivered.
func record(n int, body string) provider.Record {
	return provider.Record{ID: fmt.Sprint("m", n), ReceiptHandle: fmt.Sprint("lock", n), Body: body, Group: "g", Sequence: strconv.Itoa(n), ReceiveCount: 1}
}

// groupedRecord is like record, in the message group of an instance.
func (f *fixture) groupedRecord(n int, instanceID, body string) provider.Record {
	f.t.Helper()
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), provider.Message{Kind: provider.MessageWake, InstanceID: instanceID}))
	rs := f.Receive(provider.QueueInbox)
	if len(rs) != 1 {
		f.t.Fatalf("%d records, want a wake", len(rs))
	}
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, rs[0]))
	r := record(n, body)
	r.Group = rs[0].Group
	return r
}

// notMessages returns bodies that this release does not write.
func notMessages() []string {
	return []string{
		"", "no JSON", "null", "[]", "42", `{}`, `{"v":1}`, `{"v":0,"kind":"wake","instanceId":"a"}`,
		`{"v":2,"kind":"wake","instanceId":"a"}`, `{"v":-1,"kind":"wake","instanceId":"a"}`, `{"v":"1","kind":"wake","instanceId":"a"}`,
		`{"v":1,"kind":"later","instanceId":"a"}`, `{"v":1,"kind":"wake"}`, `{"v":1,"kind":"wake","instanceId":7}`, `{"v":1,"kind":"wake"`,
	}
}

// wantUnreadable fails unless the unreadable records are these, with an error each.
func (f *fixture) wantUnreadable(got []provider.Unreadable, want ...provider.Record) {
	f.t.Helper()
	if len(got) != len(want) {
		f.t.Fatalf("%d unreadable records, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].Record != want[i] || got[i].Err == nil {
			f.t.Errorf("unreadable %+v, want record %+v and an error", got[i], want[i])
		}
	}
}

func unreadableInbox(f *fixture) {
	var bad []provider.Record
	for n, body := range notMessages() {
		bad = append(bad, record(n, body))
	}
	good := f.groupedRecord(100, "a", `{"v":1,"kind":"wake","instanceId":"a","unknownField":true}`)
	items, unreadable := f.p.DecodeOrchestrationItems(append(slices.Clip(bad), good))
	f.wantUnreadable(unreadable, bad...)
	if len(items) != 1 || items[0].InstanceID != "a" || items[0].Messages[0].Record != good {
		f.t.Errorf("read: %s", text(items))
	}
}

func unreadableWork(f *fixture) {
	bad := []provider.Record{
		record(1, "no JSON"), record(2, `{"v":2,"instanceId":"a","executionId":"x","activityId":3,"name":"n"}`),
		record(3, `{"v":1,"executionId":"x","activityId":3,"name":"n"}`), record(4, `{"v":1,"instanceId":"a","activityId":3,"name":"n"}`),
		record(5, `{"v":1,"instanceId":"a","executionId":"x","name":"n"}`), record(6, `{"v":1,"instanceId":"a","executionId":"x","activityId":3}`),
	}
	good := record(7, `{"v":1,"instanceId":"a","executionId":"x","activityId":3,"name":"n","queue":"q","attempt":1}`)
	items, unreadable := f.p.DecodeWorkItems(f.ctx(), append(slices.Clip(bad), good))
	f.wantUnreadable(unreadable, bad...)
	if len(items) != 1 || items[0].ActivityID != 3 || items[0].Record != good {
		f.t.Errorf("read: %s", text(items))
	}
}

func unreadableTimers(f *fixture) {
	bad := []provider.Record{
		record(1, "no JSON"), record(2, `{"v":2,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`),
		record(3, `{"v":1,"executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`), record(4, `{"v":1,"instanceId":"a","executionId":"x"}`),
		record(5, `{"v":1,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"tomorrow"}`),
	}
	good := record(7, `{"v":1,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`)
	timers, unreadable := f.p.DecodeTimers(append(slices.Clip(bad), good))
	f.wantUnreadable(unreadable, bad...)
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Record != good {
		f.t.Errorf("read: %s", text(timers))
	}
}

func sortedByInstance(f *fixture) {
	var rs []provider.Record
	for n, id := range []string{"b", "a", "b", "c", "a", "b"} {
		rs = append(rs, f.groupedRecord(n, id, fmt.Sprintf(`{"v":1,"kind":"wake","instanceId":%q}`, id)))
	}
	items, _ := f.p.DecodeOrchestrationItems(rs)
	got := map[string][]string{}
	for _, it := range items {
		for _, m := range it.Messages {
			got[it.InstanceID] = append(got[it.InstanceID], m.Position.Sequence)
		}
	}
	f.wantEqual("sorted", got, map[string][]string{"a": {"1", "4"}, "b": {"0", "2", "5"}, "c": {"3"}})
}

func deadLetters(f *fixture) {
	f.start("a").commit(turnStarted(), activity(Queue), timer(f.now()))
	for _, queue := range []string{provider.QueueInbox, Queue, provider.QueueTimers} {
		rs := f.Receive(queue)
		if len(rs) != 1 {
			f.t.Fatalf("%d records in %s, want 1", len(rs), queue)
		}
		for range 2 { // a repeated delivery can copy it twice
			f.must(f.p.DeadLetter(f.ctx(), queue, provider.Unreadable{Record: rs[0], Err: errors.New("cannot be read: \uFFFF\x00")}))
		}
		if dead := f.ReceiveDead(queue); len(dead) == 0 || dead[0].Body != rs[0].Body {
			f.t.Errorf("dead letters of %s: %s, want a copy of %s", queue, text(dead), rs[0].Body)
		}
		f.must(f.p.DeleteRecords(f.ctx(), queue, rs[0])) // the original can still be deleted
	}
}

func unknownQueues(f *fixture) {
	r := record(1, "x")
	_, failed := f.p.AckWorkItems(f.ctx(), "nowhere", nil)
	for name, err := range map[string]error{
		"DeadLetter":     f.p.DeadLetter(f.ctx(), "nowhere", provider.Unreadable{Record: r, Err: errors.New("bad")}),
		"AbandonRecords": f.p.AbandonRecords(f.ctx(), "nowhere", time.Second, r),
		"DeleteRecords":  f.p.DeleteRecords(f.ctx(), "nowhere", r),
	} {
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field == "" {
			f.t.Errorf("%s: error %v, want a FieldError", name, err)
		}
	}
	f.must(failed) // there is no call that can fail
}

func manyRecords(f *fixture) {
	f.start("a").commit(append([]history.Event{turnStarted()}, repeat(25, activity(Queue))...)...)
	receive := func() (all []provider.Record) {
		for {
			rs := f.Receive(Queue)
			if len(rs) == 0 {
				return all
			}
			all = append(all, rs...)
		}
	}
	first := receive()
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, first...))
	again := receive()
	if len(first) != 25 || len(again) != 25 {
		f.t.Fatalf("%d records, %d after all were abandoned, want 25", len(first), len(again))
	}
	f.must(f.p.DeleteRecords(f.ctx(), Queue, again...))
	f.Advance(time.Second)
	if left := receive(); len(left) > 0 {
		f.t.Errorf("%d records left", len(left))
	}
}

func noRecords(f *fixture) {
	f.must(f.p.EnqueueForOrchestrator(f.ctx()))
	f.must(f.p.HoldTimers(f.ctx()))
	f.must(f.p.AbandonRecords(f.ctx(), Queue, time.Second))
	f.must(f.p.DeleteRecords(f.ctx(), Queue))
	if items, bad := f.p.DecodeOrchestrationItems(nil); len(items)+len(bad) > 0 {
		f.t.Errorf("decoded %v, %v from no records", items, bad)
	}
	if failed, err := f.p.AckWorkItems(f.ctx(), Queue, nil); err != nil || len(failed) > 0 {
		f.t.Errorf("acknowledge without outcomes: %v, %v", failed, err)
	}
}
