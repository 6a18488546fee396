package optional

import (
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// LargePayloads tests the payload store for payloads that are too large for histories and messages. Its objects are
// deleted with the execution that refers to them (R28).
func LargePayloads() kit.Group {
	return kit.Group{Name: "large payloads", Cases: []kit.Case{
		{Name: "StoredPayloadIsReadAndListed", Run: storeReads, Needs: []kit.Capability{kit.LargePayloads}},
		{Name: "DeletedPayloadIsNotFound", Run: storeDeletes, Needs: []kit.Capability{kit.LargePayloads}},
		{Name: "CopyIsIndependent", Run: storeCopies, Needs: []kit.Capability{kit.LargePayloads}},
		{Name: "PageHasAThousandPayloads", Run: storePages, Needs: []kit.Capability{kit.LargePayloads}, Long: true},
		{Name: "DeletionDeletesPayloads", Run: deletionTakesPayloads, Needs: []kit.Capability{kit.LargePayloads}},
		{Name: "StartHasExecutionID", Run: startsNamed},
		{Name: "MessageHasSeparateCopy", Run: messagesCopyPayloads},
		{
			Name: "ReferencedPastExecutionIsKept", Run: referredPayloadsStay,
			Needs: []kit.Capability{kit.LargePayloads, kit.VirtualTime},
		},
		{
			Name: "SweepDeletesUnreferencedPayloads", Run: sweeps,
			Needs: []kit.Capability{kit.LargePayloads, kit.VirtualTime},
		},
	}}
}

// stored returns a payload in the payload store, with a key.
func stored(key string) history.Payload {
	return history.EncodedPayload{
		Key: key, SHA256: "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9", Bytes: 1,
	}.Payload()
}

// store returns the hub's payload store.
func store(f *kit.Fixture) provider.PayloadStore {
	f.T.Helper()
	k, ok := f.Provider.(provider.PayloadStoreProvider)
	if !ok || k.Payloads() == nil {
		f.T.Fatal("provider has no payload store")
	}
	return k.Payloads()
}

func put(f *kit.Fixture, keys ...string) {
	f.T.Helper()
	for _, key := range keys {
		f.Must(store(f).PutPayload(f.Ctx(), key, []byte("data of "+key)))
	}
}

// keys returns the keys with a prefix.
func keys(f *kit.Fixture, prefix string) (keys []string) {
	f.T.Helper()
	found, err := store(f).ListPayloads(f.Ctx(), prefix, "")
	f.Must(err)
	for _, p := range found {
		keys = append(keys, p.Key)
	}
	return keys
}

func storeReads(f *kit.Fixture) {
	odd := provider.PayloadKey("01ODD", "with a+b=c&dé%20 ")
	put(f, provider.PayloadKey("01A", "2"), provider.PayloadKey("01A", "1"), provider.PayloadKey("01B", "1"), odd)
	put(f, provider.PayloadKey("01A", "1")) // repeated
	data, err := store(f).GetPayload(f.Ctx(), odd)
	f.Must(err)
	f.WantEqual("data", string(data), "data of "+odd)
	_, err = store(f).GetPayload(f.Ctx(), provider.PayloadKey("01A", "3"))
	f.WantErrorIs(err, provider.ErrNotFound)
	f.WantEqual("payloads of an execution", keys(f, provider.PayloadPrefix("01A")), []string{
		provider.PayloadKey("01A", "1"), provider.PayloadKey("01A", "2"),
	})
	f.WantEqual("payloads of another execution", keys(f, provider.PayloadPrefix("01ODD")), []string{odd})
	found, err := store(f).ListPayloads(f.Ctx(), provider.PayloadPrefix("01A"), provider.PayloadKey("01A", "1"))
	f.Must(err)
	if len(found) != 1 || found[0].Key != provider.PayloadKey("01A", "2") ||
		f.Now().Sub(found[0].StoredAt).Abs() > time.Minute {
		f.T.Errorf("after the first: %+v, at %v", found, f.Now())
	}
	for _, key := range []string{odd, provider.PayloadKey("01B", "1")} {
		f.WantEqual("the execution of "+key, provider.PayloadPrefix(provider.ExecutionOfPayload(key)),
			key[:len(provider.PayloadPrefix(provider.ExecutionOfPayload(key)))])
	}
}

func storeDeletes(f *kit.Fixture) {
	a, b := provider.PayloadKey("01A", "1"), provider.PayloadKey("01A", "2")
	put(f, a, b)
	for range 2 { // keys that do not exist are ignored
		f.Must(store(f).DeletePayloads(f.Ctx(), a))
		f.WantEqual("remaining payloads", keys(f, provider.PayloadPrefix("01A")), []string{b})
	}
	f.Must(store(f).DeletePayloads(f.Ctx()))
	_, err := store(f).GetPayload(f.Ctx(), a)
	f.WantErrorIs(err, provider.ErrNotFound)
}

func storeCopies(f *kit.Fixture) {
	from, to := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1"), provider.PayloadKey("01A", "1")
	f.WantErrorIs(store(f).CopyPayload(f.Ctx(), from, to), provider.ErrNotFound)
	put(f, from)
	for range 2 {
		f.Must(store(f).CopyPayload(f.Ctx(), from, to))
	}
	f.Must(store(f).DeletePayloads(f.Ctx(), from))
	data, err := store(f).GetPayload(f.Ctx(), to)
	f.Must(err)
	f.WantEqual("data", string(data), "data of "+from)
	if !provider.IsMessagePayloadKey(from) || provider.IsMessagePayloadKey(to) ||
		provider.ExecutionOfPayload(from) != "" {
		f.T.Error("storage keys do not distinguish payloads of messages from payloads of executions")
	}
}

func storePages(f *kit.Fixture) {
	const more = 3
	for i := range provider.PayloadBatchSize + more {
		put(f, provider.PayloadKey("01MANY", fmt.Sprintf("%05d", i)))
	}
	first, err := store(f).ListPayloads(f.Ctx(), provider.PayloadPrefix("01MANY"), "")
	f.Must(err)
	rest, err := store(f).ListPayloads(f.Ctx(), provider.PayloadPrefix("01MANY"), first[len(first)-1].Key)
	f.Must(err)
	f.WantEqual("pages", []int{len(first), len(rest)}, []int{provider.PayloadBatchSize, more})
}

func deletionTakesPayloads(f *kit.Fixture) {
	e, other := f.Start("a"), f.Start("b")
	own, others := provider.PayloadKey(e.Head.ExecutionID, "1"), provider.PayloadKey(other.Head.ExecutionID, "1")
	mail := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1")
	put(f, own, others, mail)
	end(e, 0)
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	f.WantEqual("payloads of the deleted instance", keys(f, provider.PayloadPrefix(e.Head.ExecutionID)), []string(nil))
	f.WantEqual("payloads of instance b", keys(f, provider.PayloadPrefix(other.Head.ExecutionID)), []string{others})
	f.WantEqual("payloads of a message", keys(f, mail), []string{mail})
}

func startsNamed(f *kit.Fixture) {
	s := kit.StartOf("a")
	s.ExecutionID = provider.NewExecutionID(f.StoredNow().Add(-time.Second), "a", s.StartID)
	first := s.ExecutionID
	for range 2 {
		in, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
		f.WantEqual("execution", in.ExecutionID, first)
		s.ExecutionID = provider.NewExecutionID(f.StoredNow(), "a", s.StartID+" again") // the first start applies
	}
	f.Messages()
	begins := provider.NewExecutionID(f.StoredNow(), "b", "from elsewhere")
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), provider.Message{
		Kind: provider.MessageStart, InstanceID: "b", Name: kit.Order, Input: history.Payload("1"),
		StartID: "from elsewhere", Detached: true,
	}))
	ms := f.Messages()
	ms[0].NewExecutionID = begins
	o, err := f.Provider.CreateOrchestration(f.Ctx(), &ms[0])
	f.Must(err)
	f.WantEqual("execution of a message", o.Head.ExecutionID, begins)
}

