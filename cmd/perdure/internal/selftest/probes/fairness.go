package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fairness keeps messages of a tenant of a standard queue in flight, while more messages of this tenant wait. Then a
// message of another tenant must arrive before one of this tenant, although it is sent later. SQS needs some time to
// find out that a tenant delays others.
func (p *queueProbes) fairness(ctx context.Context) (string, error) {
	const (
		noisy          = "noisy"
		sent, inFlight = 500, 60 // from about 30 messages in flight, SQS compares the shares of tenants
		rounds, inRow  = 24, 3
		pause          = 10 * time.Second
	)
	for range sent / batchSize {
		if err := p.sendTenant(ctx, noisy, slices.Repeat([]string{noisy}, batchSize)...); err != nil {
			return "", err
		}
	}
	for range inFlight / batchSize {
		if _, err := p.take(ctx); err != nil {
			return "", err
		}
	}
	var arrived, fair, consecutive int
	for n := range rounds {
		arrives, first, err := p.overtakes(ctx, noisy, strconv.Itoa(n))
		if err != nil {
			return "", err
		}
		if arrives {
			arrived++
		}
		if first {
			fair++
			consecutive++
		} else {
			consecutive = 0
		}
		if consecutive == inRow {
			return fmt.Sprintf("%d messages of other tenants arrive before a backlog, after %d rounds", inRow, n+1), nil
		}
		if err := p.Sleep(ctx, pause); err != nil {
			return "", undecided(err)
		}
	}
	if arrived > 0 {
		return "", undecided(fmt.Errorf("messages of other tenants arrive in %d of %d rounds, before the backlog in %d",
			arrived, rounds, fair))
	}
	return "", errors.New("messages of other tenants wait behind a backlog of one tenant")
}

// overtakes sends a message of a noisy tenant, then one of another tenant, and receives the next messages. It reports
// whether these have the one of the other tenant, and not the one of the noisy tenant.
func (p *queueProbes) overtakes(ctx context.Context, noisy, round string) (arrives, first bool, err error) {
	const visible = 2 * time.Second // a sent message is not visible to all receives at once
	other, late := "other-"+round, noisy+"-"+round
	if err := p.sendTenant(ctx, noisy, late); err != nil {
		return false, false, err
	}
	if err := p.sendTenant(ctx, other, other); err != nil {
		return false, false, err
	}
	if err := p.Sleep(ctx, visible); err != nil {
		return false, false, undecided(err)
	}
	bodies, err := p.take(ctx)
	arrives = slices.Contains(bodies, other)
	return arrives, arrives && !slices.Contains(bodies, late), err
}

// sendTenant sends messages of a tenant.
func (p *queueProbes) sendTenant(ctx context.Context, tenant string, bodies ...string) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i, body := range bodies {
		entries[i] = message(body)
		entries[i].MessageGroupId = &tenant
	}
	_, err := p.send(ctx, p.FairURL, entries...)
	return undecided(err)
}

// batchSize is the maximum number of messages that SQS receives or sends at a time.
const batchSize = 10

// take receives a batch of messages, which then are in flight until the end of the test, and returns their bodies. A
// receive can return fewer messages, so it is repeated.
func (p *queueProbes) take(ctx context.Context) (bodies []string, err error) {
	const visibility = 1800 // seconds
	for range receiveTries {
		some, err := p.pollSome(ctx, p.FairURL, visibility, int32(batchSize-len(bodies)))
		if err != nil {
			return nil, undecided(err)
		}
		for i := range some {
			bodies = append(bodies, aws.ToString(some[i].Body))
		}
		if len(bodies) == batchSize {
			return bodies, nil
		}
	}
	return nil, undecided(fmt.Errorf("%d of %d messages arrive", len(bodies), batchSize))
}
