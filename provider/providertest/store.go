package providertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A hub can have a payload store for payloads that are too large for histories and messages. Its objects are deleted
// with the execution that refers to them (R28).
func largePayloads() group {
	return group{"large payloads", []testCase{
		{name: "WhatIsStoredIsReadAndListed", run: storeReads, needs: []Capability{LargePayloads}},
		{name: "WhatIsDeletedIsGone", run: storeDeletes, needs: []Capability{LargePayloads}},
		{name: "ACopyIsOnItsOwn", run: storeCopies, needs: []Capability{LargePayloads}},
		{name: "APageHasAThousand", run: storePages, needs: []Capability{LargePayloads}, long: true},
		{name: "ADeletionTakesThem", run: deletionTakesPayloads, needs: []Capability{LargePayloads}},
		{name: "AStartSaysWhichExecutionItBegins", run: startsNamed},
		{name: "AMessageHasACopyOfItsOwn", run: mailsCopies},
		{name: "APastExecutionStaysWhileItsPayloadsAreReferredTo", run: referredPayloadsStay, needs: []Capability{LargePayloads, VirtualTime}},
		{name: "ASweepTakesWhatNobodyRefersTo", run: sweeps, needs: []Capability{LargePayloads, VirtualTime}},
	}}
}

// stored returns a payload in the payload store, with a key.
func stored(key string) history.Payload {
	return history.EncodedPayload{Key: key, SHA256: "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9", Bytes: 1}.Payload()
}

// store returns the hub's payload store.
func (f *fixture) store() provider.PayloadStore {
	f.t.Helper()
	k, ok := f.p.(provider.PayloadStoreProvider)
	if !ok || k.Payloads() == nil {
		f.t.Fatal("provider has no payload store")
	}
	return k.Payloads()
}

func (f *fixture) put(keys ...string) {
	f.t.Helper()
	for _, key := range keys {
		f.must(f.store().PutPayload(f.ctx(), key, []byte("data of "+key)))
	}
}

// keys returns the keys with a prefix.
func (f *fixture) keys(prefix string) (keys []string) {
	f.t.Helper()
	found, err := f.store().ListPayloads(f.ctx(), prefix, "")
	f.must(err)
	for _, p := range found {
		keys = append(keys, p.Key)
	}
	return keys
}

func storeReads(f *fixture) {
	odd := provider.PayloadKey("01ODD", "with a+b=c&dé%20 ")
	f.put(provider.PayloadKey("01A", "2"), provider.PayloadKey("01A", "1"), provider.PayloadKey("01B", "1"), odd)
	f.put(provider.PayloadKey("01A", "1")) // repeated
	data, err := f.store().GetPayload(f.ctx(), odd)
	f.must(err)
	f.wantEqual("data", string(data), "data of "+odd)
	_, err = f.store().GetPayload(f.ctx(), provider.PayloadKey("01A", "3"))
	f.wantIs(err, provider.ErrNotFound)
	f.wantEqual("of an execution", f.keys(provider.PayloadPrefix("01A")), []string{provider.PayloadKey("01A", "1"), provider.PayloadKey("01A", "2")})
	f.wantEqual("of another", f.keys(provider.PayloadPrefix("01ODD")), []string{odd})
	found, err := f.store().ListPayloads(f.ctx(), provider.PayloadPrefix("01A"), provider.PayloadKey("01A", "1"))
	f.must(err)
	if len(found) != 1 || found[0].Key != provider.PayloadKey("01A", "2") || f.Now().Sub(found[0].StoredAt).Abs() > time.Minute {
		f.t.Errorf("after the first: %+v, at %v", found, f.Now())
	}
	for _, key := range []string{odd, provider.PayloadKey("01B", "1")} {
		f.wantEqual("the execution of "+key, provider.PayloadPrefix(provider.ExecutionOfPayload(key)), key[:len(provider.PayloadPrefix(provider.ExecutionOfPayload(key)))])
	}
}

func storeDeletes(f *fixture) {
	a, b := provider.PayloadKey("01A", "1"), provider.PayloadKey("01A", "2")
	f.put(a, b)
	for range 2 { // keys that do not exist are ignored
		f.must(f.store().DeletePayloads(f.ctx(), a))
		f.wantEqual("left", f.keys(provider.PayloadPrefix("01A")), []string{b})
	}
	f.must(f.store().DeletePayloads(f.ctx()))
	_, err := f.store().GetPayload(f.ctx(), a)
	f.wantIs(err, provider.ErrNotFound)
}

func storeCopies(f *fixture) {
	from, to := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1"), provider.PayloadKey("01A", "1")
	f.wantIs(f.store().CopyPayload(f.ctx(), from, to), provider.ErrNotFound)
	f.put(from)
	for range 2 {
		f.must(f.store().CopyPayload(f.ctx(), from, to))
	}
	f.must(f.store().DeletePayloads(f.ctx(), from))
	data, err := f.store().GetPayload(f.ctx(), to)
	f.must(err)
	f.wantEqual("data", string(data), "data of "+from)
	if !provider.IsMessagePayloadKey(from) || provider.IsMessagePayloadKey(to) || provider.ExecutionOfPayload(from) != "" {
		f.t.Error("storage keys do not distinguish payloads of messages from payloads of executions")
	}
}

