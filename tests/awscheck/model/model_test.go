package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/tests/awscheck/model"
)

// models returns the models of the pinned botocore.
var models = sync.OnceValues(func() (*model.Models, error) { return model.Install(context.Background(), "../../..") })

func service(t *testing.T, name string) *model.Service {
	t.Helper()
	all, err := models()
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Service(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate decodes and validates a request.
func validate(t *testing.T, name string, r *model.Request) (operation string, input map[string]any, faults []string) {
	t.Helper()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	s := service(t, name)
	c, err := s.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	return c.Operation.Name, c.Input, s.Validate(c.Operation, c.Input)
}

func jsonRequest(target, body string) *model.Request {
	return &model.Request{
		Method: http.MethodPost, Path: "/", Header: http.Header{"X-Amz-Target": {target}}, Body: []byte(body),
	}
}

func restRequest(t *testing.T, method, target, body string, header http.Header) *model.Request {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return &model.Request{Method: method, Path: u.EscapedPath(), Query: u.Query(), Header: header, Body: []byte(body)}
}

func TestValidate_jsonRequest_reportsEachConstraint(t *testing.T) {
	const put = "DynamoDB_20120810.PutItem"
	for name, c := range map[string]struct{ service, target, body, want string }{
		"missing member":        {"dynamodb", put, `{"TableName":"t1x"}`, "Item: required member is missing"},
		"null member":           {"dynamodb", put, `{"TableName":"t1x","Item":null}`, "Item: required member is missing"},
		"short string":          {"dynamodb", put, `{"TableName":"","Item":{}}`, "TableName: got 0 characters, want at least 1"},
		"long string":           {"dynamodb", put, `{"TableName":"` + strings.Repeat("é", 1025) + `","Item":{}}`, "TableName: got 1025 characters, want at most 1024"},
		"wrong type":            {"dynamodb", put, `{"TableName":5,"Item":{}}`, "TableName: want a string, got json.Number"},
		"text for an object":    {"dynamodb", put, `{"TableName":"t1x","Item":"a"}`, "Item: want an object, got string"},
		"text for a list":       {"dynamodb", put, `{"TableName":"t1x","Item":{"a":{"L":"x"}}}`, "Item{a}.L: want a list, got string"},
		"text for a boolean":    {"dynamodb", put, `{"TableName":"t1x","Item":{"a":{"BOOL":"true"}}}`, "Item{a}.BOOL: want a boolean, got string"},
		"blob not in base64":    {"dynamodb", put, `{"TableName":"t1x","Item":{"a":{"B":"?"}}}`, "Item{a}.B: the blob is not base64"},
		"enumeration":           {"dynamodb", put, `{"TableName":"t1x","Item":{},"ReturnValues":"OLD"}`, `ReturnValues: "OLD" is not one of the values NONE`},
		"unknown member":        {"dynamodb", put, `{"TableName":"t1x","Item":{},"Itm":{}}`, "Itm: the service has no such member"},
		"null in a map":         {"dynamodb", put, `{"TableName":"t1x","Item":{"a":null}}`, "Item{a}: a value of a map is null"},
		"long list":             {"dynamodb", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[` + strings.Repeat(`{},`, 100) + `{}]}`, "TransactItems: got 101 members, want at most 100"},
		"empty list":            {"dynamodb", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[]}`, "TransactItems: got 0 members, want at least 1"},
		"null in a list":        {"dynamodb", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[null]}`, "TransactItems[0]: a member of a list is null"},
		"nested missing member": {"dynamodb", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"t1x"}}]}`, "TransactItems[0].Put.Item: required member is missing"},
		"small number":          {"dynamodb", "DynamoDB_20120810.Query", `{"TableName":"t1x","Limit":0}`, "Limit: 0 is less than 1"},
		"fraction":              {"dynamodb", "DynamoDB_20120810.Query", `{"TableName":"t1x","Limit":1.5}`, "Limit: 1.5 is not a value of the type integer"},
		"number of 64 bits":     {"dynamodb", "DynamoDB_20120810.Query", `{"TableName":"t1x","Limit":3000000000}`, "Limit: 3000000000 is not a value of the type integer"},
		"pattern":               {"dynamodb", "DynamoDB_20120810.Query", `{"TableName":"t1x","IndexName":"by#creation"}`, `IndexName: "by#creation" does not match the pattern`},
		"batch without entries": {"sqs", "AmazonSQS.SendMessageBatch", `{"QueueUrl":"q"}`, "Entries: required member is missing"},
		"key of a map":          {"sqs", "AmazonSQS.SendMessage", `{"QueueUrl":"q","MessageBody":"b","MessageSystemAttributes":{"Other":{"DataType":"String"}}}`, `MessageSystemAttributes{key}: "Other" is not one of the values AWSTraceHeader`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, faults := validate(t, c.service, jsonRequest(c.target, c.body))
			if len(faults) != 1 || !strings.HasPrefix(faults[0], c.want) {
				t.Errorf("got %q, want %q", faults, c.want)
			}
		})
	}
}

