package queues

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Records tests operations on records that do not depend on their content.
func Records() kit.Group {
	return kit.Group{Name: "records", Cases: []kit.Case{
		{Name: "UnreadableInboxRecordsAreReturnedApart", Run: unreadableInbox},
		{Name: "UnreadableWorkItemsAreReturnedApart", Run: unreadableWork},
		{Name: "UnreadableTimersAreReturnedApart", Run: unreadableTimers},
		{Name: "MessagesAreSortedByInstanceInOrder", Run: sortedByInstance},
		{Name: "DeadLettersAreCopies", Run: deadLetters},
		{Name: "UnknownQueuesAreNamed", Run: unknownQueues},
		{Name: "MoreRecordsThanABatchHolds", Run: manyRecords},
		{Name: "NoRecordsAtAll", Run: noRecords},
	}}
}

// groupedRecord is like kit.Record, in the message group of an instance.
func groupedRecord(f *kit.Fixture, n int, instanceID, body string) provider.Record {
	f.T.Helper()
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), provider.Message{
		Kind: provider.MessageWake, InstanceID: instanceID,
	}))
	rs := f.Receive(provider.QueueInbox)
	if len(rs) != 1 {
		f.T.Fatalf("%d records, want a wake", len(rs))
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, rs[0]))
	r := kit.Record(n, body)
	r.Group = rs[0].Group
	return r
}

// notMessages returns bodies that this release does not write.
func notMessages() []string {
	return []string{
		"", "no JSON", "null", "[]", "42", `{}`, `{"v":1}`, `{"v":0,"kind":"wake","instanceId":"a"}`,
		`{"v":2,"kind":"wake","instanceId":"a"}`, `{"v":-1,"kind":"wake","instanceId":"a"}`,
		`{"v":"1","kind":"wake","instanceId":"a"}`,
		`{"v":1,"kind":"later","instanceId":"a"}`, `{"v":1,"kind":"wake"}`, `{"v":1,"kind":"wake","instanceId":7}`,
		`{"v":1,"kind":"wake"`,
	}
}

// wantUnreadable fails if the unreadable records are not these, or if one has no error.
func wantUnreadable(f *kit.Fixture, got []provider.Unreadable, want ...provider.Record) {
	f.T.Helper()
	if len(got) != len(want) {
		f.T.Fatalf("%d unreadable records, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].Record != want[i] || got[i].Err == nil {
			f.T.Errorf("unreadable %+v, want record %+v and an error", got[i], want[i])
		}
	}
}

func unreadableInbox(f *kit.Fixture) {
	var bad []provider.Record
	for n, body := range notMessages() {
		bad = append(bad, kit.Record(n, body))
	}
	good := groupedRecord(f, 100, "a", `{"v":1,"kind":"wake","instanceId":"a","unknownField":true}`)
	items, unreadable := f.Provider.DecodeOrchestrationItems(append(slices.Clip(bad), good))
	wantUnreadable(f, unreadable, bad...)
	if len(items) != 1 || items[0].InstanceID != "a" || items[0].Messages[0].Record != good {
		f.T.Errorf("read: %s", kit.Text(items))
	}
}

func unreadableWork(f *kit.Fixture) {
	bad := []provider.Record{
		kit.Record(1, "no JSON"), kit.Record(2, `{"v":2,"instanceId":"a","executionId":"x","activityId":3,"name":"n"}`),
		kit.Record(3, `{"v":1,"executionId":"x","activityId":3,"name":"n"}`),
		kit.Record(4, `{"v":1,"instanceId":"a","activityId":3,"name":"n"}`),
		kit.Record(5, `{"v":1,"instanceId":"a","executionId":"x","name":"n"}`),
		kit.Record(6, `{"v":1,"instanceId":"a","executionId":"x","activityId":3}`),
	}
	good := kit.Record(7,
		`{"v":1,"instanceId":"a","executionId":"x","activityId":3,"name":"n","queue":"q","attempt":1}`)
	items, unreadable := f.Provider.DecodeWorkItems(f.Ctx(), append(slices.Clip(bad), good))
	wantUnreadable(f, unreadable, bad...)
	if len(items) != 1 || items[0].ActivityID != 3 || items[0].Record != good {
		f.T.Errorf("read: %s", kit.Text(items))
	}
}

