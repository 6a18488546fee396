package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
)

const (
	pkHub      = "hub"
	skBuilds   = "b#"
	attrBuild  = "build"
	attrFirst  = "first"
	buildsLive = time.Minute // how long the builds that were read are used
)

// PutBuild writes the item of a build and the time of its report: the last build to report is the one that is deployed.
// Concurrently it reads the keys of tokens, since a process that reports a build also sends work items. A failure of
// that read is only logged: the first send repeats it.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	return together(
		func() error {
			if _, err := p.signer(ctx); err != nil {
				p.log.WarnContext(ctx, "the key that work items are signed with could not be read, the first send reads it", "error", err)
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

// ReadBuild implements provider.Instances. A build that an earlier release has reported has no Since.
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
	b.Since, _ = time.Parse(time.RFC3339, getString(out.Item, attrFirst)) // of an earlier release there is none
	return b, nil
}

// LatestBuild reads the build that reported last: the one that is deployed. It is an error that is provider.ErrNotFound where none has.
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
		return provider.Build{}, fmt.Errorf("dynamo: hub %q: builds: %w", p.hub.Name, provider.ErrNotFound)
	}
	var b provider.Build
	if err := json.Unmarshal([]byte(getString(latest, attrBuild)), &b); err != nil {
		return b, fmt.Errorf("dynamo: build %s: %w", getString(latest, attrSK), err)
	}
	return b, nil
}

// builds caches which orchestrations the deployed builds know.
type builds struct {
	mu     sync.Mutex
	readAt time.Time
	names  map[string][]string // orchestration to versions; nil: no build has ever reported
	latest string              // the id of the build that reported last
	poked  time.Time
}

// latestBuild returns the build that reported last; empty when none has.
func (b *builds) latestBuild(ctx context.Context, p *Provider) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.read(ctx, p)
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
func (b *builds) known(ctx context.Context, p *Provider, name, version string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(name, version) && p.now().Sub(b.readAt) < buildsLive {
		return nil
	}

	if err := b.read(ctx, p); err != nil {
		return err
	}
	if b.names == nil || b.has(name, version) {
		return nil
	}
	return fmt.Errorf("%w: %q version %q", provider.ErrUnknownOrchestration, name, version)
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

func (b *builds) read(ctx context.Context, p *Provider) error {
	in := hubQuery(p.hub.Table, skBuilds)
	in.ConsistentRead = aws.Bool(true)

	var names map[string][]string
	latest := item{}
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return err
		}
		for _, it := range page {
			if getString(it, attrCreated) > getString(latest, attrCreated) {
				latest = it
			}

			var build provider.Build
			if err := json.Unmarshal([]byte(getString(it, attrBuild)), &build); err != nil {
				return fmt.Errorf("dynamo: build %s: %w", getString(it, attrSK), err)
			}
			if names == nil {
				names = map[string][]string{}
			}
			for name, versions := range build.Orchestrations {
				names[name] = append(names[name], versions...)
			}
		}
	}

	b.names = names
	b.readAt = p.now()
	b.latest = strings.TrimPrefix(getString(latest, attrSK), skBuilds)
	return nil
}
