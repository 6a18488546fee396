package selftest

import (
	"maps"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
)

// Logical IDs of the resources that only checks use.
const (
	probeQueue   = "SelfTestQueue"
	probeFIFO    = "SelfTestFIFOQueue"
	probeRedrive = "SelfTestRedriveQueue"
	probeDead    = "SelfTestDeadLetterQueue"
	probePurge   = "SelfTestPurgeQueue"
	probeTable   = "SelfTestTable"
)

const (
	typeQueue = "AWS::SQS::Queue"
	sizeLimit = "MaximumMessageSize"
	mostBytes = 1 << 20 // of a message, as in the queues of a hub
)

// probeResources returns the resources for checks, which the stack has besides those of the hub.
func probeResources() map[string]any {
	type properties = map[string]any
	resource := func(kind string, p properties) properties { return properties{"Type": kind, "Properties": p} }
	attribute := func(name string) properties {
		return properties{"AttributeName": name, "AttributeType": "S"}
	}
	key := func(name, kind string) properties { return properties{"AttributeName": name, "KeyType": kind} }
	ordered := func(more properties) properties {
		p := properties{
			"FifoQueue": true, "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
			sizeLimit: mostBytes,
		}
		maps.Copy(p, more)
		return resource(typeQueue, p)
	}
	return map[string]any{
		probeQueue: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probePurge: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probeFIFO:  ordered(nil),
		probeDead:  ordered(nil),
		probeRedrive: ordered(properties{"RedrivePolicy": properties{
			"deadLetterTargetArn": properties{"Fn::GetAtt": []any{probeDead, "Arn"}},
			"maxReceiveCount":     probes.MaxReceives,
		}}),
		probeTable: resource("AWS::DynamoDB::Table", properties{
			"BillingMode":          "PAY_PER_REQUEST",
			"AttributeDefinitions": []any{attribute("pk"), attribute("sk"), attribute("gs")},
			"KeySchema":            []any{key("pk", "HASH"), key("sk", "RANGE")},
			"GlobalSecondaryIndexes": []any{properties{
				"IndexName": "byGS", "KeySchema": []any{key("gs", "HASH"), key("sk", "RANGE")},
				"Projection": properties{"ProjectionType": "ALL"},
			}},
		}),
	}
}
