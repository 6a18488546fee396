package dynamo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
)

// Every test of the suite runs on AWS in memory, in virtual time.
func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{providertest.Faults, providertest.Corruption, providertest.StaleReads, providertest.LongTime},
		Want:         providertest.Report{Ran: 174},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) { test(t, inMemory(t, c)) })
		},
	})
}

// table is the stack's.
func table() simaws.TableConfig {
	return simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{{Name: "byCreation", PartitionKey: "gs", SortKey: "created"}},
	}
}

func inMemory(t *testing.T, c providertest.Config) providertest.Hub {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(table()))
	hub := dynamotest.Cloud{
		Table: cloud.Table, Queues: cloud.Queues,
		CreateQueue: func(name string, visibility time.Duration) string {
			return cloud.Queues.Create(name, simaws.QueueConfig{VisibilityTimeout: visibility, PerGroupDeduplication: true})
		},
	}.Hub(t, "perdure", c)
	hub.Lag = cloud.Table.Lag
	return hub
}
