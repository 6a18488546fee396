package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// buildsLive is the time for which the builds are cached.
const buildsLive = time.Minute

// PutBuild writes the item of a build and the time of its report. The build that reported last counts as the deployed
// one. PutBuild reads the signing keys concurrently, because a process that reports a build also sends work items. If
// that read fails, PutBuild only logs the error, and the first send repeats the read.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	return awscall.Parallel(
		func() error {
			if _, err := p.tokens.Signer(ctx); err != nil {
				p.log.WarnContext(ctx, "signing key read failed, the first send retries it",
					"event", logevent.SigningKeyReadFailed, "error", err)
			}
			return nil
		},
		func() error { return p.putBuild(ctx, b) },
	)
}

func (p *Provider) putBuild(ctx context.Context, b provider.Build) error {
	doc, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("dynamo: build %q: %w", b.ID, err)
	}
	in := &dynamodb.UpdateItemInput{
		Key:                       buildKey(b.ID),
		UpdateExpression:          aws.String("SET #build = :doc, #created = :reported, #first = if_not_exists(#first, :reported)"),
		ExpressionAttributeNames:  map[string]string{"#build": table.AttrBuild, "#created": table.AttrCreated, "#first": table.AttrFirst},
		ExpressionAttributeValues: table.Item{":doc": table.Str(string(doc)), ":reported": table.Str(table.FormatTime(p.now()))},
	}
	return p.table.Update(ctx, "", in)
}

func buildKey(id string) table.Item {
	return table.Item{table.AttrPK: table.Str(table.PKHub), table.AttrSK: table.Str(table.SKBuilds + id)}
}

// ReadBuild implements provider.Instances. A build that an earlier release has reported has no FirstReportedAt.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	found, err := p.table.Get(ctx, "", buildKey(id), provider.Strong)
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
	// a build of an earlier release has none
	b.FirstReportedAt, _ = time.Parse(time.RFC3339, table.GetString(found, table.AttrFirst))
	b.LastReportedAt, _ = time.Parse(time.RFC3339, table.GetString(found, table.AttrCreated))
	return b, nil
}

// LatestBuild reads the build that reported last, which is the deployed one. It returns provider.ErrNotFound if no
// build has reported.
func (p *Provider) LatestBuild(ctx context.Context) (provider.Build, error) {
	in := table.HubQuery(table.SKBuilds)
	in.ConsistentRead = aws.Bool(true)
	items, err := p.table.QueryAll(ctx, "", in)
	if err != nil {
		return provider.Build{}, err
	}
	latest := table.Item{}
	for _, it := range items {
		if table.GetString(it, table.AttrCreated) > table.GetString(latest, table.AttrCreated) {
			latest = it
		}
	}
	if len(latest) == 0 {
		return provider.Build{}, fmt.Errorf("dynamo: hub %q: no build has reported: %w", p.queue.Hub,
			provider.ErrNotFound)
	}
	var b provider.Build
	if err := json.Unmarshal([]byte(table.GetString(latest, table.AttrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %s: %w", table.GetString(latest, table.AttrSK), err)
	}
	return b, nil
}

// builds caches the orchestrations that the deployed builds have. A process reads them once at a time. Other callers
// wait for that read until their context ends.
type builds struct {
	mu sync.Mutex // not held during a read of the table
	buildsRead
	readAt time.Time
	poked  time.Time
	// begun is the number of started reads, and taken the last successful one. underway is the current read, or nil.
	begun, taken int
	underway     *buildsLook
}

// buildsRead is the result of a read of the builds.
type buildsRead struct {
	names  map[string][]string // orchestrations with their versions; nil if no build has reported
	latest string              // the ID of the build that reported last
}

// buildsLook is one read of the builds that several callers wait for.
type buildsLook struct {
	done chan struct{}
	err  error // the error for all callers; nil if the read succeeded, or its caller gave up
}

// latestBuild returns the ID of the build that reported last, or an empty string if none has.
func (b *builds) latestBuild(ctx context.Context, p *Provider) (string, error) {
	err := b.look(ctx, p, func() bool { return false })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latest, err
}

// mayPoke allows one report request per minute, so that a wrong name in a loop does not cause many invocations.
func (b *builds) mayPoke(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.poked) < buildsLive {
		return false
	}
	b.poked = now
	return true
}

// known returns nil if a build has the name. Before the first report every name is known, because the start message of
// an instance causes the first report. A missing name is read again, because it may just have been deployed. If a known
// name is due to be read again, the first caller reads, and the others use the cached builds.
func (b *builds) known(ctx context.Context, p *Provider, name, version string) error {
	has := func() bool { return b.has(name, version) }
	b.mu.Lock()
	isKnown := has() && (p.now().Sub(b.readAt) < buildsLive || b.underway != nil)
	b.mu.Unlock()
	if isKnown {
		return nil
	}

	if err := b.look(ctx, p, has); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil || has() {
		return nil
	}
	return b.unknown(name, version)
}

// namesShown is the maximum number of orchestration names in an error.
const namesShown = 10

// unknown returns the error for a name that no build has. It lists the existing names, because the name may be
// misspelled. The caller holds the lock.
func (b *builds) unknown(name, version string) error {
	if versions := b.names[name]; len(versions) > 0 {
		return fmt.Errorf("%w: %q version %q (registered versions: %q)", provider.ErrUnknownOrchestration, name,
			version, versions)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(b.names)), isInternal)
	if more := len(names) - namesShown; more > 0 {
		return fmt.Errorf("%w: %q (registered: %q and %d more)", provider.ErrUnknownOrchestration, name,
			names[:namesShown], more)
	}
	return fmt.Errorf("%w: %q (registered: %q)", provider.ErrUnknownOrchestration, name, names)
}

