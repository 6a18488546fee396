package iam

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/tests/awscheck/model"
)

// Place is where a request is sent.
type Place struct {
	Account, Region string
	// PartitionKey returns the partition key of a table, or an empty string if it is unknown.
	PartitionKey func(table string) string
}

// fields are the members of a structure.
type fields = map[string]any

// Requests returns the actions and resources that a call needs permissions for. The result is empty for a call that
// needs none, such as sts:GetCallerIdentity. The error reports an operation whose resources are
// unknown to this package.
//
// The actions are those of the Service Authorization Reference: a batch of SQS needs the action of single messages, and
// a transaction of DynamoDB needs the actions of its items.
func Requests(c *model.Call, at Place) ([]Request, error) {
	of, ok := services[c.Service.Name]
	if !ok {
		return nil, fmt.Errorf("%s: the resources of its actions are unknown", c.Service.Name)
	}
	found, err := of(&call{Place: at, name: c.Operation.Name, in: c.Input})
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", c.Service.Name, c.Operation.Name, err)
	}
	for i := range found {
		found[i].Context = withDefaults(found[i].Context, at)
	}
	return found, nil
}

// withDefaults adds the global condition keys that all requests have.
func withDefaults(context map[string][]string, at Place) map[string][]string {
	if context == nil {
		context = map[string][]string{}
	}
	context["aws:securetransport"] = []string{"true"} // the SDK's endpoints on AWS
	context["aws:requestedregion"] = []string{at.Region}
	context["aws:principalaccount"] = []string{at.Account}
	context["aws:resourceaccount"] = []string{at.Account}
	return context
}

// services has the actions and resources of the operations of each service.
var services = map[string]func(c *call) ([]Request, error){
	"dynamodb":  dynamodb,
	"sqs":       sqs,
	"scheduler": scheduler,
	"lambda":    lambda,
	"s3":        s3,
	"ssm":       ssm,
	"kms":       kms,
	"events":    events,
	"iam":       roles,
	"sts":       sts,
}

// call is an operation with its input.
type call struct {
	Place

	name string
	in   fields
}

func (c *call) text(name string) string { return text(c.in, name) }

func text(in fields, name string) string {
	s, _ := in[name].(string)
	return s
}

func object(in fields, name string) fields {
	o, _ := in[name].(fields)
	return o
}

func objects(in fields, name string) []fields {
	list, _ := in[name].([]any)
	all := make([]fields, 0, len(list))
	for _, member := range list {
		o, _ := member.(fields)
		all = append(all, o)
	}
	return all
}

// arn returns the ARN of a resource. A name that is an ARN is returned as it is.
func (c *call) arn(service, resource, name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return fmt.Sprintf("arn:aws:%s:%s:%s:%s%s", service, c.Region, c.Account, resource, name)
}

// one returns a single request.
func one(action, resource string) ([]Request, error) {
	return []Request{{Action: action, Resource: resource}}, nil
}

const (
	tableName   = "TableName"
	everything  = "*"
	transaction = "TransactWriteItems"
)

// transactionActions are the actions of the items of a transaction.
var transactionActions = map[string]string{
	"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem",
	"ConditionCheck": "dynamodb:ConditionCheckItem", "Get": "dynamodb:GetItem",
}

func dynamodb(c *call) ([]Request, error) {
	switch c.name {
	case transaction, "TransactGetItems":
		var all []Request
		for _, item := range objects(c.in, "TransactItems") {
			for action := range item {
				request := object(item, action)
				r := c.item(transactionActions[action], request)
				r.Context["dynamodb:enclosingoperation"] = []string{c.name}
				all = append(all, r)
			}
		}
		return all, nil
	case "BatchGetItem", "BatchWriteItem":
		var all []Request
		for table := range object(c.in, "RequestItems") {
			all = append(all, c.batch(table))
		}
		return all, nil
	case "ListTables", "DescribeLimits", "DescribeEndpoints", "ListBackups":
		return one("dynamodb:"+c.name, everything)
	}
	if c.text(tableName) == "" {
		return nil, fmt.Errorf("the request has no member %s", tableName)
	}
	r := c.item("dynamodb:"+c.name, c.in)
	if index := c.text("IndexName"); index != "" {
		r.Resource += "/index/" + index
	}
	if selected := c.text("Select"); selected != "" {
		r.Context["dynamodb:select"] = []string{selected}
	}
	return []Request{r}, nil
}

// item returns the request for an action on an item, with the partition key as a condition key.
func (c *call) item(action string, in fields) Request {
	table := text(in, tableName)
	r := Request{Action: action, Resource: c.arn("dynamodb", "table/", table), Context: map[string][]string{}}
	if values := text(in, "ReturnValues"); values != "" {
		r.Context["dynamodb:returnvalues"] = []string{values}
	}
	if key := c.leadingKey(table, in); key != "" {
		r.Context["dynamodb:leadingkeys"] = []string{key}
	}
	return r
}

// batch returns the request for the items of a table in a batch, with their partition keys.
func (c *call) batch(table string) Request {
	requests := object(c.in, "RequestItems")
	var keys []string
	for _, write := range objects(requests, table) {
		for action := range write {
			keys = append(keys, c.leadingKey(table, object(write, action)))
		}
	}
	for _, key := range objects(object(requests, table), "Keys") {
		keys = append(keys, c.leadingKey(table, fields{"Key": key}))
	}
	r := Request{
		Action: "dynamodb:" + c.name, Resource: c.arn("dynamodb", "table/", table), Context: map[string][]string{},
	}
	if keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" }); len(keys) > 0 {
		r.Context["dynamodb:leadingkeys"] = keys
	}
	return r
}