func unreadableTimers(f *kit.Fixture) {
	bad := []provider.Record{
		kit.Record(1, "no JSON"),
		kit.Record(2, `{"v":2,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`),
		kit.Record(3, `{"v":1,"executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`),
		kit.Record(4, `{"v":1,"instanceId":"a","executionId":"x"}`),
		kit.Record(5, `{"v":1,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"tomorrow"}`),
	}
	good := kit.Record(7, `{"v":1,"instanceId":"a","executionId":"x","timerId":3,"fireAt":"2026-01-01T00:00:00Z"}`)
	timers, unreadable := f.Provider.DecodeTimers(append(slices.Clip(bad), good))
	wantUnreadable(f, unreadable, bad...)
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Record != good {
		f.T.Errorf("read: %s", kit.Text(timers))
	}
}

func sortedByInstance(f *kit.Fixture) {
	var rs []provider.Record
	for n, id := range []string{"b", "a", "b", "c", "a", "b"} {
		rs = append(rs, groupedRecord(f, n, id, fmt.Sprintf(`{"v":1,"kind":"wake","instanceId":%q}`, id)))
	}
	items, _ := f.Provider.DecodeOrchestrationItems(rs)
	got := map[string][]string{}
	for _, it := range items {
		for _, m := range it.Messages {
			got[it.InstanceID] = append(got[it.InstanceID], m.Position.Sequence)
		}
	}
	f.WantEqual("sorted", got, map[string][]string{"a": {"1", "4"}, "b": {"0", "2", "5"}, "c": {"3"}})
}

func deadLetters(f *kit.Fixture) {
	f.Start("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
	for _, queue := range []string{provider.QueueInbox, kit.Queue, provider.QueueTimers} {
		rs := f.Receive(queue)
		if len(rs) != 1 {
			f.T.Fatalf("%d records in %s, want 1", len(rs), queue)
		}
		for range 2 { // a repeated delivery can copy it twice
			f.Must(f.Provider.DeadLetter(f.Ctx(), queue, provider.Unreadable{
				Record: rs[0], Err: errors.New("cannot be read: \uFFFF\x00"),
			}))
		}
		if dead := f.ReceiveDead(queue); len(dead) == 0 || dead[0].Body != rs[0].Body {
			f.T.Errorf("dead letters of %s: %s, want a copy of %s", queue, kit.Text(dead), rs[0].Body)
		}
		f.Must(f.Provider.DeleteRecords(f.Ctx(), queue, rs[0])) // the original can still be deleted
	}
}

func unknownQueues(f *kit.Fixture) {
	r := kit.Record(1, "x")
	_, failed := f.Provider.AckWorkItems(f.Ctx(), "nowhere", nil)
	for name, err := range map[string]error{
		"DeadLetter": f.Provider.DeadLetter(f.Ctx(), "nowhere", provider.Unreadable{
			Record: r, Err: errors.New("bad"),
		}),
		"AbandonRecords": f.Provider.AbandonRecords(f.Ctx(), "nowhere", time.Second, r),
		"DeleteRecords":  f.Provider.DeleteRecords(f.Ctx(), "nowhere", r),
	} {
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field == "" {
			f.T.Errorf("%s: error %v, want a FieldError", name, err)
		}
	}
	f.Must(failed) // no call can fail
}

func manyRecords(f *kit.Fixture) {
	f.Start("a").Commit(append([]history.Event{kit.TurnStarted()}, kit.Repeat(25, kit.Activity(kit.Queue))...)...)
	receive := func() (all []provider.Record) {
		for {
			rs := f.Receive(kit.Queue)
			if len(rs) == 0 {
				return all
			}
			all = append(all, rs...)
		}
	}
	first := receive()
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, first...))
	again := receive()
	if len(first) != 25 || len(again) != 25 {
		f.T.Fatalf("%d records, %d after all were abandoned, want 25", len(first), len(again))
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), kit.Queue, again...))
	f.Advance(time.Second)
	if left := receive(); len(left) > 0 {
		f.T.Errorf("%d records left", len(left))
	}
}

func noRecords(f *kit.Fixture) {
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx()))
	f.Must(f.Provider.HoldTimers(f.Ctx()))
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, time.Second))
	f.Must(f.Provider.DeleteRecords(f.Ctx(), kit.Queue))
	if items, bad := f.Provider.DecodeOrchestrationItems(nil); len(items)+len(bad) > 0 {
		f.T.Errorf("decoded %v, %v from no records", items, bad)
	}
	if failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, nil); err != nil || len(failed) > 0 {
		f.T.Errorf("acknowledge without outcomes: %v, %v", failed, err)
	}
}