func messagesCopyPayloads(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	key := provider.PayloadKey(e.Head.ExecutionID, "1")
	child := history.Event{
		Kind: history.SubOrchestrationScheduled, Name: kit.Order, InstanceID: "child", StartID: "s", Input: stored(key),
	}
	sent := history.Event{Kind: history.ExternalEventSent, Name: "n", InstanceID: "child", Data: stored(key)}
	t := e.Commit(child, sent)
	want := map[string]bool{}
	for i := range t.Events {
		outputs.EachMessagePayload(outputs.TurnOrigin(t), &t.Events[i], func(from, to string) {
			f.WantEqual("source of the copy", from, key)
			want[to] = true
		})
	}
	f.WantEqual("copies", len(want), 2)
	for _, m := range f.Messages() {
		for _, p := range []history.Payload{m.Input, m.Data} {
			if len(p) > 0 && (!want[p.StorageKey()] || !provider.IsMessagePayloadKey(p.StorageKey())) {
				f.T.Errorf("message %s has payload %s, want one of %v", m.Kind, p, want)
			}
		}
	}
	f.WantEqual("payload in the history", e.History()[1].Input.StorageKey(), key)
}

func referredPayloadsStay(f *kit.Fixture) {
	e := f.Start("a")
	first := e.Head.ExecutionID
	key := provider.PayloadKey(first, "1")
	put(f, key)
	e.Commit(kit.TurnStarted())
	for n := range 3 {
		f.Advance(40 * aDay)
		t := e.Continuing(provider.NewExecutionID(f.StoredNow(), "a", e.Head.ExecutionID), kit.TurnStarted())
		t.Retention = 30 * aDay
		if n == 0 {
			t.Events = t.Events[1:]
		}
		if n < 2 { // a later execution consumes the event
			t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", EventID: "c", Data: stored(key)}}
		}
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
		f.Must(err)
		e = f.ExecutionAfter(t)
		f.Advance(40 * aDay)
		_, err = f.Provider.ApplyRetention(f.Ctx(), "a")
		f.Must(err)
		if there := slices.Contains(keys(f, provider.PayloadPrefix(first)), key); there != (n < 2) {
			f.T.Errorf("execution %d: payload exists: %t", n+2, there)
		}
	}
}