// spaced separates the operators of an expression from its names.
var spaced = strings.NewReplacer("=", " = ", "(", " ", ")", " ")

// scalar returns a value of a key attribute.
func scalar(value fields) string { return text(value, "S") + text(value, "N") + text(value, "B") }

// leadingKey returns the partition key of an item, or of a query with a condition such as "pk = :pk".
func (c *call) leadingKey(table string, in fields) string {
	if c.PartitionKey == nil {
		return ""
	}
	name := c.PartitionKey(table)
	for _, member := range []string{"Key", "Item"} {
		if value := object(object(in, member), name); value != nil {
			return scalar(value)
		}
	}
	if text(in, "IndexName") != "" {
		return ""
	}
	words := strings.Fields(spaced.Replace(text(in, "KeyConditionExpression")))
	for i := 0; i+2 < len(words); i++ {
		attribute := words[i]
		if alias := text(object(in, "ExpressionAttributeNames"), attribute); alias != "" {
			attribute = alias
		}
		if attribute == name && words[i+1] == "=" {
			return scalar(object(object(in, "ExpressionAttributeValues"), words[i+2]))
		}
	}
	return ""
}

func sqs(c *call) ([]Request, error) {
	action := "sqs:" + strings.TrimSuffix(c.name, "Batch")
	switch c.name {
	case "ListQueues":
		return one(action, everything)
	case "CreateQueue", "GetQueueUrl":
		return one(action, c.arn("sqs", "", c.text("QueueName")))
	case "StartMessageMoveTask":
		source := c.text("SourceArn")
		all := []Request{{Action: action, Resource: source}}
		for _, needed := range []string{"ReceiveMessage", "DeleteMessage", "GetQueueAttributes"} {
			all = append(all, Request{Action: "sqs:" + needed, Resource: source})
		}
		if to := c.text("DestinationArn"); to != "" {
			all = append(all, Request{Action: "sqs:SendMessage", Resource: to})
		}
		return all, nil
	case "ListMessageMoveTasks":
		return one(action, c.text("SourceArn"))
	}
	queue, err := queueARN(c)
	if err != nil {
		return nil, err
	}
	return one(action, queue)
}

// queueARN returns the ARN of the queue whose URL is https://host/account/name.
func queueARN(c *call) (string, error) {
	u, err := url.Parse(c.text("QueueUrl"))
	if err != nil {
		return "", fmt.Errorf("QueueUrl: %w", err)
	}
	account, name, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !ok {
		return "", fmt.Errorf("QueueUrl: %q has no account and name", u.Path)
	}
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", c.Region, account, name), nil
}

func scheduler(c *call) ([]Request, error) {
	action := "scheduler:" + c.name
	group := c.text("GroupName")
	switch c.name {
	case "CreateScheduleGroup", "GetScheduleGroup", "DeleteScheduleGroup":
		return one(action, c.arn("scheduler", "schedule-group/", c.text("Name")))
	case "ListScheduleGroups":
		return one(action, everything)
	case "ListSchedules":
		if group == "" {
			group = everything
		}
		return one(action, c.arn("scheduler", "schedule/", group+"/*"))
	}
	if group == "" {
		group = "default"
	}
	all, _ := one(action, c.arn("scheduler", "schedule/", group+"/"+c.text("Name")))
	if role := text(object(c.in, "Target"), "RoleArn"); role != "" {
		all = append(all, Request{
			Action: "iam:PassRole", Resource: role,
			Context: map[string][]string{"iam:passedtoservice": {"scheduler.amazonaws.com"}},
		})
	}
	return all, nil
}

// sts returns no request for an operation that needs no permission. Others, such as AssumeRole, also depend on the
// trust policy of a role, which this package does not evaluate.
func sts(c *call) ([]Request, error) {
	if c.name == "GetCallerIdentity" || c.name == "GetSessionToken" {
		return nil, nil
	}
	return nil, errors.New("the trust policy of the role is not evaluated")
}

// lambdaLists are operations of Lambda without a resource.
var lambdaLists = map[string]bool{
	"ListFunctions": true, "ListEventSourceMappings": true, "GetAccountSettings": true, "ListLayers": true,
}

func lambda(c *call) ([]Request, error) {
	action := "lambda:" + c.name
	function := c.text("FunctionName")
	switch {
	case c.name == "Invoke":
		action = "lambda:InvokeFunction"
	case lambdaLists[c.name]:
		return one(action, everything)
	case strings.HasSuffix(c.name, "EventSourceMapping"):
		resource := everything
		if id := c.text("UUID"); id != "" {
			resource = c.arn("lambda", "event-source-mapping:", id)
		}
		r := Request{Action: action, Resource: resource}
		if function != "" {
			r.Context = map[string][]string{"lambda:functionarn": {c.arn("lambda", "function:", function)}}
		}
		return []Request{r}, nil
	}
	if function == "" {
		return nil, fmt.Errorf("the request has no member %s", "FunctionName")
	}
	resource := c.arn("lambda", "function:", function)
	if qualifier := c.text("Qualifier"); qualifier != "" {
		resource += ":" + qualifier
	}
	return one(action, resource)
}
