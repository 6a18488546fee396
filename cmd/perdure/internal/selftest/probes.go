package selftest

import (
	"maps"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
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

	probeThrottledTable = "SelfTestThrottledTable"
	probeRate           = "SelfTestRateQueue"
	probeFair           = "SelfTestFairQueue"

	probeScheduleDead = "SelfTestScheduleDeadLetterQueue"

	probeFunction         = "SelfTestMappedFunction"
	probeCalled           = "SelfTestCalledFunction"
	probeRole             = "SelfTestFunctionRole"
	probeNeverRun         = "SelfTestThrottledFunction"
	probeStreaming        = "SelfTestStreamingFunction"
	probeAliased          = "SelfTestAliasedFunction"
	probeOperator         = "SelfTestOperatorRole"
	probeCaller           = "SelfTestCallerRole"
	probePartialCaller    = "SelfTestPartialCallerRole"
	probeFIFOMapping      = "SelfTestFIFOMapping"
	probeThrottledMapping = "SelfTestThrottledMapping"
	probeMapped           = "SelfTestMappedQueue"
	probeMappedFIFO       = "SelfTestMappedFIFOQueue"
	probeThrottled        = "SelfTestThrottledQueue"
	probeUndelivered      = "SelfTestThrottledDeadLetterQueue"
	probeAliasedQueue     = "SelfTestAliasedQueue"

	probeAPI          = "SelfTestApi"
	probeURL          = "SelfTestUrl"
	probeStreamURL    = "SelfTestStreamUrl"
	probeBreaching    = "SelfTestBreachingAlarm"
	probeNotBreaching = "SelfTestNotBreachingAlarm"
	probeRule         = "SelfTestRule"
	probeDisabledRule = "SelfTestDisabledRule"
	probeRuleQueue    = "SelfTestRuleQueue"

	// conditionAPI means that the hub has an HTTP API. Otherwise, conditionURL means that it has a function URL.
	conditionAPI = "SelfTestHasApi"
	conditionURL = "SelfTestHasUrl"
	// Outputs with the URLs of the probe functions.
	outputProbeAPI  = "SelfTestApiUrl"
	outputProbeURL  = "SelfTestFunctionUrl"
	outputStreamURL = "SelfTestStreamFunctionUrl"
	// outputOperator has the ARN of the role of an operator.
	outputOperator = "SelfTestOperatorRoleArn"
	// Outputs with the ARNs of the roles of callers of the function URL.
	outputCaller        = "SelfTestCallerRoleArn"
	outputPartialCaller = "SelfTestPartialCallerRoleArn"
)

const (
	typeQueue  = "AWS::SQS::Queue"
	actionSend = "sqs:SendMessage"

	actionInvoke = "lambda:InvokeFunction"

	sizeLimit = "MaximumMessageSize"
	mostBytes = 1 << 20 // of a message, as in the queues of a hub

	keyAction   = "Action"
	keyFunction = "FunctionName"
	keyAPI      = "ApiId"

	keyVisibility = "VisibilityTimeout"
	keyRedrive    = "RedrivePolicy"
	keyCondition  = "Condition"
	keyPrincipal  = "Principal"
	keyValue      = "Value"
	keyMetric     = "MetricName"
	keyName       = "Name"

	authIAM = "AWS_IAM"
)

type properties = map[string]any

func resource(kind string, p properties) properties { return properties{"Type": kind, "Properties": p} }

func arn(id string) properties { return attribute(id, "Arn") }

// attribute returns a value that a resource has after its creation.
func attribute(id, name string) properties { return properties{"Fn::GetAtt": []any{id, name}} }

func ref(name string) properties { return properties{"Ref": name} }

func sub(text string) properties { return properties{"Fn::Sub": text} }

// allow returns a statement of a policy.
func allow(resource any, actions ...string) properties {
	return properties{"Effect": "Allow", keyAction: actions, "Resource": resource}
}

func policy(statements ...properties) properties {
	return properties{"Version": "2012-10-17", "Statement": statements}
}