// sweep sweeps the whole store and returns the number of deleted payloads.
func sweep(f *kit.Fixture) (deleted int) {
	f.T.Helper()
	k, ok := f.Provider.(provider.PayloadStoreProvider)
	if !ok {
		f.T.Fatal("provider has no payload store")
	}
	for at := ""; ; {
		next, n, err := k.SweepPayloads(f.Ctx(), at)
		f.Must(err)
		if deleted += n; next == "" {
			return deleted
		}
		at = next
	}
}

func sweeps(f *kit.Fixture) {
	live, gone := f.Start("lives"), f.Start("gone")
	kept := []string{provider.PayloadKey(live.Head.ExecutionID, "1"), provider.PayloadKey(live.Head.ExecutionID, "2")}
	mail := provider.MessagePayloadKey(provider.MessageEventRaised, "e", "1")
	put(f, kept...)
	put(f, mail, provider.PayloadKey("01NEVER", "1"))
	end(gone, 0)
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "gone", true))
	put(f, provider.PayloadKey(gone.Head.ExecutionID, "late"))
	for _, want := range []int{0, 2, 0} {
		f.WantEqual("deleted", sweep(f), want)
		f.Advance(3 * aDay)
		if want == 0 {
			put(f, mail)
		}
	}
	f.WantEqual("kept", keys(f, provider.PayloadPrefix(live.Head.ExecutionID)), kept)
	f.WantEqual("mail", keys(f, mail), []string{mail})
}
