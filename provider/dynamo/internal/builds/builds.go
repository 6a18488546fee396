// Package builds caches the builds that functions have reported: their orchestrations, and the ID of the deployed
// build.
package builds

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
)

// cacheTime is the time for which the builds are cached.
const cacheTime = time.Minute

// PutBuild writes the item of a build and the time of its report, unless the item contains a recent report. The build
// that reported last counts as the deployed one. PutBuild reads the signing keys concurrently, because a process that
// reports a build also sends work items. If that read fails, PutBuild only logs the error, and the first send repeats
// the read.
func (bs *Builds) PutBuild(ctx context.Context, b provider.Build) error {
	return awscall.Parallel(
		func() error {
			if _, err := bs.tokens.Signer(ctx); err != nil {
				bs.log.WarnContext(ctx, "signing key read failed, the first send retries it",
					"event", logevent.SigningKeyReadFailed, "error", err)
			}
			return nil
		},
		func() error { return bs.putBuild(ctx, b) },
	)
}

func (bs *Builds) putBuild(ctx context.Context, b provider.Build) error {
	doc, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("dynamo: build %q: %w", b.ID, err)
	}
	if bs.isReported(ctx, b.ID, string(doc)) {
		return nil
	}
	in := &dynamodb.UpdateItemInput{
		Key: table.HubKey(table.SKBuilds + b.ID),
		UpdateExpression: aws.String(
			"SET #build = :doc, #created = :reported, #first = if_not_exists(#first, :reported)",
		),
		ExpressionAttributeNames: table.Names(table.AttrBuild, table.AttrCreated, table.AttrFirst),
		ExpressionAttributeValues: table.Item{
			":doc":      table.Str(string(doc)),
			":reported": table.Str(table.FormatTime(bs.now())),
		},
	}
	return bs.table.Update(ctx, "", in)
}

// isReported reports whether the item of a build contains the document with a recent time. All cold starts of a build
// report to this item, whose partition accepts 1,000 write units per second. A condition on the write would not help,
// because a rejected write consumes the same units. A stale or failed read only causes a superfluous write. A time far
// ahead is from a wrong clock.
func (bs *Builds) isReported(ctx context.Context, id, doc string) bool {
	found, err := bs.table.Get(ctx, "", table.HubKey(table.SKBuilds+id), provider.Eventual)
	if err != nil || table.GetString(found, table.AttrBuild) != doc {
		return false
	}
	at, err := time.Parse(time.RFC3339, table.GetString(found, table.AttrCreated))
	return err == nil && bs.now().Sub(at).Abs() < provider.BuildReportInterval
}

