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
	buildsLive = time.Minute // how long a look at the builds serves
)

// PutBuild writes the item of a build, and when it reported: of the builds, the last to report is the one that is deployed.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	doc, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("dynamo: build %q: %w", b.ID, err)
	}
	in := &dynamodb.PutItemInput{
		TableName: &p.hub.Table,
		Item:      item{attrPK: str(pkHub), attrSK: str(skBuilds + b.ID), attrBuild: str(string(doc)), "created": str(formatTime(p.now()))},
	}
	return call(ctx, "DynamoDB.PutItem", "", func() error {
		_, err := p.table.PutItem(ctx, in)
		return err
	})
}

// builds remembers which orchestrations the deployed builds know.
type builds struct {
	mu     sync.Mutex
	readAt time.Time
	names  map[string][]string // orchestration to versions; nil: no build has ever reported
	latest string              // the id of the build that reported last
	poked  time.Time
}

// last is the build that reported last; empty when none has.
func (b *builds) last(ctx context.Context, p *Provider) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.read(ctx, p)
	return b.latest, err
}

// mayPoke allows one a minute: a typing mistake in a loop must not cost invocations.
func (b *builds) mayPoke(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.poked) < buildsLive {
		return false
	}
	b.poked = now
	return true
}

// known answers nil for a name that some build can run. Before the first build has reported, everything is: the message
// that starts it is what makes it report. A name that is missing is looked up again: it may just have been deployed.
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

// hubQuery finds items of the hub itself, by what their sort keys begin with.
func hubQuery(table, sk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &table,
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: item{":pk": str(pkHub), ":sk": str(sk)},
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
	b.names, b.readAt, b.latest = names, p.now(), strings.TrimPrefix(getString(latest, attrSK), skBuilds)
	return nil
}
