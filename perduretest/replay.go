package perduretest

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/rehearsal"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/vault"
)

// ReplayOption is an option of Replay.
type ReplayOption func(*replayOptions)

type replayOptions struct {
	otherInputs bool
	codecs      []perdure.Codec
}

// AllowOtherInputs is for code that gives activities and other orchestrations other inputs than it did, and is meant to. What was
// recorded stands for running instances; Replay logs what differs and does not fail the test for it.
func AllowOtherInputs() ReplayOption {
	return func(o *replayOptions) { o.otherInputs = true }
}

// DecodedBy is for histories with payloads that these codecs have encoded. What lies in a bucket is compared, and cannot be fetched: code that takes
// such a result fails the test.
func DecodedBy(codecs ...perdure.Codec) ReplayOption {
	return func(o *replayOptions) { o.codecs = append(o.codecs, codecs...) }
}

// Replay runs the code in r against the history of a real instance, as `perdure export` wrote it, and fails the
// test when the code would not have taken the same decisions. Keep a few histories in testdata: they find changes that
// would block running instances before those are deployed.
//
// The test fails as well when the code gives an activity or another orchestration another input than the one recorded. That blocks no
// instance once it is deployed under another build id. Where it is not meant the code depends on the order of a map, on the clock or on
// chance; AllowOtherInputs is for where it is.
func Replay(tb testing.TB, r *perdure.Registry, document []byte, opts ...ReplayOption) {
	tb.Helper()
	var o replayOptions
	for _, opt := range opts {
		opt(&o)
	}
	doc, err := history.DecodeDocument(document)
	if err != nil {
		tb.Fatalf("perduretest: recorded history: %v", err)
	}
	seals, err := vault.New(o.codecs, nil)
	if err != nil {
		tb.Fatalf("perduretest: DecodedBy: %v", err)
	}
	for _, x := range doc.Executions {
		differences, err := replayExecution((*registry.Registry)(r), seals, &doc, &x)
		switch {
		case err != nil:
			tb.Errorf("perduretest: instance %q, execution %s: %v", doc.InstanceID, x.ExecutionID, err)
		case differences.Count > 0 && o.otherInputs:
			tb.Logf("perduretest: instance %q, execution %s: %d inputs differ from those recorded: %s",
				doc.InstanceID, x.ExecutionID, differences.Count, differences.First)
		case differences.Count > 0:
			tb.Errorf("perduretest: instance %q, execution %s: %d inputs differ from those recorded (AllowOtherInputs, if they are meant to): %s",
				doc.InstanceID, x.ExecutionID, differences.Count, differences.First)
		}
	}
}

func replayExecution(r *registry.Registry, seals *vault.Vault, doc *history.Document, x *history.DocumentExecution) (replay.Differences, error) {
	return rehearsal.Replay(r, &rehearsal.Execution{InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID, Events: x.Events, Fetch: doc.Find, Vault: seals})
}
