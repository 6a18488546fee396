package selftest

// Logical IDs of the resources that only checks use.
const (
	probeQueue = "SelfTestQueue"
	probeFIFO  = "SelfTestFIFOQueue"
	probeTable = "SelfTestTable"
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
	return map[string]any{
		probeQueue: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probeFIFO: resource(typeQueue, properties{
			"FifoQueue": true, "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
			sizeLimit: mostBytes,
		}),
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