// ReadBuild implements provider.Instances. A build that an earlier release has reported has no FirstReportedAt.
func (bs *Builds) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	found, err := bs.table.Get(ctx, "", table.HubKey(table.SKBuilds+id), provider.Strong)
	switch {
	case err != nil:
		return provider.Build{}, err
	case len(found) == 0:
		return provider.Build{}, fmt.Errorf("dynamo: build %q: %w", id, provider.ErrNotFound)
	}
	var b provider.Build
	if err := json.Unmarshal([]byte(table.GetString(found, table.AttrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %q: %w", id, err)
	}
	// a build that an earlier release reported has no such time
	b.FirstReportedAt, _ = time.Parse(time.RFC3339, table.GetString(found, table.AttrFirst))
	b.LastReportedAt, _ = time.Parse(time.RFC3339, table.GetString(found, table.AttrCreated))
	return b, nil
}

// LatestBuild reads the build that reported last, which is the deployed one. It returns provider.ErrNotFound if no
// build has reported.
func (bs *Builds) LatestBuild(ctx context.Context) (provider.Build, error) {
	latest := table.Item{}
	for it, err := range bs.items(ctx) {
		if err != nil {
			return provider.Build{}, err
		}
		if table.GetString(it, table.AttrCreated) > table.GetString(latest, table.AttrCreated) {
			latest = it
		}
	}
	if len(latest) == 0 {
		return provider.Build{}, fmt.Errorf("dynamo: hub %q: no build has reported: %w", bs.hub,
			provider.ErrNotFound)
	}
	return decode(latest)
}

// items yields the items of all builds.
func (bs *Builds) items(ctx context.Context) iter.Seq2[table.Item, error] {
	return bs.table.Items(ctx, "", table.PrefixQuery(table.PKHub, table.SKBuilds, provider.Strong))
}

func decode(it table.Item) (b provider.Build, err error) {
	if err := json.Unmarshal([]byte(table.GetString(it, table.AttrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %s: %w", table.GetString(it, table.AttrSK), err)
	}
	return b, nil
}

// Builds caches the orchestrations that the deployed builds have. A process reads them once at a time. Other callers
// wait for that read until their context ends.
type Builds struct {
	table  *table.Table
	tokens *tokens.Keys
	inbox  *inbox.Inbox
	hub    string
	now    func() time.Time
	log    *slog.Logger

	mu sync.Mutex // not held during a read of the table
	result
	readAt      time.Time
	requestedAt time.Time
	// started is the number of started reads, and finished the last successful one. current is the current read, or
	// nil.
	started, finished int
	current           *read
}

// New returns the builds of a hub. It makes no calls.
func New(
	t *table.Table, keys *tokens.Keys, in *inbox.Inbox, hub string, now func() time.Time, log *slog.Logger,
) *Builds {
	return &Builds{table: t, tokens: keys, inbox: in, hub: hub, now: now, log: log}
}

// result is the result of a read of the builds.
type result struct {
	names  map[string][]string // orchestrations with their versions; nil if no build has reported
	latest string              // the ID of the build that reported last
}

// read is one read of the builds that several callers wait for.
type read struct {
	done chan struct{}
	err  error // the error for all callers; nil if the read succeeded, or its caller's context ended
}

// LatestID returns the ID of the build that reported last, or an empty string if none has.
func (bs *Builds) LatestID(ctx context.Context) (string, error) {
	err := bs.refresh(ctx, func() bool { return false })
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.latest, err
}

// mayRequest allows one report request per minute, so that a wrong name in a loop does not cause many invocations.
func (bs *Builds) mayRequest(now time.Time) bool {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if now.Sub(bs.requestedAt) < cacheTime {
		return false
	}
	bs.requestedAt = now
	return true
}

// Require returns nil if a build has the name. Otherwise, it requests a build report and returns an error.
func (bs *Builds) Require(ctx context.Context, name, version string) error {
	err := bs.known(ctx, name, version)
	if err != nil {
		bs.RequestReport(ctx)
	}
	return err
}

// known returns nil if a build has the name. Before the first report, every name is known, because the start message of
// an instance causes the first report. If a name is missing, known reads the builds again, because the name may just
// have been deployed. If the cached builds have expired and the name is known, the first caller reads, and the others
// use the cached builds.
func (bs *Builds) known(ctx context.Context, name, version string) error {
	has := func() bool { return bs.has(name, version) }
	bs.mu.Lock()
	isKnown := has() && (bs.now().Sub(bs.readAt) < cacheTime || bs.current != nil)
	bs.mu.Unlock()
	if isKnown {
		return nil
	}

	if err := bs.refresh(ctx, has); err != nil {
		return err
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.names == nil || has() {
		return nil
	}
	return bs.unknown(name, version)
}

// maxNames is the maximum number of orchestration names in an error.
const maxNames = 10

// unknown returns the error for a name that is in no build. It lists the existing names, because the name may be
// misspelled. The caller holds the lock.
func (bs *Builds) unknown(name, version string) error {
	if versions := bs.names[name]; len(versions) > 0 {
		return fmt.Errorf("%w: %q version %q (registered versions: %q)", provider.ErrUnknownOrchestration, name,
			version, versions)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(bs.names)), isInternal)
	if more := len(names) - maxNames; more > 0 {
		return fmt.Errorf("%w: %q (registered: %q and %d more)", provider.ErrUnknownOrchestration, name,
			names[:maxNames], more)
	}
	return fmt.Errorf("%w: %q (registered: %q)", provider.ErrUnknownOrchestration, name, names)
}

// isInternal reports whether an orchestration belongs to the engine: the orchestration of an entity or a schedule.
func isInternal(name string) bool {
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "perdure.")
}

// refresh waits for a read of the builds that started after the call, or for an earlier read after which enough returns
// true. All waiting callers receive the error of a read. If the context of the read ended, another caller reads
// instead.
func (bs *Builds) refresh(ctx context.Context, enough func() bool) error {
	bs.mu.Lock()
	for called := bs.started; bs.finished <= called; {
		r := bs.current
		if r == nil {
			r = &read{done: make(chan struct{})}
			bs.current, bs.started = r, bs.started+1
			bs.mu.Unlock()
			return bs.read(ctx, r)
		}
		bs.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return fmt.Errorf("dynamo: hub %q: wait for a build to report: %w", bs.hub, context.Cause(ctx))
		}
		if r.err != nil {
			return r.err
		}
		bs.mu.Lock()
		if enough() {
			break
		}
	}
	bs.mu.Unlock()
	return nil
}

func (bs *Builds) has(name, version string) bool {
	versions, ok := bs.names[name]
	return ok && (version == "" || slices.Contains(versions, version))
}

// read makes the read r.
func (bs *Builds) read(ctx context.Context, r *read) error {
	found, err := bs.readBuilds(ctx)
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if err == nil {
		bs.result, bs.readAt, bs.finished = found, bs.now(), bs.started
	} else if ctx.Err() == nil {
		r.err = err
	}
	bs.current = nil
	close(r.done)
	return err
}

func (bs *Builds) readBuilds(ctx context.Context) (found result, err error) {
	latest := table.Item{}
	for it, err := range bs.items(ctx) {
		if err != nil {
			return found, err
		}
		if table.GetString(it, table.AttrCreated) > table.GetString(latest, table.AttrCreated) {
			latest = it
		}
		build, err := decode(it)
		if err != nil {
			return found, err
		}
		if found.names == nil {
			found.names = map[string][]string{}
		}
		for name, versions := range build.Orchestrations {
			found.names[name] = append(found.names[name], versions...)
		}
	}
	found.latest = strings.TrimPrefix(table.GetString(latest, table.AttrSK), table.SKBuilds)
	return found, nil
}

// RequestReport sends a wake without an instance, which makes a function run. A new function reports its build when it
// first runs, and a warm one reports again. A name that was rejected because it is newer than all reports is therefore
// known soon.
func (bs *Builds) RequestReport(ctx context.Context) {
	if !bs.mayRequest(bs.now()) {
		return
	}
	if err := bs.inbox.Send(
		ctx, provider.Message{Kind: provider.MessageWake, InstanceID: provider.ReportBuildInstanceID},
	); err != nil {
		bs.log.WarnContext(ctx, "build report request failed", "event", logevent.BuildReportRequestFailed, "error", err)
	}
}
