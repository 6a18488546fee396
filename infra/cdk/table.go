package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"
)

// The indexes of the hub's table.
const (
	indexByCreation  = "byCreation"
	indexByAttention = "byAttention"
	indexByDue       = "byDue"
)

// addTable makes the hub's one table (design §4).
func (h *TaskHub) addTable() {
	removal := awscdk.RemovalPolicy_RETAIN
	if h.props.WithoutDeletionProtection {
		removal = awscdk.RemovalPolicy_DESTROY
	}
	h.Table = awsdynamodb.NewTable(h.Construct, jsii.String("Table"), &awsdynamodb.TableProps{
		PartitionKey:        stringAttribute("pk"),
		SortKey:             stringAttribute("sk"),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute: jsii.String("ttl"),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		DeletionProtection: jsii.Bool(!h.props.WithoutDeletionProtection),
		RemovalPolicy:      removal,
	})
	h.addIndexes()
}

// addIndexes keeps lists off the hot path: gs is one of 16 shards, because an
// index keyed by status alone would be a hot partition, and byAttention is
// sparse, so it costs nothing for an instance that is well.
// byDue, sparse too, is what the renewer finds instances by whose retention is over.
func (h *TaskHub) addIndexes() {
	h.Table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByCreation),
		PartitionKey:   stringAttribute("gs"),
		SortKey:        stringAttribute("created"),
		ProjectionType: awsdynamodb.ProjectionType_INCLUDE,
		NonKeyAttributes: jsii.Strings("status", "name", "version", "execution", "number",
			"updated", "tags", "parent", "startAt", "customStatus"),
	})
	h.Table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByAttention),
		PartitionKey:   stringAttribute("attention"),
		SortKey:        stringAttribute("updated"),
		ProjectionType: awsdynamodb.ProjectionType_INCLUDE,

		NonKeyAttributes: jsii.Strings("blockedBy"),
	})
	h.Table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByDue),
		PartitionKey:   stringAttribute("due"),
		SortKey:        stringAttribute("created"), // pk may be longer than an index's sort key, 1,024 bytes
		ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
	})
}

func stringAttribute(name string) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
}
