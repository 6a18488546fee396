package dynamo

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// fakeBuilds is a table with builds in it and nothing else.
type fakeBuilds struct {
	TableAPI

	docs  []string
	reads int
}

func (b *fakeBuilds) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	b.reads++
	out := &dynamodb.QueryOutput{}
	for _, doc := range b.docs {
		out.Items = append(out.Items, table.Item{table.AttrSK: table.Str("b#1"), table.AttrBuild: table.Str(doc)})
	}
	return out, nil
}

// clocked is a provider on these builds and a clock that stands still.
func clocked(b *fakeBuilds, q *sqsfake.Queues) (p *Provider, pass func(time.Duration)) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p = &Provider{table: table.New(b, "t"), queue: sqsqueue.New(q, sqsqueue.Config{InboxURL: "url"}, nil), now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler), hub: HubConfig{Table: "t", InboxURL: "url"}}
	return p, func(d time.Duration) { now = now.Add(d) }
}

func (p *Provider) knows(t *testing.T, name, version string, want bool) {
	t.Helper()
	err := p.builds.known(t.Context(), p, name, version)
	if want && err != nil || !want && !errors.Is(err, provider.ErrUnknownOrchestration) {
		t.Errorf("%q %q: %v", name, version, err)
	}
}

func TestALookAtTheBuildsServesForAMinute(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{docs: []string{`{"orchestrations":{"order":["1.0.0"]}}`, `{"orchestrations":{"order":["2.0.0"],"refund":null}}`}}
	p, pass := clocked(b, nil)
	for range 5 {
		p.knows(t, "order", "", true)
		p.knows(t, "order", "2.0.0", true)
		p.knows(t, "refund", "", true)
		pass(10 * time.Second)
	}
	if b.reads != 1 {
		t.Errorf("%d reads in 50 seconds, want 1", b.reads)
	}
	pass(buildsLive)
	p.knows(t, "order", "1.0.0", true)
	if b.reads != 2 {
		t.Errorf("%d reads after a minute more, want 2", b.reads)
	}
}

func TestAMissingNameIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{docs: []string{`{"orchestrations":{"order":["1.0.0"]}}`}}
	p, _ := clocked(b, nil)
	p.knows(t, "order", "", true)
	p.knows(t, "refund", "", false)
	p.knows(t, "order", "2.0.0", false)
	b.docs = append(b.docs, `{"orchestrations":{"refund":["1.0.0"]}}`)
	p.knows(t, "refund", "", true)
	if b.reads != 4 {
		t.Errorf("%d reads, want one for each that is not known yet", b.reads)
	}
}

func TestABuildWithoutOrchestrationsIsABuild(t *testing.T) {
	t.Parallel()
	b := &fakeBuilds{}
	p, _ := clocked(b, nil)
	p.knows(t, "order", "", true) // nobody has reported
	b.docs = []string{`{"activities":["pack"]}`}
	p.knows(t, "order", "", false)
}

func TestABuildThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	p, _ := clocked(&fakeBuilds{docs: []string{"{"}}, nil)
	if err := p.builds.known(t.Context(), p, "order", ""); err == nil || !strings.Contains(err.Error(), "b#1") {
		t.Error(err)
	}
}

// A refused name asks the deployed build to report, but a typing mistake in a loop must not cost invocations.
func TestARefusedNamePokesOnceAMinute(t *testing.T) {
	t.Parallel()
	q := &sqsfake.Queues{}
	p, pass := clocked(&fakeBuilds{docs: []string{`{}`}}, q)
	refused := func() {
		t.Helper()
		if _, err := p.StartOrchestration(t.Context(), provider.Start{InstanceID: "a", Name: "ordre"}); !errors.Is(err, provider.ErrUnknownOrchestration) {
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
