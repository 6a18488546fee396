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
)

const (
	pkHub      = "hub"
	skBuilds   = "b#"
	attrBuild  = "build"
	attrFirst  = "first"
	buildsLive = time.Minute // how long the builds that were read are used
)

// PutBuild writes the item of a build and the time of its report. The build that reported last counts as the deployed
// one. PutBuild reads the signing keys concurrently, because a process that reports a build also sends work items. If
// that read fails, PutBuild only logs the error, and the first send repeats the read.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	return together(
		func() error {
			if _, err := p.signer(ctx); err != nil {
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
		TableName: &p.hub.Table, Key: buildKey(b.ID),
		UpdateExpression:          aws.String("SET #build = :doc, #created = :reported, #first = if_not_exists(#first, :reported)"),
		ExpressionAttributeNames:  map[string]string{"#build": attrBuild, "#created": attrCreated, "#first": attrFirst},
		ExpressionAttributeValues: item{":doc": str(string(doc)), ":reported": str(formatTime(p.now()))},
	}
	return call(ctx, "DynamoDB.UpdateItem", "", func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	})
}

func buildKey(id string) item { return item{attrPK: str(pkHub), attrSK: str(skBuilds + id)} }

// ReadBuild implements provider.Instances. A build that an earlier release has reported has no FirstReportedAt.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	in := &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: buildKey(id), ConsistentRead: aws.Bool(true)}
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", "", func() (err error) {
		out, err = p.table.GetItem(ctx, in)
		return err
	})
	switch {
	case err != nil:
		return provider.Build{}, err
	case len(out.Item) == 0:
		return provider.Build{}, fmt.Errorf("dynamo: build %q: %w", id, provider.ErrNotFound)
	}
	var b provider.Build
	if err := json.Unmarshal([]byte(getString(out.Item, attrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %q: %w", id, err)
	}
	b.FirstReportedAt, _ = time.Parse(time.RFC3339, getString(out.Item, attrFirst)) // of an earlier release there is none
	b.LastReportedAt, _ = time.Parse(time.RFC3339, getString(out.Item, attrCreated))
	return b, nil
}

// LatestBuild reads the build that reported last, which is the deployed one. It returns provider.ErrNotFound if no
// build has reported.
func (p *Provider) LatestBuild(ctx context.Context) (provider.Build, error) {
	in := hubQuery(p.hub.Table, skBuilds)
	in.ConsistentRead = aws.Bool(true)
	items, err := p.queryAll(ctx, "", in)
	if err != nil {
		return provider.Build{}, err
	}
	latest := item{}
	for _, it := range items {
		if getString(it, attrCreated) > getString(latest, attrCreated) {
			latest = it
		}
	}
	if len(latest) == 0 {
		return provider.Build{}, fmt.Errorf("dynamo: hub %q: no build has reported: %w", p.hub.Name,
			provider.ErrNotFound)
	}
	var b provider.Build
	if err := json.Unmarshal([]byte(getString(latest, attrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %s: %w", getString(latest, attrSK), err)
	}
	return b, nil
}

// builds caches which orchestrations the deployed builds know. One process reads them once at a time: whoever needs them meanwhile waits for that
// read, for as long as its context lives.
type builds struct {
	mu sync.Mutex // not held while the table is read
	buildsRead
	readAt time.Time
	poked  time.Time
	// begun counts the reads, taken is the last that has succeeded; underway is the one that is being made, nil where none is.
	begun, taken int
	underway     *buildsLook
}

// buildsRead is what a read of the builds has found.
type buildsRead struct {
	names  map[string][]string // orchestration to versions; nil: no build has ever reported
	latest string              // the id of the build that reported last
}

// buildsLook is one read of the builds, for all that wait for it.
type buildsLook struct {
	done chan struct{}
	err  error // for all; nil where it has succeeded, or was given up by who has made it
}

// latestBuild returns the build that reported last; empty when none has.
func (b *builds) latestBuild(ctx context.Context, p *Provider) (string, error) {
	err := b.look(ctx, p, func() bool { return false })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latest, err
}

// mayPoke allows one report request a minute: a typing mistake in a loop must not cost invocations.
func (b *builds) mayPoke(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.poked) < buildsLive {
		return false
	}
	b.poked = now
	return true
}

// known returns nil for a name that some build can run. Before the first build has reported, every name is known: the
// message that starts the instance is what makes a build report. A missing name is looked up again, since it may just
// have been deployed.
//
// Where a name is known, and it is time to read the builds again, the first to ask does, and the others go by what was read before.
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

// namesShown is how many names of orchestrations an error has at the most.
const namesShown = 10

// unknown is the error for a name that no build can run: with those that one can, since it may be written wrong. The caller holds the lock.
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

// isInternal reports whether an orchestration is none that a program registers by this name: that of entities, and of schedules.
func isInternal(name string) bool {
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "perdure.")
}

// look returns once the builds were read in a read that began after it was called, or once another, which was under way, has found enough. The
// error of a read is for all that wait for it, unless its context has ended: then another reads.
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
			return fmt.Errorf("dynamo: hub %q: wait for a build to report: %w", p.hub.Name, context.Cause(ctx))
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

// hubQuery finds items of the hub itself by the prefix of their sort keys.
func hubQuery(table, sk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &table,
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: item{valuePK: str(pkHub), valueSK: str(sk)},
	}
}

// read reads the builds, as the one that does.
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
	in := hubQuery(p.hub.Table, skBuilds)
	in.ConsistentRead = aws.Bool(true)

	latest := item{}
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return found, err
		}
		for _, it := range page {
			if getString(it, attrCreated) > getString(latest, attrCreated) {
				latest = it
			}

			var build provider.Build
			if err := json.Unmarshal([]byte(getString(it, attrBuild)), &build); err != nil {
				return found, fmt.Errorf("dynamo: build %s: %w", getString(it, attrSK), err)
			}
			if found.names == nil {
				found.names = map[string][]string{}
			}
			for name, versions := range build.Orchestrations {
				found.names[name] = append(found.names[name], versions...)
			}
		}
	}
	found.latest = strings.TrimPrefix(getString(latest, attrSK), skBuilds)
	return found, nil
}