// redrive returns the redrive policy of a queue with a dead-letter queue.
func redrive(deadLetters string, receives int) properties {
	return properties{"deadLetterTargetArn": arn(deadLetters), "maxReceiveCount": receives}
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

// probeAdditions returns the additions to the template of a hub.
func probeAdditions() *deployment.Additions {
	output := func(id, name, condition string) properties {
		return properties{keyValue: attribute(id, name), keyCondition: condition}
	}
	kind := func(of string) properties { return properties{"Fn::Equals": []any{ref("APIKind"), of}} }
	return &deployment.Additions{
		Resources: probeResources(),
		Conditions: map[string]any{
			conditionAPI: kind("http-api"), conditionURL: kind("function-url"),
		},
		Outputs: map[string]any{
			outputProbeAPI: output(probeAPI, "ApiEndpoint", conditionAPI),
			outputProbeURL: output(probeURL, "FunctionUrl", conditionURL),
			outputOperator: properties{keyValue: arn(probeOperator)},

			outputStreamURL:     output(probeStreamURL, "FunctionUrl", conditionURL),
			outputCaller:        output(probeCaller, "Arn", conditionURL),
			outputPartialCaller: output(probePartialCaller, "Arn", conditionURL),
		},
	}
}

// probeResources returns the resources for checks, which the stack has besides those of the hub.
func probeResources() map[string]any {
	all := map[string]any{
		probeQueue: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probePurge: resource(typeQueue, properties{sizeLimit: mostBytes}),
		probeFIFO:  orderedQueue(nil),
		probeDead:  orderedQueue(nil),

		probeRate:           orderedQueue(nil),
		probeFair:           resource(typeQueue, properties{}),
		probeRedrive:        orderedQueue(properties{keyRedrive: redrive(probeDead, probes.MaxReceives)}),
		probeTable:          table(properties{"BillingMode": "PAY_PER_REQUEST"}, nil),
		probeThrottledTable: table(writeUnits(probes.TableUnits), writeUnits(probes.IndexUnits)),
	}
	all[probeScheduleDead] = resource(typeQueue, properties{})
	undelivered := allow(arn(probeScheduleDead), actionSend)
	undelivered[keyPrincipal] = "*" // of the account; the role of the hub's schedules sends
	undelivered[keyCondition] = properties{"StringEquals": properties{"aws:PrincipalAccount": ref("AWS::AccountId")}}
	all[probeScheduleDead+"Policy"] = queuePolicy(probeScheduleDead, undelivered)
	for _, more := range []map[string]any{
		functionResources(), mappingResources(), gatewayResources(), alarmResources(), ruleResources(),
	} {
		maps.Copy(all, more)
	}
	return all
}

// table returns a table with the index byGS.
func table(more, ofIndex properties) properties {
	column := func(name string) properties {
		return properties{"AttributeName": name, "AttributeType": "S"}
	}
	key := func(name, kind string) properties { return properties{"AttributeName": name, "KeyType": kind} }
	index := properties{
		"IndexName": "byGS", "KeySchema": []any{key("gs", "HASH"), key("sk", "RANGE")},
		"Projection": properties{"ProjectionType": "ALL"},
	}
	maps.Copy(index, ofIndex)
	p := properties{
		"AttributeDefinitions":   []any{column("pk"), column("sk"), column("gs")},
		"KeySchema":              []any{key("pk", "HASH"), key("sk", "RANGE")},
		"GlobalSecondaryIndexes": []any{index},
	}
	maps.Copy(p, more)
	return resource("AWS::DynamoDB::Table", p)
}

// writeUnits returns the provisioned throughput of a table or an index that is not read.
func writeUnits(n int) properties {
	return properties{"ProvisionedThroughput": properties{"ReadCapacityUnits": 1, "WriteCapacityUnits": n}}
}

// alarmResources returns alarms of a metric that has no data.
func alarmResources() map[string]any {
	alarm := func(missing string) properties {
		return resource("AWS::CloudWatch::Alarm", properties{
			"Namespace": probes.MetricNamespace, keyMetric: "SelfTestWithoutData",
			"Dimensions": []any{properties{keyName: "hub", keyValue: ref("HubName")}},
			"Statistic":  "Sum", "Period": 60, "EvaluationPeriods": 1, "Threshold": 1,
			"ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": missing,
		})
	}
	return map[string]any{probeBreaching: alarm("breaching"), probeNotBreaching: alarm("notBreaching")}
}

// queuePolicy returns the policy of a queue.
func queuePolicy(queue string, statement properties) properties {
	return resource("AWS::SQS::QueuePolicy", properties{
		"Queues": []any{ref(queue)}, "PolicyDocument": policy(statement),
	})
}

// ruleResources returns a rule that sends a message each minute, and a disabled one.
func ruleResources() map[string]any {
	rule := func(state string) properties {
		return resource("AWS::Events::Rule", properties{
			"ScheduleExpression": "rate(1 minute)", "State": state,
			"Targets": []any{properties{"Id": "queue", "Arn": arn(probeRuleQueue)}},
		})
	}
	send := allow(arn(probeRuleQueue), actionSend)
	send[keyPrincipal] = properties{"Service": "events.amazonaws.com"}
	send[keyCondition] = properties{"ArnEquals": properties{"aws:SourceArn": arn(probeRule)}}
	return map[string]any{
		probeRule: rule("ENABLED"), probeDisabledRule: rule("DISABLED"),
		probeRuleQueue:            resource(typeQueue, properties{}),
		probeRuleQueue + "Policy": queuePolicy(probeRuleQueue, send),
	}
}

// functionResources returns the probe functions, whose code is that of the worker function.
func functionResources() map[string]any {
	const asyncAge = 120
	all := map[string]any{
		"SelfTestAsync": resource("AWS::Lambda::EventInvokeConfig", properties{ // as that of the sweeper
			keyFunction: ref(probeFunction), "Qualifier": "$LATEST",
			"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": asyncAge,
		}),
	}
	var logs []any
	for id, name := range map[string]string{
		probeFunction: "mapped", probeCalled: "called", probeNeverRun: "throttled", probeStreaming: "streaming",
		probeAliased: "aliased",
	} {
		more := properties{}
		switch id {
		case probeNeverRun: // it has a log group for local clouds, which may run it
			more["ReservedConcurrentExecutions"] = 0
		case probeStreaming:
			more["Timeout"] = 60 // for slow connections
		}
		group := id + "Logs"
		all[id] = function(name, group, more)
		all[group] = resource("AWS::Logs::LogGroup", properties{ // of a name that Lambda would choose
			"LogGroupName": sub("/aws/lambda/perdure-${HubName}-selftest-" + name), "RetentionInDays": 1,
		})
		logs = append(logs, arn(group))
	}
	all["SelfTestFilter"] = resource("AWS::Logs::MetricFilter", properties{ // as those of canaries
		"LogGroupName": ref(probeFunction + "Logs"), "FilterPattern": "{ $." + probes.FilteredField + " IS TRUE }",
		"MetricTransformations": []any{properties{
			"MetricNamespace": probes.MetricNamespace, keyMetric: probes.FilteredMetric, "MetricValue": "1",
			"Dimensions": []any{properties{"Key": probes.FilteredDimension, keyValue: "$." + probes.FilteredDimension}},
		}},
	})
	records := allow(arn(probeTable), "dynamodb:PutItem") // as in GrantControlDirect
	records[keyCondition] = properties{
		"ForAllValues:StringLike": properties{"dynamodb:LeadingKeys": []string{probefunction.Partitions}},
	}
	all[probeRole] = role(properties{"Service": "lambda.amazonaws.com"},
		allow([]any{arn(probeMapped), arn(probeMappedFIFO), arn(probeThrottled), arn(probeAliasedQueue)},
			"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"),
		records,
		allow(logs, "logs:CreateLogStream", "logs:PutLogEvents"),
	)
	update := allow("*", "lambda:UpdateEventSourceMapping") // as in GrantOperate
	update[keyCondition] = properties{"ArnLike": properties{
		"lambda:FunctionArn": []any{arn(probeNeverRun), sub("${" + probeNeverRun + ".Arn}:*")},
	}}
	all[probeOperator] = role(ofAccount(), update)
	return all
}

// ofAccount returns the principals of the account.
func ofAccount() properties {
	return properties{"AWS": sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")}
}

// role returns a role that a principal can assume.
func role(principal properties, permissions ...properties) properties {
	assumed := properties{"Effect": "Allow", keyAction: "sts:AssumeRole", keyPrincipal: principal}
	return resource("AWS::IAM::Role", properties{
		"AssumeRolePolicyDocument": policy(assumed),
		"PermissionsBoundary": properties{"Fn::If": []any{
			"HasPermissionsBoundaryARN", ref("PermissionsBoundaryARN"), ref("AWS::NoValue"),
		}},
		"Policies": []any{properties{"PolicyName": "probes", "PolicyDocument": policy(permissions...)}},
	})
}

// function returns a function of a name with a log group.
func function(name, logs string, more properties) properties {
	const memory = 256
	p := properties{
		keyFunction: sub("perdure-${HubName}-selftest-" + name),
		"Runtime":   "provided.al2023", "Handler": "bootstrap", "Architectures": []any{ref("Architecture")},
		"Code":       properties{"S3Bucket": ref("CodeBucket"), "S3Key": sub("${CodePrefix}${WorkerBuild}.zip")},
		"MemorySize": memory, "Timeout": probes.FunctionTimeout, "Role": arn(probeRole),
		"Environment": properties{"Variables": properties{probefunction.TableVariable: ref(probeTable)}},
		"LoggingConfig": properties{ // as those of a hub
			"LogFormat": "JSON", "LogGroup": ref(logs), "SystemLogLevel": "WARN", "ApplicationLogLevel": "INFO",
		},
	}
	maps.Copy(p, more)
	return resource("AWS::Lambda::Function", p)
}

// mappingResources returns the queues of the functions, their mappings, and an alias with a mapping.
func mappingResources() map[string]any {
	const version, alias = "SelfTestVersion", "SelfTestAlias"
	mapping := func(queue, function string, batch int, more properties) properties {
		p := properties{
			"EventSourceArn": arn(queue), keyFunction: ref(function), "BatchSize": batch,
			"FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		}
		maps.Copy(p, more)
		return resource("AWS::Lambda::EventSourceMapping", p)
	}
	few := properties{"ScalingConfig": properties{"MaximumConcurrency": probes.FunctionConcurrency}}
	timeout := properties{keyVisibility: probes.FunctionTimeout}
	return map[string]any{
		probeMapped:      resource(typeQueue, timeout),
		probeMappedFIFO:  orderedQueue(timeout),
		probeUndelivered: resource(typeQueue, properties{}),
		probeThrottled: resource(typeQueue, properties{
			keyVisibility: probes.FunctionTimeout, keyRedrive: redrive(probeUndelivered, probes.ThrottledReceives),
		}),
		"SelfTestMapping": mapping(probeMapped, probeFunction, 1, few),
		version:           resource("AWS::Lambda::Version", properties{keyFunction: ref(probeAliased)}),
		alias: resource("AWS::Lambda::Alias", properties{
			keyFunction: ref(probeAliased), keyName: probes.Alias, "FunctionVersion": attribute(version, "Version"),
		}),
		probeAliasedQueue:        resource(typeQueue, timeout),
		"SelfTestAliasedMapping": mapping(probeAliasedQueue, alias, 1, few),
		probeFIFOMapping:         mapping(probeMappedFIFO, probeFunction, probes.MappedBatch, nil),
		probeThrottledMapping:    mapping(probeThrottled, probeNeverRun, probes.ThrottledBatch, nil),
	}
}
