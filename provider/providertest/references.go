package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Later events refer to the data of external events, which is read from its location.
func references() group {
	return group{"references", []testCase{
		{name: "OneIsReadFromWhereItLies", run: readsDocuments},
		{name: "AnotherOneIsNoAnswer", run: wrongDocuments},
		{name: "OfWhatIsErasedThereIsNone", run: erasedDocuments},
		{name: "HistoryShowsThem", run: showsDocuments},
		{name: "WhatIsTooMuchToShowStaysReferredTo", run: showsBounded},
		{name: "DamageHindersNoOther", run: damagedDocument, needs: []Capability{Corruption}},
		{name: "AnExecutionIsReadWithoutHoldingAll", run: loadsBounded},
	}}
}

func raised(id string, data history.Payload) history.Event {
	return history.Event{Kind: history.ExternalEventRaised, Name: "n", EventID: id, Data: data}
}

// documented returns an execution whose second and third segments have event data, and the next execution, which starts
// with references to that data.
func documented(f *fixture, data ...history.Payload) (first, next *execution, places []history.DataLocation) {
	f.t.Helper()
	first = f.start("a")
	events := []history.Event{turnStarted()}
	for i, d := range data {
		places = append(places, history.DataLocation{ExecutionID: first.instance.ExecutionID, Segment: 1, EventID: first.next + int64(len(events))})
		events = append(events, raised(fmt.Sprint("e", i), d))
	}
	first.commit(events...)
	var inputs []history.Event
	for i, d := range data {
		places = append(places, history.DataLocation{ExecutionID: first.instance.ExecutionID, Segment: 2, EventID: first.next, Field: history.LocationInputs, Index: i})
		inputs = append(inputs, raised(fmt.Sprint("p", i), d))
	}
	first.commit(parked("b", inputs...))
	t := first.continuing("x2", turnStarted())
	for i, at := range places {
		doc, _ := data[i%len(data)].Document()
		if at.Field == "" {
			t.Next.Start.CarriedEvents = append(t.Next.Start.CarriedEvents, history.CarriedEvent{Name: "n", EventID: fmt.Sprint("c", i), Data: at.Refer(doc)})
		} else {
			t.Next.Start.Inputs = append(t.Next.Start.Inputs, raised(fmt.Sprint("c", i), at.Refer(doc)))
		}
	}
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	return first, f.executionAfter(t), places
}

func refers(at history.DataLocation, doc json.RawMessage) history.Reference {
	ref, _ := at.Refer(doc).Reference()
	return ref
}

func readsDocuments(f *fixture) {
	data := []history.Payload{noise(100 << 10), history.Payload(`{ "a":	"<&> é" }`), history.NewInlinePayload(json.RawMessage(`{"ref":"x#a/1/2","sha256":"b","bytes":1}`))}
	_, next, places := documented(f, data...)
	for i, at := range places {
		doc, _ := data[i%len(data)].Document()
		for range 2 {
			got, err := f.p.ReadDocument(f.ctx(), "a", refers(at, doc))
			f.must(err)
			f.wantEqual(at.String(), at.Refer(got), at.Refer(doc))
		}
	}
	o := next.read()
	f.wantEqual("number of carried events and inputs", len(o.Start().CarriedEvents)+len(o.Start().Inputs), len(places))
	if ref, ok := o.Start().CarriedEvents[0].Data.Reference(); !ok || ref.Ref != places[0].String() {
		f.t.Errorf("reference read as %.80s", o.Start().CarriedEvents[0].Data)
	}
}

func wrongDocuments(f *fixture) {
	_, _, places := documented(f, history.Payload(`"right"`))
	for name, ref := range map[string]history.Reference{
		"another document":   refers(places[0], json.RawMessage(`"wrong"`)),
		"another event":      refers(history.DataLocation{ExecutionID: places[0].ExecutionID, Segment: 1, EventID: 99}, json.RawMessage(`"right"`)),
		"a place of no kind": {Ref: "s3://later", SHA256: "x", Bytes: 1},
	} {
		if doc, err := f.p.ReadDocument(f.ctx(), "a", ref); !errors.Is(err, provider.ErrCorrupt) {
			f.t.Errorf("%s: %s, %v", name, doc, err)
		}
	}
	for name, at := range map[string]history.DataLocation{
		"another segment":   {ExecutionID: places[0].ExecutionID, Segment: 99, EventID: 3},
		"another execution": {ExecutionID: "nobody's", Segment: 1, EventID: 3},
	} {
		if doc, err := f.p.ReadDocument(f.ctx(), "a", refers(at, json.RawMessage(`"right"`))); !errors.Is(err, provider.ErrNotFound) {
			f.t.Errorf("%s: %s, %v", name, doc, err)
		}
	}
}

