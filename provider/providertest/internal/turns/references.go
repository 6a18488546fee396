package turns

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// References tests that later events refer to the data of external events, and that reads resolve these references.
func References() kit.Group {
	return kit.Group{Name: "references", Cases: []kit.Case{
		{Name: "DocumentIsReadFromItsLocation", Run: readsDocuments},
		{Name: "AnotherDocumentIsNotReturned", Run: wrongDocuments},
		{Name: "DeletedDocumentIsNotFound", Run: erasedDocuments},
		{Name: "HistoryReturnsReferencedData", Run: showsDocuments},
		{Name: "TooLargeDataStaysAReference", Run: showsBounded},
		{Name: "DamageDoesNotAffectOthers", Run: damagedDocument, Needs: []kit.Capability{kit.Corruption}},
		{Name: "ExecutionIsReadWithoutAllDocuments", Run: loadsBounded},
	}}
}

// documented returns an execution whose second and third segments have event data, and the next execution, which starts
// with references to that data.
func documented(f *kit.Fixture, data ...history.Payload) (first, next *kit.Execution, places []history.DataLocation) {
	f.T.Helper()
	first = f.Start("a")
	events := []history.Event{kit.TurnStarted()}
	for i, d := range data {
		places = append(places, history.DataLocation{
			ExecutionID: first.Instance.ExecutionID, Segment: 1, EventID: first.Next + int64(len(events)),
		})
		events = append(events, kit.Raised(fmt.Sprint("e", i), d))
	}
	first.Commit(events...)
	var inputs []history.Event
	for i, d := range data {
		places = append(places, history.DataLocation{
			ExecutionID: first.Instance.ExecutionID, Segment: 2, EventID: first.Next, Field: history.LocationInputs,
			Index: i,
		})
		inputs = append(inputs, kit.Raised(fmt.Sprint("p", i), d))
	}
	first.Commit(kit.Parked("b", inputs...))
	t := first.Continuing("x2", kit.TurnStarted())
	for i, at := range places {
		doc, _ := data[i%len(data)].Document()
		if at.Field == "" {
			t.Next.Start.CarriedEvents = append(t.Next.Start.CarriedEvents, history.CarriedEvent{
				Name: "n", EventID: fmt.Sprint("c", i), Data: at.Refer(doc),
			})
		} else {
			t.Next.Start.Inputs = append(t.Next.Start.Inputs, kit.Raised(fmt.Sprint("c", i), at.Refer(doc)))
		}
	}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	return first, f.ExecutionAfter(t), places
}

func refers(at history.DataLocation, doc json.RawMessage) history.Reference {
	ref, _ := at.Refer(doc).Reference()
	return ref
}

func readsDocuments(f *kit.Fixture) {
	data := []history.Payload{
		kit.Noise(100 << 10), history.Payload(`{ "a":	"<&> é" }`),
		history.NewInlinePayload(json.RawMessage(`{"ref":"x#a/1/2","sha256":"b","bytes":1}`)),
	}
	_, next, places := documented(f, data...)
	for i, at := range places {
		doc, _ := data[i%len(data)].Document()
		for range 2 {
			got, err := f.Provider.ReadDocument(f.Ctx(), "a", refers(at, doc))
			f.Must(err)
			f.WantEqual(at.String(), at.Refer(got), at.Refer(doc))
		}
	}
	o := next.Read()
	f.WantEqual("number of carried events and inputs", len(o.Start().CarriedEvents)+len(o.Start().Inputs), len(places))
	if ref, ok := o.Start().CarriedEvents[0].Data.Reference(); !ok || ref.Ref != places[0].String() {
		f.T.Errorf("reference read as %.80s", o.Start().CarriedEvents[0].Data)
	}
}

func wrongDocuments(f *kit.Fixture) {
	_, _, places := documented(f, history.Payload(`"right"`))
	for name, ref := range map[string]history.Reference{
		"another document": refers(places[0], json.RawMessage(`"wrong"`)),
		"another event": refers(history.DataLocation{
			ExecutionID: places[0].ExecutionID, Segment: 1, EventID: 99,
		}, json.RawMessage(`"right"`)),
		"a place of no kind": {Ref: "s3://later", SHA256: "x", Bytes: 1},
	} {
		if doc, err := f.Provider.ReadDocument(f.Ctx(), "a", ref); !errors.Is(err, provider.ErrCorrupt) {
			f.T.Errorf("%s: got %s, error %v", name, doc, err)
		}
	}
	for name, at := range map[string]history.DataLocation{
		"another segment":   {ExecutionID: places[0].ExecutionID, Segment: 99, EventID: 3},
		"another execution": {ExecutionID: "unknown", Segment: 1, EventID: 3},
	} {
		if doc, err := f.Provider.ReadDocument(f.Ctx(), "a", refers(at, json.RawMessage(`"right"`))); !errors.Is(err,
			provider.ErrNotFound) {
			f.T.Errorf("%s: got %s, error %v", name, doc, err)
		}
	}
}

