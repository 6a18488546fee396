package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"
)

// Indexes of the table.
const (
	indexByCreation  = "byCreation"
	indexByAttention = "byAttention"
	indexByDue       = "byDue"
)

// addTable creates the table, unless props have one.
func (h *TaskHub) addTable() {
	if h.props.Table != nil {
		h.Table = h.props.Table
		return
	}
	props := &awsdynamodb.TableProps{
		TableName:           h.givenName("table"),
		PartitionKey:        stringAttribute("pk"),
		SortKey:             stringAttribute("sk"),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute: jsii.String("ttl"),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		DeletionProtection:   jsii.Bool(!h.props.WithoutDeletionProtection),
		RemovalPolicy:        h.props.TableRemovalPolicy,
		MaxReadRequestUnits:  optionalNumber(h.props.MaxReadRequestUnits),
		MaxWriteRequestUnits: optionalNumber(h.props.MaxWriteRequestUnits),
	}
	if h.props.EncryptionKey != nil {
		props.Encryption, props.EncryptionKey = awsdynamodb.TableEncryption_CUSTOMER_MANAGED, h.props.EncryptionKey
	}
	table := awsdynamodb.NewTable(h.Construct, jsii.String("Table"), props)
	addIndexes(table, &h.props.PlatformProps)
	h.Table = table
}

// addIndexes adds the indexes of the table. The key gs has 16 shards, because an index by status would have a hot
// partition. The index byAttention is sparse and has no items for healthy instances. The index byDue is sparse, and the
// sweeper finds instances whose retention has ended with it.
func addIndexes(table awsdynamodb.Table, own *PlatformProps) {
	add := func(index *awsdynamodb.GlobalSecondaryIndexProps) {
		index.MaxReadRequestUnits = optionalNumber(own.MaxReadRequestUnits)
		index.MaxWriteRequestUnits = optionalNumber(own.MaxWriteRequestUnits)
		table.AddGlobalSecondaryIndex(index)
	}
	add(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByCreation),
		PartitionKey:   stringAttribute("gs"),
		SortKey:        stringAttribute("created"),
		ProjectionType: awsdynamodb.ProjectionType_INCLUDE,
		NonKeyAttributes: jsii.Strings("status", "name", "version", "execution", "number",
			"updated", "tags", "parent", "startAt", "customStatus"),
	})
	add(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByAttention),
		PartitionKey:   stringAttribute("attention"),
		SortKey:        stringAttribute("updated"),
		ProjectionType: awsdynamodb.ProjectionType_INCLUDE,

		NonKeyAttributes: jsii.Strings("blockedBy"),
	})
	add(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(indexByDue),
		PartitionKey:   stringAttribute("due"),
		SortKey:        stringAttribute("created"), // pk can exceed the 1,024 bytes of a sort key
		ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
	})
}

func stringAttribute(name string) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
}
