package probes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider/dynamo"
)

// simulated returns probes of a simulated account.
func simulated(t *testing.T, intercept simaws.Interceptor) *Probes {
	t.Helper()
	cloud := simaws.New(simaws.WithInterceptor(intercept), simaws.WithTable(simaws.TableConfig{
		PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{{Name: index, PartitionKey: "gs", SortKey: "sk"}},
	}))
	standard := cloud.Queues.Create("standard", simaws.QueueConfig{})
	return &Probes{
		Clients:     simsdk.Clients(cloud, simsdk.Config()),
		StandardURL: standard,
		FIFOURL:     cloud.Queues.Create("ordered.fifo", simaws.QueueConfig{PerGroupDeduplication: true}),
		TableName:   "probes", Hub: dynamo.HubConfig{
			ScheduleGroup: "default", TimersARN: cloud.Queues.ARN(standard),
			ScheduleRoleARN: "arn:aws:iam::000000000000:role/schedules",
		},
		Now: time.Now, Sleep: sleep.For,
	}
}

// The simulated account behaves as assumed.
func TestProbes_simulatedAccount_holds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil)
		for _, c := range p.All() {
			detail, err := c.Run(t.Context())
			if _, ok := errors.AsType[*UndecidedError](err); ok && c.Name == "dynamodb-conflict" {
				continue // the simulation has conflicts only if a test produces them
			}
			if err != nil || detail == "" {
				t.Errorf("%s: got %q, %v", c.Name, detail, err)
			}
		}
	})
}

// A missing permission does not mean that the account behaves differently.
func TestProbes_deniedCalls_areUndecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
		p := simulated(t, func(context.Context, simaws.Call, func() error) error { return denied })
		for _, c := range p.All() {
			_, err := c.Run(t.Context())
			if _, ok := errors.AsType[*UndecidedError](err); !ok {
				t.Errorf("%s: got %v", c.Name, err)
			}
		}
	})
}
