// Package rules has the documented rules of AWS services that their models do not contain. The rules do not depend on
// the emulator or on internal/simaws, so that each can find errors of the others.
package rules

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/tests/awscheck/model"
)

// Keys are the key attributes of a table or an index. Sort is empty if there is none.
type Keys struct {
	Partition, Sort string
	// Types has the type of each key attribute: S, N or B.
	Types map[string]string
}

func (k Keys) has(attribute string) bool {
	return attribute != "" && (attribute == k.Partition || attribute == k.Sort)
}

// Table has the keys of a table.
type Table struct {
	Keys

	Indexes map[string]Keys
}

// Tables returns the keys of a table, or nil if the table is unknown. Rules about keys then do not apply.
type Tables func(name string) *Table

// Check returns the rules that a request violates. A request without violations of its model is assumed: values of a
// wrong type have no effect.
func Check(c *model.Call, tables Tables) []string {
	r := report{tables: tables}
	if check, ok := checks[c.Service.Name+":"+c.Operation.Name]; ok {
		check(&r, c.Input)
	}
	return r.faults
}

// checks has the rules by service and operation.
var checks = map[string]func(r *report, in fields){
	"dynamodb:PutItem":            putItem,
	"dynamodb:UpdateItem":         updateItem,
	"dynamodb:DeleteItem":         deleteItem,
	"dynamodb:GetItem":            getItem,
	"dynamodb:Query":              query,
	"dynamodb:Scan":               scan,
	"dynamodb:TransactWriteItems": transactWriteItems,
	"dynamodb:TransactGetItems":   transactGetItems,
	"dynamodb:BatchWriteItem":     batchWriteItem,
	"dynamodb:BatchGetItem":       batchGetItem,

	"sqs:SendMessage":                  sendMessage,
	"sqs:SendMessageBatch":             sendMessageBatch,
	"sqs:ReceiveMessage":               receiveMessage,
	"sqs:ChangeMessageVisibility":      changeVisibility,
	"sqs:ChangeMessageVisibilityBatch": changeVisibilityBatch,
	"sqs:DeleteMessage":                deleteMessage,
	"sqs:DeleteMessageBatch":           deleteMessageBatch,

	"scheduler:CreateSchedule": schedule,
	"scheduler:UpdateSchedule": schedule,
	"lambda:Invoke":            invoke,
	"ssm:PutParameter":         putParameter,
	"s3:GetObject":             checkObject,
	"s3:HeadObject":            checkObject,
	"s3:PutObject":             checkObject,
	"s3:DeleteObject":          checkObject,
	"s3:CopyObject":            checkObject,
	"s3:DeleteObjects":         deleteObjects,
	"s3:ListObjectsV2":         checkBucket,
}

// fields are the members of a structure.
type fields = map[string]any

type report struct {
	tables Tables
	faults []string
}

func (r *report) addf(path, format string, args ...any) {
	if path == "" {
		path = "input"
	}
	r.faults = append(r.faults, path+": "+fmt.Sprintf(format, args...))
}

// within reports a number outside its range. A missing number is within each range.
func (r *report) within(in fields, path, name string, low, high int64) {
	given, ok := in[name].(json.Number)
	if !ok {
		return
	}
	if n, err := given.Int64(); err != nil || n < low || n > high {
		r.addf(join(path, name), "%s is not from %d to %d", given, low, high)
	}
}

func text(in fields, name string) string {
	s, _ := in[name].(string)
	return s
}

func object(in fields, name string) fields {
	o, _ := in[name].(fields)
	return o
}

// objects returns the structures of a list.
func objects(in fields, name string) []fields {
	list, _ := in[name].([]any)
	all := make([]fields, 0, len(list))
	for _, member := range list {
		o, _ := member.(fields)
		all = append(all, o)
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