func erasedDocuments(f *fixture) {
	_, _, places := documented(f, history.Payload(`"x"`))
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	if doc, err := f.p.ReadDocument(f.ctx(), "a", refers(places[0], json.RawMessage(`"x"`))); !errors.Is(err, provider.ErrNotFound) {
		f.t.Errorf("%s, %v", doc, err)
	}
}

func showsDocuments(f *fixture) {
	_, next, places := documented(f, noise(100<<10), history.Payload(`"x"`))
	next.commit(turnStarted(), raised("again", places[0].Refer(json.RawMessage(noise(100<<10)))))
	shown := 0
	for e, err := range f.p.ReadHistory(f.ctx(), "a", "x2", 0) {
		f.must(err)
		e.EachExternalData(func(_ string, _ int, data *history.Payload) {
			if doc, ok := data.Document(); ok && (string(doc) == `"x"` || string(doc) == string(noise(100<<10))) {
				shown++
			} else {
				f.t.Errorf("payload shown for event %s: %.80s", e.String(), *data)
			}
		})
	}
	f.wantEqual("documents shown", shown, len(places)+1)
}

func showsBounded(f *fixture) {
	data := make([]history.Payload, 13)
	for i := range data {
		data[i] = history.Payload(`"` + strings.Repeat(string(rune('a'+i)), 400<<10) + `"`)
	}
	documented(f, data...)
	shown, left := 0, 0
	for e, err := range f.p.ReadHistory(f.ctx(), "a", "x2", 0) {
		f.must(err)
		e.EachExternalData(func(_ string, _ int, data *history.Payload) {
			if doc, ok := data.Document(); ok {
				shown += len(doc)
			} else {
				left++
			}
		})
	}
	if shown > provider.MaxResolvedBytes || shown < provider.MaxResolvedBytes/2 || left < 10 {
		f.t.Errorf("%d bytes shown, %d references left", shown, left)
	}
}

func damagedDocument(f *fixture) {
	first, _, places := documented(f, history.Payload(`"x"`))
	f.Damage(first.instance.ExecutionID, 1, Undecodable)
	ref := refers(places[0], json.RawMessage(`"x"`))
	if doc, err := f.p.ReadDocument(f.ctx(), "a", ref); !errors.Is(err, provider.ErrCorrupt) {
		f.t.Errorf("%s, %v", doc, err)
	}
	got, err := f.p.ReadDocument(f.ctx(), "a", refers(places[1], json.RawMessage(`"x"`)))
	f.must(err)
	f.wantEqual("undamaged document", string(got), `"x"`)
}

func loadsBounded(f *fixture) {
	const each, segments = 400 << 10, 10
	e := f.start("a")
	for i := range segments {
		events := []history.Event{turnStarted()}
		for j := range 6 {
			events = append(events, raised(fmt.Sprint(i, "-", j), history.Payload(`"`+strings.Repeat(strconv.Itoa(j), each)+`"`)))
		}
		e.commit(events...)
	}
	held, referred := 0, 0
	for _, ev := range provider.EventsOf(e.read().Segments) {
		ev.EachExternalData(func(_ string, _ int, data *history.Payload) {
			doc, inline := data.Document()
			if inline {
				held += len(doc)
				return
			}
			referred++
			ref, _ := data.Reference()
			got, err := f.p.ReadDocument(f.ctx(), "a", ref)
			f.must(err)
			f.wantEqual("the length of a document", len(got), each+2)
		})
	}
	if held > 17<<20 || held < 8<<20 || referred < 10 {
		f.t.Errorf("%d MiB in memory, %d documents referenced", held>>20, referred)
	}
}
