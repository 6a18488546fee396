package selftest

import (
	"maps"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
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

	probeScheduleDead = "SelfTestScheduleDeadLetterQueue"

	probeFunction   = "SelfTestMappedFunction"
	probeCalled     = "SelfTestCalledFunction"
	probeRole       = "SelfTestFunctionRole"
	probeMapped     = "SelfTestMappedQueue"
	probeMappedFIFO = "SelfTestMappedFIFOQueue"
)

const (
	typeQueue = "AWS::SQS::Queue"
	sizeLimit = "MaximumMessageSize"
	mostBytes = 1 << 20 // of a message, as in the queues of a hub

	keyAction   = "Action"
	keyFunction = "FunctionName"
)

type properties = map[string]any

func resource(kind string, p properties) properties { return properties{"Type": kind, "Properties": p} }

func arn(id string) properties { return properties{"Fn::GetAtt": []any{id, "Arn"}} }

func ref(name string) properties { return properties{"Ref": name} }

func sub(text string) properties { return properties{"Fn::Sub": text} }

// allow returns a statement of a policy.
func allow(resource any, actions ...string) properties {
	return properties{"Effect": "Allow", keyAction: actions, "Resource": resource}
}

func policy(statements ...properties) properties {
	return properties{"Version": "2012-10-17", "Statement": statements}
}

// orderedQueue returns a FIFO queue.
func orderedQueue(more properties) properties {
	p := properties{
		"FifoQueue": true, "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
		sizeLimit: mostBytes,
	}
	maps.Copy(p, more)
	return resource(typeQueue, p)
}

// probeResources returns the resources for checks, which the stack has besides those of the hub.
func probeResources() map[string]any {
	column := func(name string) properties {
		return properties{"AttributeName": name, "AttributeType": "S"}
	}
	key := func(name, kind string) properties { return properties{"AttributeName": name, "KeyType": kind} }
	all := map[string]any{
		probeQueue: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probePurge: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probeFIFO:  orderedQueue(nil),
		probeDead:  orderedQueue(nil),
		probeRedrive: orderedQueue(properties{"RedrivePolicy": properties{
			"deadLetterTargetArn": arn(probeDead),
			"maxReceiveCount":     probes.MaxReceives,
		}}),
		probeTable: resource("AWS::DynamoDB::Table", properties{
			"BillingMode":          "PAY_PER_REQUEST",
			"AttributeDefinitions": []any{column("pk"), column("sk"), column("gs")},
			"KeySchema":            []any{key("pk", "HASH"), key("sk", "RANGE")},
			"GlobalSecondaryIndexes": []any{properties{
				"IndexName": "byGS", "KeySchema": []any{key("gs", "HASH"), key("sk", "RANGE")},
				"Projection": properties{"ProjectionType": "ALL"},
			}},
		}),
	}
	all[probeScheduleDead] = resource(typeQueue, properties{})
	undelivered := allow(arn(probeScheduleDead), "sqs:SendMessage")
	undelivered["Principal"] = "*" // of the account; the role of the hub's schedules sends
	undelivered["Condition"] = properties{"StringEquals": properties{"aws:PrincipalAccount": ref("AWS::AccountId")}}
	all[probeScheduleDead+"Policy"] = resource("AWS::SQS::QueuePolicy", properties{
		"Queues": []any{ref(probeScheduleDead)}, "PolicyDocument": policy(undelivered),
	})
	maps.Copy(all, functionResources())
	return all
}

// functionResources returns the probe function, whose code is that of the worker function, and its mapped queues.
func functionResources() map[string]any {
	const memory, batch, asyncAge = 256, 10, 120
	mapping := func(queue string, batch int, more properties) properties {
		p := properties{
			"EventSourceArn": arn(queue), keyFunction: ref(probeFunction), "BatchSize": batch,
			"FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		}
		maps.Copy(p, more)
		return resource("AWS::Lambda::EventSourceMapping", p)
	}
	assumed := properties{
		"Effect": "Allow", keyAction: "sts:AssumeRole", "Principal": properties{"Service": "lambda.amazonaws.com"},
	}
	records := allow(arn(probeTable), "dynamodb:PutItem") // as in GrantControlDirect
	records["Condition"] = properties{
		"ForAllValues:StringLike": properties{"dynamodb:LeadingKeys": []string{probefunction.Partitions}},
	}
	timeout := properties{"VisibilityTimeout": probes.FunctionTimeout}
	logs := func(name string) properties { // of a name that Lambda would choose
		return resource("AWS::Logs::LogGroup", properties{
			"LogGroupName": sub("/aws/lambda/perdure-${HubName}-selftest-" + name), "RetentionInDays": 1,
		})
	}
	function := func(id, name string) properties {
		return resource("AWS::Lambda::Function", properties{
			keyFunction: sub("perdure-${HubName}-selftest-" + name),
			"Runtime":   "provided.al2023", "Handler": "bootstrap", "Architectures": []any{ref("Architecture")},
			"Code":       properties{"S3Bucket": ref("CodeBucket"), "S3Key": sub("${CodePrefix}${WorkerBuild}.zip")},
			"MemorySize": memory, "Timeout": probes.FunctionTimeout, "Role": arn(probeRole),
			"Environment": properties{"Variables": properties{probefunction.TableVariable: ref(probeTable)}},
			"LoggingConfig": properties{ // as those of a hub
				"LogFormat": "JSON", "LogGroup": ref(id + "Logs"), "SystemLogLevel": "WARN",
				"ApplicationLogLevel": "INFO",
			},
		})
	}
	return map[string]any{
		probeMapped:            resource(typeQueue, timeout),
		probeMappedFIFO:        orderedQueue(timeout),
		probeFunction + "Logs": logs("mapped"),
		probeCalled + "Logs":   logs("called"),
		probeRole: resource("AWS::IAM::Role", properties{
			"AssumeRolePolicyDocument": policy(assumed),
			"PermissionsBoundary": properties{"Fn::If": []any{
				"HasPermissionsBoundaryARN", ref("PermissionsBoundaryARN"), ref("AWS::NoValue"),
			}},
			"Policies": []any{properties{"PolicyName": "probes", "PolicyDocument": policy(
				allow([]any{arn(probeMapped), arn(probeMappedFIFO)}, "sqs:ReceiveMessage",
					"sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"),
				records,
				allow([]any{arn(probeFunction + "Logs"), arn(probeCalled + "Logs")}, "logs:CreateLogStream",
					"logs:PutLogEvents"),
			)}},
		}),
		probeFunction: function(probeFunction, "mapped"),
		probeCalled:   function(probeCalled, "called"),
		"SelfTestAsync": resource("AWS::Lambda::EventInvokeConfig", properties{ // as that of the sweeper
			keyFunction: ref(probeFunction), "Qualifier": "$LATEST",
			"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": asyncAge,
		}),
		"SelfTestMapping": mapping(probeMapped, 1, properties{
			"ScalingConfig": properties{"MaximumConcurrency": probes.FunctionConcurrency},
		}),
		"SelfTestFIFOMapping": mapping(probeMappedFIFO, batch, nil),
	}
}