func TestValidate_validRequest_hasNoFaults(t *testing.T) {
	for name, r := range map[string]struct {
		service string
		request *model.Request
	}{
		"item": {"dynamodb", jsonRequest("DynamoDB_20120810.PutItem",
			`{"TableName":"t1x","Item":{"pk":{"S":"a"},"n":{"N":"1"},"b":{"B":"aGk="},"l":{"L":[{"NULL":true}]}},"ReturnValues":"NONE"}`)},
		"message": {"sqs", jsonRequest("AmazonSQS.SendMessage", `{"QueueUrl":"q","MessageBody":"b","DelaySeconds":0}`)},
		"schedule": {"scheduler", restRequest(t, http.MethodPost, "/schedules/timer-1",
			`{"FlexibleTimeWindow":{"Mode":"OFF"},"ScheduleExpression":"at(2026-01-02T03:04:05)",`+
				`"Target":{"Arn":"arn:aws:sqs:us-east-1:1:q","RoleArn":"arn:aws:iam::123456789012:role/r","Input":"x"}}`, nil)},
		"role": {"iam", &model.Request{Body: []byte("Action=GetRole&Version=2010-05-08&RoleName=r")}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, faults := validate(t, r.service, r.request); len(faults) > 0 {
				t.Errorf("got %q", faults)
			}
		})
	}
}

func TestDecode_restRequest_findsOperationAndMembers(t *testing.T) {
	for name, c := range map[string]struct {
		service, method, target, body string
		header                        http.Header
		operation, input              string
	}{
		"object":          {"s3", "GET", "/bucket/a/b%20c%2Fd?x-id=GetObject", "", nil, "GetObject", `{"Bucket":"bucket","Key":"a/b c/d"}`},
		"put":             {"s3", "PUT", "/bucket/key", "12345", http.Header{"Content-Type": {"text/plain"}}, "PutObject", `{"Body":5,"Bucket":"bucket","ContentType":"text/plain","Key":"key"}`},
		"copy":            {"s3", "PUT", "/bucket/key", "", http.Header{"X-Amz-Copy-Source": {"/b/k"}}, "CopyObject", `{"Bucket":"bucket","CopySource":"/b/k","Key":"key"}`},
		"part":            {"s3", "PUT", "/bucket/key?partNumber=2&uploadId=u", "", nil, "UploadPart", `{"Body":0,"Bucket":"bucket","Key":"key","PartNumber":2,"UploadId":"u"}`},
		"list":            {"s3", "GET", "/bucket/?list-type=2&max-keys=7&prefix=p%2F", "", nil, "ListObjectsV2", `{"Bucket":"bucket","MaxKeys":7,"Prefix":"p/"}`},
		"bucket":          {"s3", "PUT", "/bucket/", "", nil, "CreateBucket", `{"Bucket":"bucket"}`},
		"deletion":        {"s3", "POST", "/bucket/?delete=", "<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>", nil, "DeleteObjects", `{"Bucket":"bucket","Delete":{"Objects":[{"Key":"a"},{"Key":"b"}],"Quiet":true}}`},
		"metadata":        {"s3", "PUT", "/bucket/key", "", http.Header{"X-Amz-Meta-Color": {"red"}}, "PutObject", `{"Body":0,"Bucket":"bucket","Key":"key","Metadata":{"color":"red"}}`},
		"schedule":        {"scheduler", "DELETE", "/schedules/timer.1?groupName=hub", "", nil, "DeleteSchedule", `{"GroupName":"hub","Name":"timer.1"}`},
		"invocation":      {"lambda", "POST", "/2015-03-31/functions/f/invocations", `{"a":1}`, http.Header{"X-Amz-Invocation-Type": {"Event"}}, "Invoke", `{"FunctionName":"f","InvocationType":"Event","Payload":7}`},
		"arn in a path":   {"lambda", "GET", "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A1%3Afunction%3Af/configuration", "", nil, "GetFunctionConfiguration", `{"FunctionName":"arn:aws:lambda:us-east-1:1:function:f"}`},
		"mappings":        {"lambda", "GET", "/2015-03-31/event-source-mappings?MaxItems=3", "", nil, "ListEventSourceMappings", `{"MaxItems":3}`},
		"trailing slash":  {"lambda", "GET", "/2015-03-31/event-source-mappings/", "", nil, "ListEventSourceMappings", `{}`},
		"mapping":         {"lambda", "PUT", "/2015-03-31/event-source-mappings/id", `{"Enabled":false}`, nil, "UpdateEventSourceMapping", `{"Enabled":false,"UUID":"id"}`},
		"unknown in path": {"s3", "GET", "/bucket/key?versionid=1", "", nil, "GetObject", `{"?versionid":"1","Bucket":"bucket","Key":"key"}`},
	} {
		t.Run(name, func(t *testing.T) {
			operation, input, _ := validate(t, c.service, restRequest(t, c.method, c.target, c.body, c.header))
			if operation != c.operation || encode(t, input) != c.input {
				t.Errorf("got %s %s, want %s %s", operation, encode(t, input), c.operation, c.input)
			}
		})
	}
}