// isInternal reports whether an orchestration belongs to the engine: that of an entity or a schedule.
func isInternal(name string) bool {
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "perdure.")
}

// look returns after a read of the builds that started after the call, or after an earlier read that found enough. All
// waiting callers receive the error of a read, unless its context ended: then another caller reads.
func (b *builds) look(ctx context.Context, p *Provider, enough func() bool) error {
	b.mu.Lock()
	for called := b.begun; b.taken <= called; {
		l := b.underway
		if l == nil {
			l = &buildsLook{done: make(chan struct{})}
			b.underway, b.begun = l, b.begun+1
			b.mu.Unlock()
			return b.read(ctx, p, l)
		}
		b.mu.Unlock()
		select {
		case <-l.done:
		case <-ctx.Done():
			return fmt.Errorf("dynamo: hub %q: wait for a build to report: %w", p.queue.Hub, context.Cause(ctx))
		}
		if l.err != nil {
			return l.err
		}
		b.mu.Lock()
		if enough() {
			break
		}
	}
	b.mu.Unlock()
	return nil
}

func (b *builds) has(name, version string) bool {
	versions, ok := b.names[name]
	return ok && (version == "" || slices.Contains(versions, version))
}

// read makes the read l.
func (b *builds) read(ctx context.Context, p *Provider, l *buildsLook) error {
	found, err := p.readBuilds(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.buildsRead, b.readAt, b.taken = found, p.now(), b.begun
	} else if ctx.Err() == nil {
		l.err = err
	}
	b.underway = nil
	close(l.done)
	return err
}

func (p *Provider) readBuilds(ctx context.Context) (found buildsRead, err error) {
	in := table.HubQuery(table.SKBuilds)
	in.ConsistentRead = aws.Bool(true)

	latest := table.Item{}
	for page, err := range p.table.Query(ctx, "", in) {
		if err != nil {
			return found, err
		}
		for _, it := range page {
			if table.GetString(it, table.AttrCreated) > table.GetString(latest, table.AttrCreated) {
				latest = it
			}

			var build provider.Build
			if err := json.Unmarshal([]byte(table.GetString(it, table.AttrBuild)), &build); err != nil {
				return found, fmt.Errorf("dynamo: build %s: %w", table.GetString(it, table.AttrSK), err)
			}
			if found.names == nil {
				found.names = map[string][]string{}
			}
			for name, versions := range build.Orchestrations {
				found.names[name] = append(found.names[name], versions...)
			}
		}
	}
	found.latest = strings.TrimPrefix(table.GetString(latest, table.AttrSK), table.SKBuilds)
	return found, nil
}
