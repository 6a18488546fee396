package replaycheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replaycheck"
)

// FuzzServe checks that a binary responds to any requests with one verdict for each history, and that the command line
// reads these responses.
func FuzzServe(f *testing.F) {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		charged := perdure.CallActivityByName[int](ctx, "charge", n)
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		return charged.Await(ctx)
	})
	at := time.Unix(1767355200, 0).UTC()
	events := []history.Event{
		{ID: 1, Kind: history.OrchestrationStarted, Time: at, Name: "order", Input: history.Payload("1"), Number: 1},
		{ID: 2, Kind: history.TurnStarted, Time: at, Version: "0", BuildID: "b"},
		{ID: 3, Kind: history.ActivityScheduled, Time: at, Name: "charge", Queue: "default", Input: history.Payload("1")},
		{ID: 4, Kind: history.ExternalEventSubscribed, Time: at, Name: "go"},
		{ID: 5, Kind: history.ActivityCompleted, Time: at, SourceEventID: 3, Result: history.Payload("7"), Attempt: 1},
		{ID: 6, Kind: history.ExternalEventRaised, Time: at, Name: "go", EventID: "e", Data: history.Payload("1")},
		{ID: 7, Kind: history.TurnStarted, Time: at, Version: "0", BuildID: "b"},
	}
	for n := range events {
		b, err := json.Marshal(replaycheck.Request{
			Replay: &replaycheck.History{InstanceID: "i", ExecutionID: "01", Events: events[:n+1]}, Bucket: n%2 == 0,
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, '\n'))
	}
	f.Add([]byte(`{"replay":{"events":[{"id":1,"kind":"OrchestrationStarted","name":"order",` +
		`"input":{"ref":"object:x/00/a/b","sha256":"0","bytes":1}}]},"bucket":true}` + "\n" + `{"bytes":99999999999}` + "\n"))
	f.Add([]byte("\n{}\n"))
	f.Fuzz(func(t *testing.T, requests []byte) {
		var out bytes.Buffer
		binary := replaycheck.NewBinaryConn(bytes.NewReader(requests), &out)
		err := replaycheck.Serve((*registry.Registry)(r), nil, binary)
		ready, verdicts := 0, 0
		for command := replaycheck.NewCommandConn(&out, io.Discard, io.Discard); ; {
			var reply replaycheck.Reply
			if command.Receive(&reply) != nil {
				break
			}
			switch {
			case reply.Ready != nil:
				ready++
			case reply.Verdict != nil:
				verdicts++
			}
		}
		if lines := bytes.Count(requests, []byte("\n")); ready != 1 || verdicts > lines || err == nil && verdicts == 0 &&
			lines > 0 && bytes.Contains(requests, []byte(`{"replay":{`)) {
			t.Errorf("%d requests: ready %d, %d verdicts, error %v", lines, ready, verdicts, err)
		}
	})
}
