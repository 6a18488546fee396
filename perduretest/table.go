package perduretest

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/perduretest/internal/inside"
	"github.com/perdure/perdure/provider/dynamo"
)

// WithTable adds your own table to the Env's DynamoDB, for data that is written in one transaction with a start
// (client.PrepareStart). Its keys are strings. sortKey is empty for a table without a sort key. The table has no
// indexes. Access it with TableClient. The test fails if the name is empty or in use, or if the partition key is empty.
func WithTable(name, partitionKey, sortKey string) Option {
	return option(func(o *options) {
		o.tables = append(o.tables, simaws.TableConfig{Name: name, PartitionKey: partitionKey, SortKey: sortKey})
	})
}

// TableClient returns a client of the Env's DynamoDB, which contains the tables of WithTable and the hub's table. Its
// calls run in virtual time. They fail during an Outage, and CrashAt does not count them. Use the client from the same
// goroutines as Env.Client.
//
// It supports GetItem, Query, PutItem, UpdateItem, DeleteItem and TransactWriteItems with condition expressions, but
// not all their options.
func TableClient(env *Env) dynamo.TableAPI {
	env.t.Helper()
	env.deployed.reject(env.t, "TableClient")
	return inside.NewTable(env.hub.Cloud.Table, env.hub.Cloud.Table.Name, envBubble{env})
}

// faultOf returns the reason why the tables of WithTable are invalid, or an empty string.
func faultOf(tables []simaws.TableConfig, hub string) string {
	taken := []string{hub}
	for i := range tables {
		t := &tables[i]
		switch {
		case t.Name == "" || slices.Contains(taken, t.Name):
			return fmt.Sprintf("WithTable: table name %q is empty or in use; used names: %q", t.Name, taken)
		case t.PartitionKey == "" || t.PartitionKey == t.SortKey:
			return fmt.Sprintf("WithTable: table %q requires a partition key that differs from its sort key", t.Name)
		}
		taken = append(taken, t.Name)
	}
	return ""
}