func storePages(f *fixture) {
	const more = 3
	for i := range provider.PayloadBatchSize + more {
		f.put(provider.PayloadKey("01MANY", fmt.Sprintf("%05d", i)))
	}
	first, err := f.store().ListPayloads(f.ctx(), provider.PayloadPrefix("01MANY"), "")
	f.must(err)
	rest, err := f.store().ListPayloads(f.ctx(), provider.PayloadPrefix("01MANY"), first[len(first)-1].Key)
	f.must(err)
	f.wantEqual("pages", []int{len(first), len(rest)}, []int{provider.PayloadBatchSize, more})
}

func deletionTakesPayloads(f *fixture) {
	e, other := f.start("a"), f.start("b")
	own, others := provider.PayloadKey(e.head.ExecutionID, "1"), provider.PayloadKey(other.head.ExecutionID, "1")
	mail := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1")
	f.put(own, others, mail)
	e.end(0)
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	f.wantEqual("of the one that is deleted", f.keys(provider.PayloadPrefix(e.head.ExecutionID)), []string(nil))
	f.wantEqual("of another", f.keys(provider.PayloadPrefix(other.head.ExecutionID)), []string{others})
	f.wantEqual("in a message", f.keys(mail), []string{mail})
}

func startsNamed(f *fixture) {
	s := startOf("a")
	s.ExecutionID = provider.NewExecutionID(f.now().Add(-time.Second), "a", s.StartID)
	first := s.ExecutionID
	for range 2 {
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		f.wantEqual("execution", in.ExecutionID, first)
		s.ExecutionID = provider.NewExecutionID(f.now(), "a", s.StartID+" again") // the first start counts
	}
	f.messages()
	begins := provider.NewExecutionID(f.now(), "b", "from elsewhere")
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), provider.Message{Kind: provider.MessageStart, InstanceID: "b", Name: order, Input: history.Payload("1"), StartID: "from elsewhere", Detached: true}))
	ms := f.messages()
	ms[0].NewExecutionID = begins
	o, err := f.p.CreateOrchestration(f.ctx(), &ms[0])
	f.must(err)
	f.wantEqual("execution of a message", o.Head.ExecutionID, begins)
}

func mailsCopies(f *fixture) {
	e := f.quiet("a")
	key := provider.PayloadKey(e.head.ExecutionID, "1")
	child := history.Event{Kind: history.SubOrchestrationScheduled, Name: order, InstanceID: "child", StartID: "s", Input: stored(key)}
	sent := history.Event{Kind: history.ExternalEventSent, Name: "n", InstanceID: "child", Data: stored(key)}
	t := e.commit(child, sent)
	want := map[string]bool{}
	for i := range t.Events {
		provider.EachMessagePayload(t.Origin(), &t.Events[i], func(from, to string) {
			f.wantEqual("from", from, key)
			want[to] = true
		})
	}
	f.wantEqual("copies", len(want), 2)
	for _, m := range f.messages() {
		for _, p := range []history.Payload{m.Input, m.Data} {
			if len(p) > 0 && (!want[p.StorageKey()] || !provider.IsMessagePayloadKey(p.StorageKey())) {
				f.t.Errorf("message %s has payload %s, want one of %v", m.Kind, p, want)
			}
		}
	}
	f.wantEqual("in history", e.log()[1].Input.StorageKey(), key)
}

func referredPayloadsStay(f *fixture) {
	e := f.start("a")
	first := e.head.ExecutionID
	key := provider.PayloadKey(first, "1")
	f.put(key)
	e.commit(turnStarted())
	for n := range 3 {
		f.Advance(40 * aDay)
		t := e.continuing(provider.NewExecutionID(f.now(), "a", e.head.ExecutionID), turnStarted())
		t.Retention = 30 * aDay
		if n == 0 {
			t.Events = t.Events[1:]
		}
		if n < 2 { // the event is finally consumed
			t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", EventID: "c", Data: stored(key)}}
		}
		_, err := f.p.AckOrchestrationItem(f.ctx(), t)
		f.must(err)
		e = f.executionAfter(t)
		f.Advance(40 * aDay)
		_, err = f.p.ApplyRetention(f.ctx(), "a")
		f.must(err)
		if there := slices.Contains(f.keys(provider.PayloadPrefix(first)), key); there != (n < 2) {
			f.t.Errorf("execution %d: payload exists: %t", n+2, there)
		}
	}
}

// sweep sweeps the whole store and returns the number of deleted payloads.
func (f *fixture) sweep() (deleted int) {
	f.t.Helper()
	k, ok := f.p.(provider.PayloadStoreProvider)
	if !ok {
		f.t.Fatal("provider has no payload store")
	}
	for at := ""; ; {
		next, n, err := k.SweepPayloads(f.ctx(), at)
		f.must(err)
		if deleted += n; next == "" {
			return deleted
		}
		at = next
	}
}

func sweeps(f *fixture) {
	lives, gone := f.start("lives"), f.start("gone")
	kept := []string{provider.PayloadKey(lives.head.ExecutionID, "1"), provider.PayloadKey(lives.head.ExecutionID, "2")}
	mail := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1")
	f.put(kept...)
	f.put(mail, provider.PayloadKey("01NEVER", "1"))
	gone.end(0)
	f.must(f.p.DeleteInstance(f.ctx(), "gone", true))
	f.put(provider.PayloadKey(gone.head.ExecutionID, "late"))
	for _, want := range []int{0, 2, 0} {
		f.wantEqual("deleted", f.sweep(), want)
		f.Advance(3 * aDay)
		if want == 0 {
			f.put(mail)
		}
	}
	f.wantEqual("kept", f.keys(provider.PayloadPrefix(lives.head.ExecutionID)), kept)
	f.wantEqual("mail", f.keys(mail), []string{mail})
}