func erasedDocuments(f *kit.Fixture) {
	_, _, places := documented(f, history.Payload(`"x"`))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	if doc, err := f.Provider.ReadDocument(f.Ctx(), "a", refers(places[0], json.RawMessage(`"x"`))); !errors.Is(err,
		provider.ErrNotFound) {
		f.T.Errorf("got %s, error %v", doc, err)
	}
}

func showsDocuments(f *kit.Fixture) {
	_, next, places := documented(f, kit.Noise(100<<10), history.Payload(`"x"`))
	next.Commit(kit.TurnStarted(), kit.Raised("again", places[0].Refer(json.RawMessage(kit.Noise(100<<10)))))
	shown := 0
	for e, err := range f.Provider.ReadHistory(f.Ctx(), "a", "x2", 0) {
		f.Must(err)
		e.EachExternalData(func(_ string, _ int, data *history.Payload) {
			if doc, ok := data.Document(); ok && (string(doc) == `"x"` || string(doc) == string(kit.Noise(100<<10))) {
				shown++
			} else {
				f.T.Errorf("payload shown for event %s: got %.80s", e.String(), *data)
			}
		})
	}
	f.WantEqual("documents shown", shown, len(places)+1)
}

func showsBounded(f *kit.Fixture) {
	data := make([]history.Payload, 13)
	for i := range data {
		data[i] = history.Payload(`"` + strings.Repeat(string(rune('a'+i)), 400<<10) + `"`)
	}
	documented(f, data...)
	shown, left := 0, 0
	for e, err := range f.Provider.ReadHistory(f.Ctx(), "a", "x2", 0) {
		f.Must(err)
		e.EachExternalData(func(_ string, _ int, data *history.Payload) {
			if doc, ok := data.Document(); ok {
				shown += len(doc)
			} else {
				left++
			}
		})
	}
	if shown > documents.MaxResolvedBytes || shown < documents.MaxResolvedBytes/2 || left < 10 {
		f.T.Errorf("got %d bytes shown, %d references left", shown, left)
	}
}

func damagedDocument(f *kit.Fixture) {
	first, _, places := documented(f, history.Payload(`"x"`))
	f.Damage(first.Instance.ExecutionID, 1, kit.Undecodable)
	ref := refers(places[0], json.RawMessage(`"x"`))
	if doc, err := f.Provider.ReadDocument(f.Ctx(), "a", ref); !errors.Is(err, provider.ErrCorrupt) {
		f.T.Errorf("got %s, error %v", doc, err)
	}
	got, err := f.Provider.ReadDocument(f.Ctx(), "a", refers(places[1], json.RawMessage(`"x"`)))
	f.Must(err)
	f.WantEqual("undamaged document", string(got), `"x"`)
}

func loadsBounded(f *kit.Fixture) {
	const each, segments = 400 << 10, 10
	e := f.Start("a")
	for i := range segments {
		events := []history.Event{kit.TurnStarted()}
		for j := range 6 {
			events = append(events, kit.Raised(fmt.Sprint(i, "-", j),
				history.Payload(`"`+strings.Repeat(strconv.Itoa(j), each)+`"`)))
		}
		e.Commit(events...)
	}
	held, referred := 0, 0
	events, err := e.Read().Events()
	f.Must(err)
	for _, ev := range events {
		ev.EachExternalData(func(_ string, _ int, data *history.Payload) {
			doc, inline := data.Document()
			if inline {
				held += len(doc)
				return
			}
			referred++
			ref, _ := data.Reference()
			got, err := f.Provider.ReadDocument(f.Ctx(), "a", ref)
			f.Must(err)
			f.WantEqual("the length of a document", len(got), each+2)
		})
	}
	if held > 17<<20 || held < 8<<20 || referred < 10 {
		f.T.Errorf("got %d MiB in memory, %d documents referenced", held>>20, referred)
	}
}
