package iam_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/tests/awscheck/iam"
	"github.com/perdure/perdure/tests/awscheck/model"
)

// policy parses a policy of statements that are written as JSON.
func policy(t *testing.T, statements ...string) []iam.Policy {
	t.Helper()
	p, err := iam.Parse(`{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	return []iam.Policy{p}
}

const (
	queue   = "arn:aws:sqs:us-east-1:123456789012:hub-inbox.fifo"
	sending = `{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"` + queue + `"}`
)

func send(resource string) *iam.Request {
	return &iam.Request{Action: "sqs:SendMessage", Resource: resource}
}

func TestEvaluate_statement_matchesActionAndResource(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		want      iam.Decision
	}{
		"same":                   {sending, iam.Allowed},
		"other action":           {`{"Effect":"Allow","Action":"sqs:ReceiveMessage","Resource":"` + queue + `"}`, iam.NotAllowed},
		"other resource":         {`{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"` + queue + `2"}`, iam.NotAllowed},
		"list":                   {`{"Effect":"Allow","Action":["sqs:ReceiveMessage","sqs:SendMessage"],"Resource":["x","` + queue + `"]}`, iam.Allowed},
		"case of an action":      {`{"Effect":"Allow","Action":"SQS:sendmessage","Resource":"*"}`, iam.Allowed},
		"wildcard of actions":    {`{"Effect":"Allow","Action":"sqs:*","Resource":"*"}`, iam.Allowed},
		"wildcard in an action":  {`{"Effect":"Allow","Action":"sqs:Send*","Resource":"*"}`, iam.Allowed},
		"one character":          {`{"Effect":"Allow","Action":"sqs:SendMessag?","Resource":"*"}`, iam.Allowed},
		"one character too many": {`{"Effect":"Allow","Action":"sqs:SendMessage?","Resource":"*"}`, iam.NotAllowed},
		"wildcard in a resource": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:sqs:*:123456789012:hub-*.fifo"}`, iam.Allowed},
		"case of a resource":     {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:sqs:*:123456789012:HUB-*"}`, iam.NotAllowed},
		"wildcard across parts":  {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:sqs:*"}`, iam.NotAllowed},
		"other actions":          {`{"Effect":"Allow","NotAction":"sqs:ReceiveMessage","Resource":"*"}`, iam.Allowed},
		"all but this action":    {`{"Effect":"Allow","NotAction":["sqs:Send*"],"Resource":"*"}`, iam.NotAllowed},
		"other resources":        {`{"Effect":"Allow","Action":"*","NotResource":"arn:aws:sqs:*:*:other"}`, iam.Allowed},
		"all but this resource":  {`{"Effect":"Allow","Action":"*","NotResource":"` + queue + `"}`, iam.NotAllowed},
		"denied":                 {`{"Effect":"Deny","Action":"*","Resource":"*"}`, iam.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			p := iam.Principal{Identity: policy(t, c.statement)}
			if got := p.Evaluate(send(queue)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEvaluate_severalPolicies_denyTakesPrecedence(t *testing.T) {
	const deny = `{"Effect":"Deny","Action":"sqs:*","Resource":"*"}`
	const everyone = `{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":"sqs:*","Resource":"*"}`
	for name, c := range map[string]struct {
		principal iam.Principal
		want      iam.Decision
	}{
		"no policy":                    {iam.Principal{}, iam.NotAllowed},
		"second policy allows":         {iam.Principal{Identity: append(policy(t, strings.ReplaceAll(sending, "Send", "Receive")), policy(t, sending)...)}, iam.Allowed},
		"same policy denies":           {iam.Principal{Identity: policy(t, sending, deny)}, iam.Denied},
		"other policy denies":          {iam.Principal{Identity: append(policy(t, deny), policy(t, sending)...)}, iam.Denied},
		"boundary allows":              {iam.Principal{Identity: policy(t, sending), Boundary: policy(t, sending)}, iam.Allowed},
		"boundary does not allow":      {iam.Principal{Identity: policy(t, sending), Boundary: []iam.Policy{}}, iam.NotAllowed},
		"boundary denies":              {iam.Principal{Identity: policy(t, sending), Boundary: policy(t, sending, deny)}, iam.Denied},
		"boundary alone":               {iam.Principal{Boundary: policy(t, sending)}, iam.NotAllowed},
		"resource allows everyone":     {iam.Principal{Resource: policy(t, everyone)}, iam.Allowed},
		"resource denies everyone":     {iam.Principal{Identity: policy(t, sending), Resource: policy(t, strings.Replace(everyone, "Allow", "Deny", 1))}, iam.Denied},
		"resource denies another":      {iam.Principal{Identity: policy(t, sending), Resource: policy(t, `{"Effect":"Deny","Principal":{"AWS":"arn:aws:iam::1:root"},"Action":"*","Resource":"*"}`)}, iam.Allowed},
		"resource without a principal": {iam.Principal{Resource: policy(t, sending)}, iam.NotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.principal.Evaluate(send(queue)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEvaluate_condition_comparesByItsOperator(t *testing.T) {
	context := map[string][]string{
		"aws:securetransport": {"true"}, "s3:prefix": {"hub/1"}, "s3:max-keys": {"100"}, "aws:sourceip": {"10.1.2.3"},
		"aws:currenttime": {"2026-01-02T03:04:05Z"}, "aws:sourcearn": {queue},
		"dynamodb:leadingkeys": {"n#1", "n#2"}, "aws:tagkeys": {}, "aws:username": {"ada"},
		"aws:principaltag/city": {"Köln"}, "aws:principaltag/any": {"hub/*"},
	}
	for condition, want := range map[string]bool{
		`"StringEquals":{"s3:prefix":"hub/1"}`:                                      true,
		`"StringEquals":{"S3:PREFIX":["x","hub/1"]}`:                                true,
		`"StringEquals":{"s3:prefix":"hub/*"}`:                                      false,
		`"StringEquals":{"s3:prefix":"HUB/1"}`:                                      false,
		`"StringEqualsIgnoreCase":{"s3:prefix":"HUB/1"}`:                            true,
		`"StringEquals":{"missing":"x"}`:                                            false,
		`"StringEqualsIfExists":{"missing":"x"}`:                                    true,
		`"StringEqualsIfExists":{"s3:prefix":"x"}`:                                  false,
		`"StringNotEquals":{"s3:prefix":["x","y"]}`:                                 true,
		`"StringNotEquals":{"s3:prefix":["x","hub/1"]}`:                             false,
		`"StringNotEquals":{"missing":"x"}`:                                         true,
		`"StringLike":{"s3:prefix":"hub/?"}`:                                        true,
		`"StringLike":{"s3:prefix":"*b*1"}`:                                         true,
		`"StringLike":{"aws:PrincipalTag/city":"K?ln"}`:                             true,
		`"StringLike":{"aws:PrincipalTag/city":"K??ln"}`:                            false,
		`"StringNotLike":{"s3:prefix":"hub/*"}`:                                     false,
		`"StringEquals":{"s3:prefix":"hub/1","aws:username":"bob"}`:                 false,
		`"StringEquals":{"aws:username":"ada"},"Bool":{"aws:SecureTransport":"no"}`: false,
		`"Bool":{"aws:SecureTransport":true}`:                                       true,
		`"Bool":{"aws:SecureTransport":"false"}`:                                    false,
		`"Null":{"missing":"true"}`:                                                 true,
		`"Null":{"s3:prefix":true}`:                                                 false,
		`"Null":{"s3:prefix":"false"}`:                                              true,
		`"Null":{"missing":"True"}`:                                                 true,
		`"Null":{"aws:TagKeys":"true"}`:                                             true,
		`"NumericEquals":{"s3:max-keys":"100.0"}`:                                   true,
		`"NumericNotEquals":{"s3:max-keys":"100"}`:                                  false,
		`"NumericLessThan":{"s3:max-keys":"100"}`:                                   false,
		`"NumericLessThanEquals":{"s3:max-keys":"100"}`:                             true,
		`"NumericGreaterThan":{"s3:max-keys":99}`:                                   true,
		`"NumericGreaterThanEquals":{"s3:max-keys":"101"}`:                          false,
		`"NumericEquals":{"s3:max-keys":"many"}`:                                    false,
		`"DateLessThan":{"aws:CurrentTime":"2026-01-03T00:00:00Z"}`:                 true,
		`"DateGreaterThan":{"aws:CurrentTime":"2026-01-02"}`:                        true,
		`"DateEquals":{"aws:CurrentTime":"2026-01-02T03:04:06Z"}`:                   false,
		`"IpAddress":{"aws:SourceIp":"10.1.0.0/16"}`:                                true,
		`"IpAddress":{"aws:SourceIp":"10.1.2.4"}`:                                   false,
		`"NotIpAddress":{"aws:SourceIp":"10.1.0.0/16"}`:                             false,
		`"ArnLike":{"aws:SourceArn":"arn:aws:sqs:*:*:hub-*"}`:                       true,
		`"ArnEquals":{"aws:SourceArn":"arn:aws:sqs:*"}`:                             false,
		`"ArnNotLike":{"aws:SourceArn":"arn:aws:sqs:*:*:other"}`:                    true,
		`"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["n#*"]}`:                true,
		`"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["n#1"]}`:              false,
		`"ForAllValues:StringEquals":{"missing":"x"}`:                               true,
		`"ForAnyValue:StringEquals":{"dynamodb:LeadingKeys":"n#2"}`:                 true,
		`"ForAnyValue:StringEquals":{"missing":"x"}`:                                false,
		`"ForAnyValue:StringNotEquals":{"dynamodb:LeadingKeys":"n#2"}`:              true,
		`"ForAnyValue:StringEqualsIfExists":{"missing":"x"}`:                        true,
		`"ForAnyValue:StringEqualsIfExists":{"aws:TagKeys":"x"}`:                    true,
		`"ForAnyValue:StringEqualsIfExists":{"dynamodb:LeadingKeys":"x"}`:           false,
		`"ForAllValues:StringNotEquals":{"aws:TagKeys":"x"}`:                        true,
		`"StringLike":{"s3:prefix":"${aws:username}"}`:                              false,
		`"StringEquals":{"aws:username":"${aws:username}"}`:                         true,
		`"StringEquals":{"s3:prefix":"${missing}"}`:                                 false,
		`"StringEquals":{"s3:prefix":"${missing, 'hub/1'}"}`:                        true,
		`"StringEquals":{"aws:username":"${aws:username,'bob'}"}`:                   true,
		`"StringLike":{"s3:prefix":"hub/${*}"}`:                                     false,
		`"StringLike":{"s3:prefix":"hub/${?}"}`:                                     false,
		`"StringLike":{"aws:PrincipalTag/any":"hub/${*}"}`:                          true,
		`"StringEquals":{"aws:PrincipalTag/any":"hub/${*}"}`:                        true,
		`"StringEqualsIgnoreCase":{"aws:PrincipalTag/any":"HUB/${*}"}`:              true,
		`"StringLike":{"s3:prefix":"${aws:PrincipalTag/any}"}`:                      false,
	} {
		t.Run(condition, func(t *testing.T) {
			p := iam.Principal{Identity: policy(t, `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{`+condition+`}}`)}
			got := p.Evaluate(&iam.Request{Action: "s3:ListBucket", Resource: "arn:aws:s3:::b", Context: context})
			if (got == iam.Allowed) != want {
				t.Errorf("got %v, want allowed %v", got, want)
			}
		})
	}
}

func TestEvaluate_variableInAResource_isReplaced(t *testing.T) {
	const statement = `{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::b/${aws:username}/*"}`
	r := &iam.Request{
		Action: "s3:GetObject", Resource: "arn:aws:s3:::b/ada/x", Context: map[string][]string{"aws:username": {"ada"}},
	}
	p := iam.Principal{Identity: policy(t, statement)}
	if got := p.Evaluate(r); got != iam.Allowed {
		t.Errorf("got %v", got)
	}
	old, err := iam.Parse(`{"Version":"2008-10-17","Statement":` + statement + `}`)
	if err != nil {
		t.Fatal(err)
	}
	p.Identity = []iam.Policy{old}
	if got := p.Evaluate(r); got != iam.NotAllowed {
		t.Errorf("old version: got %v", got)
	}
}

// A statement that denies something with an operator that IAM does not have would have no effect.
func TestParse_unknownOperator_isRejected(t *testing.T) {
	for _, operator := range []string{
		"StringMatches", "stringequals", "ForSomeValues:StringEquals", "NumericNotLessThan", "BoolNot", "NotBool",
		"BinaryNotEquals", "NullIfExists", "ForAllValues:Null", "StringEqualsIfExist", "IfExists", "",
	} {
		document := `{"Statement":{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"` + operator + `":{"k":"v"}}}}`
		if _, err := iam.Parse(document); err == nil || !strings.Contains(err.Error(), "unknown operator") {
			t.Errorf("%s: got error %v", operator, err)
		}
	}
}

func TestParse_invalidDocument_isRejected(t *testing.T) {
	for name, document := range map[string]string{
		"not JSON":       `{`,
		"no effect":      `{"Statement":{"Action":"*","Resource":"*"}}`,
		"unknown effect": `{"Statement":{"Effect":"allow","Action":"*","Resource":"*"}}`,
		"number":         `{"Statement":{"Effect":"Allow","Action":5,"Resource":"*"}}`,
		"no action":      `{"Statement":[{"Effect":"Deny","Resource":"*"}]}`,
		"two actions":    `{"Statement":[{"Effect":"Deny","Action":"*","NotAction":"s3:*","Resource":"*"}]}`,
		"no resource":    `{"Statement":[{"Effect":"Deny","Action":"*"}]}`,
		"no service":     `{"Statement":{"Effect":"Deny","Action":"sqs","Resource":"*"}}`,
		"two services":   `{"Statement":{"Effect":"Deny","NotAction":["s?s:*"],"Resource":"*"}}`,
		"misspelling":    `{"Statement":[{"Effect":"Deny","Action":"*","Resource":"*","Conditions":{}}]}`,
		"no principal":   `{"Statement":{"Effect":"Deny","Action":"*","Resource":"*","NotPrincipal":"*"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := iam.Parse(document); err == nil {
				t.Error("got no error")
			}
		})
	}
}

// call decodes an input that is written as JSON.
func call(t *testing.T, operation, input string) *model.Call {
	t.Helper()
	in := map[string]any{}
	d := json.NewDecoder(bytes.NewReader([]byte(input)))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		t.Fatal(err)
	}
	service, name, _ := strings.Cut(operation, ":")
	return &model.Call{Service: &model.Service{Name: service}, Operation: &model.Operation{Name: name}, Input: in}
}

var place = iam.Place{
	Account: "123456789012", Region: "us-east-1", PartitionKey: func(string) string { return "pk" },
}

func TestRequests_operation_needsTheActionsOfTheReference(t *testing.T) {
	const table = "arn:aws:dynamodb:us-east-1:123456789012:table/hub"
	const inbox = `"QueueUrl":"http://127.0.0.1:4566/123456789012/hub-inbox.fifo"`
	const schedule = "arn:aws:scheduler:us-east-1:123456789012:schedule/"
	const function = "arn:aws:lambda:us-east-1:123456789012:function:f"
	for name, c := range map[string]struct {
		operation, input string
		want             []string
	}{
		"item":        {"dynamodb:GetItem", `{"TableName":"hub"}`, []string{"dynamodb:GetItem " + table}},
		"index":       {"dynamodb:Query", `{"TableName":"hub","IndexName":"byDue"}`, []string{"dynamodb:Query " + table + "/index/byDue"}},
		"transaction": {"dynamodb:TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"hub"}},{"ConditionCheck":{"TableName":"hub"}},{"Update":{"TableName":"hub"}},{"Delete":{"TableName":"hub"}}]}`, []string{"dynamodb:PutItem " + table, "dynamodb:ConditionCheckItem " + table, "dynamodb:UpdateItem " + table, "dynamodb:DeleteItem " + table}},
		"reads":       {"dynamodb:TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"hub"}}]}`, []string{"dynamodb:GetItem " + table}},
		"batch":       {"dynamodb:BatchWriteItem", `{"RequestItems":{"hub":[]}}`, []string{"dynamodb:BatchWriteItem " + table}},
		"table ARN":   {"dynamodb:DescribeTable", `{"TableName":"` + table + `"}`, []string{"dynamodb:DescribeTable " + table}},
		"tables":      {"dynamodb:ListTables", `{}`, []string{"dynamodb:ListTables *"}},
		"messages":    {"sqs:SendMessageBatch", `{` + inbox + `}`, []string{"sqs:SendMessage " + queue}},
		"deletions":   {"sqs:DeleteMessageBatch", `{` + inbox + `}`, []string{"sqs:DeleteMessage " + queue}},
		"changes":     {"sqs:ChangeMessageVisibilityBatch", `{` + inbox + `}`, []string{"sqs:ChangeMessageVisibility " + queue}},
		"queue":       {"sqs:GetQueueUrl", `{"QueueName":"hub-inbox.fifo"}`, []string{"sqs:GetQueueUrl " + queue}},
		"redrive":     {"sqs:StartMessageMoveTask", `{"SourceArn":"s","DestinationArn":"d"}`, []string{"sqs:StartMessageMoveTask s", "sqs:ReceiveMessage s", "sqs:DeleteMessage s", "sqs:GetQueueAttributes s", "sqs:SendMessage d"}},
		"schedule":    {"scheduler:CreateSchedule", `{"Name":"t","GroupName":"hub","Target":{"RoleArn":"arn:aws:iam::1:role/r"}}`, []string{"scheduler:CreateSchedule " + schedule + "hub/t", "iam:PassRole arn:aws:iam::1:role/r"}},
		"default":     {"scheduler:DeleteSchedule", `{"Name":"t"}`, []string{"scheduler:DeleteSchedule " + schedule + "default/t"}},
		"group":       {"scheduler:GetScheduleGroup", `{"Name":"hub"}`, []string{"scheduler:GetScheduleGroup arn:aws:scheduler:us-east-1:123456789012:schedule-group/hub"}},
		"invocation":  {"lambda:Invoke", `{"FunctionName":"f"}`, []string{"lambda:InvokeFunction " + function}},
		"qualifier":   {"lambda:Invoke", `{"FunctionName":"` + function + `","Qualifier":"live"}`, []string{"lambda:InvokeFunction " + function + ":live"}},
		"mapping":     {"lambda:UpdateEventSourceMapping", `{"UUID":"u"}`, []string{"lambda:UpdateEventSourceMapping arn:aws:lambda:us-east-1:123456789012:event-source-mapping:u"}},
		"mappings":    {"lambda:ListEventSourceMappings", `{"FunctionName":"f"}`, []string{"lambda:ListEventSourceMappings *"}},
		"object":      {"s3:HeadObject", `{"Bucket":"b","Key":"k"}`, []string{"s3:GetObject arn:aws:s3:::b/k"}},
		"version":     {"s3:GetObject", `{"Bucket":"b","Key":"k","VersionId":"v"}`, []string{"s3:GetObjectVersion arn:aws:s3:::b/k"}},
		"old version": {"s3:DeleteObject", `{"Bucket":"b","Key":"k","VersionId":"v"}`, []string{"s3:DeleteObjectVersion arn:aws:s3:::b/k"}},
		"versions":    {"s3:DeleteObjects", `{"Bucket":"b","Delete":{"Objects":[{"Key":"k"},{"Key":"k","VersionId":"v"}]}}`, []string{"s3:DeleteObject arn:aws:s3:::b/k", "s3:DeleteObjectVersion arn:aws:s3:::b/k"}},
		"copied":      {"s3:CopyObject", `{"Bucket":"b","Key":"k","CopySource":"a/x%3Fy?versionId=v"}`, []string{"s3:GetObjectVersion arn:aws:s3:::a/x?y", "s3:PutObject arn:aws:s3:::b/k"}},
		"copy":        {"s3:CopyObject", `{"Bucket":"b","Key":"k","CopySource":"/a/x%20y"}`, []string{"s3:GetObject arn:aws:s3:::a/x y", "s3:PutObject arn:aws:s3:::b/k"}},
		"objects":     {"s3:DeleteObjects", `{"Bucket":"b","Delete":{"Objects":[{"Key":"1"},{"Key":"2"}]}}`, []string{"s3:DeleteObject arn:aws:s3:::b/1", "s3:DeleteObject arn:aws:s3:::b/2"}},
		"bucket":      {"s3:ListObjectsV2", `{"Bucket":"b","Prefix":"p"}`, []string{"s3:ListBucket arn:aws:s3:::b"}},
		"parameter":   {"ssm:GetParameter", `{"Name":"/perdure/hub/config"}`, []string{"ssm:GetParameter arn:aws:ssm:us-east-1:123456789012:parameter/perdure/hub/config"}},
		"parameters":  {"ssm:GetParameters", `{"Names":["/a","b"]}`, []string{"ssm:GetParameters arn:aws:ssm:us-east-1:123456789012:parameter/a", "ssm:GetParameters arn:aws:ssm:us-east-1:123456789012:parameter/b"}},
		"key":         {"kms:Decrypt", `{"KeyId":"1-2"}`, []string{"kms:Decrypt arn:aws:kms:us-east-1:123456789012:key/1-2"}},
		"alias":       {"kms:GenerateDataKey", `{"KeyId":"alias/hub"}`, []string{"kms:GenerateDataKey arn:aws:kms:us-east-1:123456789012:alias/hub"}},
		"rule":        {"events:DisableRule", `{"Name":"watch"}`, []string{"events:DisableRule arn:aws:events:us-east-1:123456789012:rule/watch"}},
		"role":        {"iam:GetRole", `{"RoleName":"r"}`, []string{"iam:GetRole arn:aws:iam::123456789012:role/r"}},
		"identity":    {"sts:GetCallerIdentity", `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			needed, err := iam.Requests(call(t, c.operation, c.input), place)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range needed {
				got = append(got, r.Action+" "+r.Resource)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRequests_operation_hasConditionKeys(t *testing.T) {
	for name, c := range map[string]struct{ operation, input, key, want string }{
		"partition key":       {"dynamodb:GetItem", `{"TableName":"hub","Key":{"pk":{"S":"n#1"}}}`, "dynamodb:leadingkeys", "[n#1]"},
		"key of an item":      {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"S":"n#1"}}}`, "dynamodb:leadingkeys", "[n#1]"},
		"key of a query":      {"dynamodb:Query", `{"TableName":"hub","KeyConditionExpression":"sk = :s AND #p = :p","ExpressionAttributeNames":{"#p":"pk"},"ExpressionAttributeValues":{":p":{"S":"n#1"}}}`, "dynamodb:leadingkeys", "[n#1]"},
		"key in parentheses":  {"dynamodb:Query", `{"TableName":"hub","KeyConditionExpression":"(sk>=:s) AND (pk=:p)","ExpressionAttributeValues":{":p":{"S":"n#1"}}}`, "dynamodb:leadingkeys", "[n#1]"},
		"number as a key":     {"dynamodb:GetItem", `{"TableName":"hub","Key":{"pk":{"N":"7"}}}`, "dynamodb:leadingkeys", "[7]"},
		"keys of a batch":     {"dynamodb:BatchGetItem", `{"RequestItems":{"hub":{"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}]}}}`, "dynamodb:leadingkeys", "[a b]"},
		"items of a batch":    {"dynamodb:BatchWriteItem", `{"RequestItems":{"hub":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"b"}}}}]}}`, "dynamodb:leadingkeys", "[a b]"},
		"key of an index":     {"dynamodb:Query", `{"TableName":"hub","IndexName":"i","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"n#1"}}}`, "dynamodb:leadingkeys", "[]"},
		"transaction":         {"dynamodb:TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"hub"}}]}`, "dynamodb:enclosingoperation", "[TransactWriteItems]"},
		"prefix":              {"s3:ListObjectsV2", `{"Bucket":"b","Prefix":"p/","MaxKeys":5}`, "s3:prefix", "[p/]"},
		"number of keys":      {"s3:ListObjectsV2", `{"Bucket":"b","Prefix":"p/","MaxKeys":5}`, "s3:max-keys", "[5]"},
		"encryption":          {"kms:Decrypt", `{"KeyId":"k","EncryptionContext":{"Hub":"a"}}`, "kms:encryptioncontext:hub", "[a]"},
		"keys of encryption":  {"kms:Decrypt", `{"KeyId":"k","EncryptionContext":{"Hub":"a"}}`, "kms:encryptioncontextkeys", "[Hub]"},
		"transport":           {"sqs:ListQueues", `{}`, "aws:securetransport", "[true]"},
		"region":              {"sqs:ListQueues", `{}`, "aws:requestedregion", "[us-east-1]"},
		"function of mapping": {"lambda:UpdateEventSourceMapping", `{"UUID":"u","FunctionName":"f"}`, "lambda:functionarn", "[arn:aws:lambda:us-east-1:123456789012:function:f]"},
	} {
		t.Run(name, func(t *testing.T) {
			needed, err := iam.Requests(call(t, c.operation, c.input), place)
			if err != nil || len(needed) != 1 {
				t.Fatalf("got %v, error %v", needed, err)
			}
			if got := fmt.Sprint(needed[0].Context[c.key]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRequests_passedRole_hasItsService(t *testing.T) {
	needed, err := iam.Requests(call(t, "scheduler:CreateSchedule", `{"Name":"t","Target":{"RoleArn":"r"}}`), place)
	if err != nil || len(needed) != 2 || needed[1].Context["iam:passedtoservice"][0] != "scheduler.amazonaws.com" {
		t.Errorf("got %v, error %v", needed, err)
	}
}

func TestRequests_unknownOperation_isAnError(t *testing.T) {
	for _, c := range []struct{ operation, input string }{
		{"glue:GetTable", `{}`},
		{"s3:PutBucketAcl", `{}`},
		{"dynamodb:CreateGlobalTable", `{}`},
		{"sqs:SendMessage", `{"QueueUrl":"http://127.0.0.1/q"}`},
		{"kms:Decrypt", `{}`},
		{"lambda:GetFunction", `{}`},
		{"sts:AssumeRole", `{"RoleArn":"arn:aws:iam::123456789012:role/r"}`},
	} {
		if needed, err := iam.Requests(call(t, c.operation, c.input), place); err == nil {
			t.Errorf("%s: got %v", c.operation, needed)
		}
	}
}

func TestMissing_objectThatIsRead_needsTheList(t *testing.T) {
	r, ok := iam.Missing("GetObject", map[string]any{"Bucket": "b"})
	if !ok || r.Action != "s3:ListBucket" || r.Resource != "arn:aws:s3:::b" {
		t.Errorf("got %v %v", r, ok)
	}
	if _, ok := iam.Missing("PutObject", nil); ok {
		t.Error("PutObject: got a permission")
	}
}
