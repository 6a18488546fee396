package dynamo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
)

// All tests of the suite run on AWS in memory, in virtual time. Here long timers are requeued.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func(*dynamotest.Cloud, *simaws.Cloud) {})
}

func TestConformance_longTimersHaveSchedules_passes(t *testing.T) {
	t.Parallel()
	conformance(t, func(c *dynamotest.Cloud, cloud *simaws.Cloud) {
		c.Schedules, c.QueueARN = cloud.Schedules, cloud.Queues.ARN
	})
}

// The suite also passes if every turn except the first is rolled up.
func TestConformance_everyTurnIsRolledUp_passes(t *testing.T) {
	t.Parallel()
	conformance(t, func(c *dynamotest.Cloud, _ *simaws.Cloud) {
		c.Options = []dynamo.Option{dynamoknobs.WithRollup(1)}
	})
}

func conformance(t *testing.T, with func(*dynamotest.Cloud, *simaws.Cloud)) {
	t.Helper()
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{
			providertest.Faults, providertest.Corruption, providertest.StaleReads, providertest.VirtualTime,
			providertest.Polling, providertest.StrictLocks,
			providertest.LargePayloads,
		},
		Want: providertest.Report{Ran: 453},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) { test(t, inMemory(t, c, with)) })
		},
	})
}

// table returns the table configuration of the stack.
func table() simaws.TableConfig {
	return simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{
			{
				Name: "byCreation", PartitionKey: "gs", SortKey: "created",
				Include: []string{
					"status", "name", "version", "execution", "number", "updated", "tags", "parent", "startAt",
					"customStatus",
				},
			},
			{Name: "byAttention", PartitionKey: "attention", SortKey: "updated", Include: []string{"blockedBy"}},
			{Name: "byDue", PartitionKey: "due", SortKey: "created", Include: []string{}},
		},
	}
}

func inMemory(t *testing.T, c providertest.Config, with func(*dynamotest.Cloud, *simaws.Cloud)) providertest.Hub {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(table()))
	place := dynamotest.Cloud{
		Table: cloud.Table, Queues: cloud.Queues, Bucket: cloud.Bucket, BucketName: "payloads",
		CreateQueue: func(name string, visibility time.Duration) string {
			return cloud.Queues.Create(name, simaws.QueueConfig{
				VisibilityTimeout: visibility, PerGroupDeduplication: true,
			})
		},
	}
	with(&place, cloud)
	hub := place.Hub(t, "perdure", c)
	hub.Lag = cloud.Table.Lag
	return hub
}
