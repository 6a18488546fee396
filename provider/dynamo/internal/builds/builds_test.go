package builds

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// fakeBuilds is a table that has only builds.
type fakeBuilds struct {
	table.API

	docs  []string
	reads int
}

func (b *fakeBuilds) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
	*dynamodb.QueryOutput, error,
) {
	b.reads++
	out := &dynamodb.QueryOutput{}
	for _, doc := range b.docs {
		out.Items = append(out.Items, table.Item{table.AttrSK: table.Str("b#1"), table.AttrBuild: table.Str(doc)})
	}
	return out, nil
}

// clocked returns the builds of a table. Only the function pass advances the clock.
func clocked(b *fakeBuilds, q *sqsfake.Queues) (bs *Builds, pass func(time.Duration)) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	in := inbox.New(nil, sqsqueue.New(q, sqsqueue.Config{InboxURL: "url"}, nil), clock)
	bs = New(table.New(b, "t"), nil, in, "h", clock, slog.New(slog.DiscardHandler))
	return bs, func(d time.Duration) { now = now.Add(d) }
}

func (bs *Builds) knows(t *testing.T, name, version string, want bool) {
	t.Helper()
	err := bs.known(t.Context(), name, version)
	if want && err != nil || !want && !errors.Is(err, provider.ErrUnknownOrchestration) {
		t.Errorf("%q %q: %v", name, version, err)
	}
}

func TestKnown_callsWithinAMinute_readBuildsOnce(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{
		docs: []string{
			`{"orchestrations":{"order":["1.0.0"]}}`, `{"orchestrations":{"order":["2.0.0"],"refund":null}}`,
		},
	}
	bs, pass := clocked(b, nil)
	for range 5 {
		bs.knows(t, "order", "", true)
		bs.knows(t, "order", "2.0.0", true)
		bs.knows(t, "refund", "", true)
		pass(10 * time.Second)
	}
	if b.reads != 1 {
		t.Errorf("%d reads in 50 seconds, want 1", b.reads)
	}
	pass(cacheTime)
	bs.knows(t, "order", "1.0.0", true)
	if b.reads != 2 {
		t.Errorf("%d reads after another minute, want 2", b.reads)
	}
}

func TestKnown_missingName_readsBuildsAgain(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{docs: []string{`{"orchestrations":{"order":["1.0.0"]}}`}}
	bs, _ := clocked(b, nil)
	bs.knows(t, "order", "", true)
	bs.knows(t, "refund", "", false)
	bs.knows(t, "order", "2.0.0", false)
	b.docs = append(b.docs, `{"orchestrations":{"refund":["1.0.0"]}}`)
	bs.knows(t, "refund", "", true)
	if b.reads != 4 {
		t.Errorf("%d reads, want one for each unknown orchestration", b.reads)
	}
}

func TestKnown_buildWithoutOrchestrations_rejectsNames(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{}
	bs, _ := clocked(b, nil)
	bs.knows(t, "order", "", true) // no build has reported
	b.docs = []string{`{"activities":["pack"]}`}
	bs.knows(t, "order", "", false)
}

func TestKnown_unreadableBuild_errorNamesIt(t *testing.T) {
	t.Parallel()
	bs, _ := clocked(&fakeBuilds{docs: []string{"{"}}, nil)
	if err := bs.known(t.Context(), "order", ""); err == nil || !strings.Contains(err.Error(), "b#1") {
		t.Error(err)
	}
}

// A rejected name requests a report of the deployed build. A misspelled name in a loop must not cause an invocation
// each time.
func TestRequire_unknownName_requestsAReportOnceAMinute(t *testing.T) {
	t.Parallel()
	q := &sqsfake.Queues{}
	bs, pass := clocked(&fakeBuilds{docs: []string{`{}`}}, q)
	refused := func() {
		t.Helper()
		if err := bs.Require(t.Context(), "ordre", ""); !errors.Is(err, provider.ErrUnknownOrchestration) {
			t.Fatal(err)
		}
	}
	for range 6 {
		refused()
		pass(9 * time.Second)
	}
	if len(q.Sent) != 1 {
		t.Errorf("%d pokes in 54 seconds, want 1", len(q.Sent))
	}
	pass(6 * time.Second)
	refused()
	if len(q.Sent) != 2 {
		t.Errorf("%d pokes after a minute, want 2", len(q.Sent))
	}
}