func encode(t *testing.T, input map[string]any) string {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDecode_form_findsNestedMembers(t *testing.T) {
	form := "Action=SimulatePrincipalPolicy&PolicySourceArn=a&ActionNames.member.1=x&ActionNames.member.2=y&MaxItems=5" +
		"&ContextEntries.member.1.ContextKeyName=k&ContextEntries.member.1.ContextKeyValues.member.1=v"
	operation, input, _ := validate(t, "iam", &model.Request{Body: []byte(form)})
	want := `{"ActionNames":["x","y"],"ContextEntries":[{"ContextKeyName":"k","ContextKeyValues":["v"]}],"MaxItems":5,"PolicySourceArn":"a"}`
	if operation != "SimulatePrincipalPolicy" || encode(t, input) != want {
		t.Errorf("got %s %s", operation, encode(t, input))
	}
}

func TestValidate_restRequest_reportsPartsOutsideTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		service, method, target, body string
		want                          []string
	}{
		"name of a schedule": {"scheduler", "DELETE", "/schedules/a%20b", "", []string{`Name: "a b" does not match the pattern`}},
		"long name": {"scheduler", "DELETE", "/schedules/" + strings.Repeat("a", 65), "", []string{
			"Name: got 65 characters, want at most 64",
		}},
		"number in a query": {"lambda", "GET", "/2015-03-31/event-source-mappings?MaxItems=x", "", []string{"MaxItems: want a number, got string"}},
		"unknown parameter": {"scheduler", "DELETE", "/schedules/a?group=b", "", []string{"?group: the service has no such member"}},
		"missing body":      {"s3", "POST", "/bucket?delete", "", []string{"Delete: required member is missing"}},
		"unknown element":   {"s3", "POST", "/bucket?delete", "<Delete><Objects><Key>a</Key></Objects></Delete>", []string{"Delete.Objects: "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, faults := validate(t, c.service, restRequest(t, c.method, c.target, c.body, nil))
			for i, want := range c.want {
				if i >= len(faults) || !strings.HasPrefix(faults[i], want) {
					t.Errorf("got %q, want %q", faults, c.want)
				}
			}
		})
	}
}

func TestDecode_malformedRequest_isAnError(t *testing.T) {
	for name, c := range map[string]struct {
		service string
		request *model.Request
		want    string
	}{
		"unknown target":   {"dynamodb", jsonRequest("DynamoDB_20120810.Put", "{}"), `no operation has the target "DynamoDB_20120810.Put"`},
		"other service":    {"dynamodb", jsonRequest("AmazonSQS.PutItem", "{}"), "no operation has the target"},
		"not JSON":         {"sqs", jsonRequest("AmazonSQS.SendMessage", "{"), "SendMessage: the body is not a JSON object"},
		"second value":     {"sqs", jsonRequest("AmazonSQS.SendMessage", "{}{}"), "the body has text after the JSON object"},
		"null":             {"sqs", jsonRequest("AmazonSQS.SendMessage", "null"), "the body is null"},
		"unknown path":     {"scheduler", restRequest(t, "GET", "/timers", "", nil), "no operation has the request GET /timers"},
		"unknown action":   {"iam", &model.Request{Body: []byte("Action=Get")}, `no operation has the action "Get"`},
		"not XML":          {"s3", restRequest(t, "POST", "/b?delete", "<Delete>", nil), "DeleteObjects: the body is not XML"},
		"unknown encoding": {"cloudwatch", jsonRequest("", ""), "protocol is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.request.Header == nil {
				c.request.Header = http.Header{}
			}
			_, err := service(t, c.service).Decode(c.request)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestService_unknownService_isNotFound(t *testing.T) {
	service(t, "sqs")
	all, _ := models()
	if _, err := all.Service("no-such-service"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v", err)
	}
}

// Go does not support lookahead, surrogates and one class of Java. These patterns are not checked.
func TestPatterns_servicesOfPerdure_compile(t *testing.T) {
	unsupported := []string{
		"dynamodb AutoScalingPolicyName", "dynamodb AutoScalingRoleArn", "events PathParameter", "scheduler Source",
	}
	var got []string
	for _, name := range []string{"dynamodb", "sqs", "scheduler", "s3", "sts", "events"} {
		s := service(t, name)
		for _, shape := range slices.Sorted(maps.Keys(s.Shapes)) {
			if p := s.Shapes[shape].Pattern; p != "" && !model.Compiles(p) {
				got = append(got, name+" "+shape)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, unsupported) {
		t.Errorf("got %q, want %q", got, unsupported)
	}
}

func TestValidate_excerptOfALongValue_isShort(t *testing.T) {
	body, _ := json.Marshal(map[string]any{"TableName": "t1x", "IndexName": strings.Repeat("#", 200)})
	_, _, faults := validate(t, "dynamodb", jsonRequest("DynamoDB_20120810.Query", string(body)))
	if len(faults) != 1 || strings.Count(faults[0], "#") > 40 {
		t.Errorf("got %q", faults)
	}
}
