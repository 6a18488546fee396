package perduretest

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replaycheck"
)

// ReplayOption is an option of Replay.
type ReplayOption func(*replayOptions)

type replayOptions struct {
	otherInputs bool
	codecs      []perdure.Codec
}

// AllowInputChanges accepts different inputs of activities and other orchestrations. Replay logs the differences and
// does not fail the test. Running instances use the recorded inputs.
func AllowInputChanges() ReplayOption {
	return func(o *replayOptions) { o.otherInputs = true }
}

// WithReplayCodecs sets the codecs of the history's payloads. Payloads in the payload store are compared but cannot be
// fetched. Code that reads such a result fails the test.
func WithReplayCodecs(codecs ...perdure.Codec) ReplayOption {
	return func(o *replayOptions) { o.codecs = append(o.codecs, codecs...) }
}

// Replay runs the code in r against a recorded history, as written by `perdure export`, and fails the test if the code
// makes different decisions. Store some histories in testdata to find changes that would block running instances.
//
// The test also fails if the code passes a different input to an activity or another orchestration. Such a difference
// does not block running instances. If the change is intended, use AllowInputChanges. Otherwise the code depends on map
// order, the clock or randomness.
func Replay(tb testing.TB, r *perdure.Registry, document []byte, opts ...ReplayOption) {
	tb.Helper()
	var o replayOptions
	for _, opt := range opts {
		opt(&o)
	}
	doc, err := history.DecodeDocument(document)
	if err != nil {
		tb.Fatalf("perduretest: decode recorded history: %v", err)
	}
	encoding, err := payloads.New(o.codecs, nil)
	if err != nil {
		tb.Fatalf("perduretest: WithReplayCodecs: %v", err)
	}
	for _, x := range doc.Executions {
		differences, err := replayExecution((*registry.Registry)(r), encoding, &doc, &x)
		switch {
		case err != nil:
			tb.Errorf("perduretest: instance %q, execution %s: %v", doc.InstanceID, x.ExecutionID, err)
		case differences.Count > 0 && o.otherInputs:
			tb.Logf("perduretest: instance %q, execution %s: %d inputs differ from the recorded ones: %s",
				doc.InstanceID, x.ExecutionID, differences.Count, differences.First)
		case differences.Count > 0:
			tb.Errorf("perduretest: instance %q, execution %s: %d inputs differ from the recorded ones "+
				"(use AllowInputChanges if intended): %s",
				doc.InstanceID, x.ExecutionID, differences.Count, differences.First)
		}
	}
}

func replayExecution(
	r *registry.Registry, encoding *payloads.Encoding, doc *history.Document, x *history.DocumentExecution,
) (replay.Differences, error) {
	return replaycheck.Replay(r, &replaycheck.Execution{
		InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID, Events: x.Events, Fetch: doc.Find, Encoding: encoding,
	})
}
