package rules_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/tests/awscheck/model"
	"github.com/perdure/perdure/tests/awscheck/rules"
)

// tables has a table with an index.
func tables(name string) *rules.Table {
	if name != "hub" {
		return nil
	}
	types := map[string]string{"pk": "S", "sk": "S", "due": "S", "created": "N"}
	return &rules.Table{
		Keys:    rules.Keys{Partition: "pk", Sort: "sk", Types: types},
		Indexes: map[string]rules.Keys{"byDue": {Partition: "due", Sort: "created", Types: types}},
	}
}

// check checks an input that is written as JSON.
func check(t *testing.T, operation, input string) []string {
	t.Helper()
	in := map[string]any{}
	d := json.NewDecoder(bytes.NewReader([]byte(input)))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		t.Fatalf("%v: %s", err, input)
	}
	for _, name := range []string{"Payload", "Body"} {
		if size, ok := in[name].(json.Number); ok {
			n, err := size.Int64()
			if err != nil {
				t.Fatal(err)
			}
			in[name] = model.Stream(n)
		}
	}
	service, name, _ := strings.Cut(operation, ":")
	return rules.Check(&model.Call{
		Service: &model.Service{Name: service}, Operation: &model.Operation{Name: name}, Input: in,
	}, tables)
}

// item is an item of the table, with more attributes.
func item(more string) string { return `{"pk":{"S":"p"},"sk":{"S":"s"}` + more + `}` }

const key = `"Key":{"pk":{"S":"p"},"sk":{"S":"s"}}`

func text(bytes int) string { return strings.Repeat("x", bytes) }

// put is a PutItem of an item of the table, with more attributes.
func put(more string) string { return `{"TableName":"hub","Item":` + item(more) + `}` }

// update is an UpdateItem with an expression, and more members.
func update(expression, more string) string {
	return `{"TableName":"hub",` + key + `,"UpdateExpression":"` + expression + `"` + more + `}`
}

// rejected is a request that violates one rule.
type rejected struct{ operation, input, want string }

func (c rejected) run(t *testing.T) {
	t.Helper()
	got := check(t, c.operation, c.input)
	if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
		t.Errorf("got %q, want %q", got, c.want)
	}
}

func TestCheck_item_violatesOneRule(t *testing.T) {
	nested := `{"S":"x"}`
	for range 32 {
		nested = `{"L":[` + nested + `]}`
	}
	for name, c := range map[string]rejected{
		"too large":             {"dynamodb:PutItem", put(`,"a":{"S":"` + text(400<<10) + `"}`), "Item: the item has 409607 bytes, want at most 409600"},
		"too large by a blob":   {"dynamodb:PutItem", put(`,"a":{"B":"` + strings.Repeat("AAAA", 136534) + `"}`), "Item: the item has 409609 bytes"},
		"two types":             {"dynamodb:PutItem", put(`,"a":{"S":"x","N":"1"}`), "Item.a: the value has 2 types, want 1"},
		"no type":               {"dynamodb:PutItem", put(`,"a":{}`), "Item.a: the value has 0 types, want 1"},
		"no value":              {"dynamodb:PutItem", put(`,"a":{"S":null}`), "Item.a: the value has none of the types"},
		"unknown type":          {"dynamodb:PutItem", put(`,"a":{"X":"1"}`), "Item.a: the value has none of the types"},
		"null that is false":    {"dynamodb:PutItem", put(`,"a":{"NULL":false}`), "Item.a: NULL is not true"},
		"empty name":            {"dynamodb:PutItem", put(`,"":{"S":"x"}`), "Item: an attribute name is empty"},
		"nested too deep":       {"dynamodb:PutItem", put(`,"a":` + nested), "Item.a[0][0]"},
		"empty set":             {"dynamodb:PutItem", put(`,"a":{"SS":[]}`), "Item.a: the set is empty"},
		"set with a repetition": {"dynamodb:PutItem", put(`,"a":{"NS":["1","1"]}`), "Item.a: the set has a value twice"},
		"text for a number":     {"dynamodb:PutItem", put(`,"a":{"N":"x"}`), `Item.a: "x" is not a number`},
		"empty number":          {"dynamodb:PutItem", put(`,"a":{"N":""}`), `Item.a: "" is not a number`},
		"two signs":             {"dynamodb:PutItem", put(`,"a":{"N":"+-1"}`), `Item.a: "+-1" is not a number`},
		"no exponent":           {"dynamodb:PutItem", put(`,"a":{"N":"1e"}`), `Item.a: "1e" is not a number`},
		"set of a number twice": {"dynamodb:PutItem", put(`,"a":{"NS":["10","1.0e1"]}`), "Item.a: the set has a value twice"},
		"number of 39 digits":   {"dynamodb:PutItem", put(`,"a":{"N":"` + strings.Repeat("1", 39) + `"}`), "Item.a: the number has 39 digits, want at most 38"},
		"huge number":           {"dynamodb:PutItem", put(`,"a":{"N":"1e126"}`), "Item.a: the number has the magnitude 126"},
		"tiny number":           {"dynamodb:PutItem", put(`,"a":{"N":"0.01e-129"}`), "Item.a: the number has the magnitude -131"},
		"missing sort key":      {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"S":"p"}}}`, "Item: the key attribute sk is missing"},
		"empty key":             {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"S":""},"sk":{"S":"s"}}}`, "Item.pk: a key attribute is empty"},
		"key of another type":   {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"N":"1"},"sk":{"S":"s"}}}`, "Item.pk: a key attribute has another type than S"},
		"long partition key":    {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"S":"` + text(2049) + `"},"sk":{"S":"s"}}}`, "Item.pk: a key attribute has 2049 bytes, want at most 2048"},
		"long sort key":         {"dynamodb:PutItem", `{"TableName":"hub","Item":{"pk":{"S":"p"},"sk":{"S":"` + text(1025) + `"}}}`, "Item.sk: a key attribute has 1025 bytes, want at most 1024"},
		"empty key of an index": {"dynamodb:PutItem", put(`,"due":{"S":""}`), "Item.due: a key attribute is empty"},
		"index key's type":      {"dynamodb:PutItem", put(`,"created":{"S":"1"}`), "Item.created: a key attribute has another type than N"},
		"return values":         {"dynamodb:PutItem", `{"TableName":"hub","Item":` + item("") + `,"ReturnValues":"ALL_NEW"}`, "ReturnValues: ALL_NEW is not one of"},
		"more than a key":       {"dynamodb:GetItem", `{"TableName":"hub","Key":` + item(`,"a":{"S":"x"}`) + `}`, "Key: a is not a key attribute"},
		"less than a key":       {"dynamodb:DeleteItem", `{"TableName":"hub","Key":{"pk":{"S":"p"}}}`, "Key: the key attribute sk is missing"},
		"large update":          {"dynamodb:UpdateItem", update("SET a = :a", `,"ExpressionAttributeValues":{":a":{"S":"`+text(400<<10)+`"}}`), "input: the update stores 409606 bytes"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_expression_violatesOneRule(t *testing.T) {
	const names, values = `,"ExpressionAttributeNames":`, `,"ExpressionAttributeValues":`
	for name, c := range map[string]rejected{
		"undefined value":      {"dynamodb:UpdateItem", update("SET a = :a", ""), "input: the placeholder :a of an expression is not defined"},
		"undefined name":       {"dynamodb:UpdateItem", update("REMOVE #a", ""), "input: the placeholder #a of an expression is not defined"},
		"unused value":         {"dynamodb:UpdateItem", update("REMOVE a", values+`{":b":{"S":"x"}}`), "ExpressionAttributeValues: no expression uses the placeholder :b"},
		"unused name":          {"dynamodb:UpdateItem", update("REMOVE a", names+`{"#b":"b"}`), "ExpressionAttributeNames: no expression uses the placeholder #b"},
		"prefix of a name":     {"dynamodb:UpdateItem", update("REMOVE #ab", names+`{"#ab":"b","#a":"a"}`), "ExpressionAttributeNames: no expression uses the placeholder #a"},
		"empty map":            {"dynamodb:UpdateItem", update("REMOVE a", values+`{}`), "ExpressionAttributeValues: the map is empty"},
		"values alone":         {"dynamodb:GetItem", `{"TableName":"hub",` + key + names + `{"#a":"a"}}`, "ExpressionAttributeNames: the request has no expression"},
		"empty expression":     {"dynamodb:UpdateItem", update("", ""), "UpdateExpression: the expression is empty"},
		"long expression":      {"dynamodb:UpdateItem", update("REMOVE "+text(4090), ""), "UpdateExpression: the expression has 4097 bytes, want at most 4096"},
		"long placeholder":     {"dynamodb:UpdateItem", update("REMOVE #"+text(255), names+`{"#`+text(255)+`":"a"}`), "input: a placeholder has 256 bytes, want at most 255"},
		"many operators":       {"dynamodb:DeleteItem", `{"TableName":"hub",` + key + `,"ConditionExpression":"a=b` + strings.Repeat(" OR a=b", 150) + `"}`, "ConditionExpression: the expression has 301 operators, want at most 300"},
		"large substitutions":  {"dynamodb:DeleteItem", `{"TableName":"hub",` + key + `,"ConditionExpression":"a=:a"` + values + `{":a":{"S":"` + text(2<<20) + `"}}}`, "input: the placeholders have 2097154 bytes"},
		"value with two types": {"dynamodb:DeleteItem", `{"TableName":"hub",` + key + `,"ConditionExpression":"a=:a"` + values + `{":a":{"S":"x","N":"1"}}}`, "ExpressionAttributeValues.:a: the value has 2 types"},
		"changed key":          {"dynamodb:UpdateItem", update("SET a = if_not_exists(a, :v), #k = :v", names+`{"#k":"sk"}`+values+`{":v":{"S":"x"}}`), "UpdateExpression: the expression changes the key attribute sk"},
		"same path":            {"dynamodb:UpdateItem", update("SET a = :v REMOVE a", values+`{":v":{"S":"x"}}`), "UpdateExpression: two paths overlap: a"},
		"path in a path":       {"dynamodb:UpdateItem", update("SET a.b[0] = :v, a.b = :v", values+`{":v":{"S":"x"}}`), "UpdateExpression: two paths overlap: a.b"},
		"reserved word":        {"dynamodb:UpdateItem", update("SET status = :v", values+`{":v":{"S":"x"}}`), "UpdateExpression: status is a reserved word; use a placeholder"},
		"part of a path":       {"dynamodb:GetItem", `{"TableName":"hub",` + key + `,"ProjectionExpression":"a, b[0].Name"}`, "ProjectionExpression: Name is a reserved word"},
		"keyword elsewhere":    {"dynamodb:DeleteItem", `{"TableName":"hub",` + key + `,"ConditionExpression":"attribute_exists(add)"}`, "ConditionExpression: add is a reserved word"},
		"empty index key":      {"dynamodb:UpdateItem", update("SET due = :v", values+`{":v":{"S":""}}`), "UpdateExpression.due: a key attribute is empty"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_query_violatesOneRule(t *testing.T) {
	query := func(members string) string { return `{"TableName":"hub",` + members + `}` }
	const values = `,"ExpressionAttributeValues":{":p":{"S":"p"}}`
	for name, c := range map[string]rejected{
		"no condition":             {"dynamodb:Query", query(`"Limit":1`), "KeyConditionExpression: the query has no key condition"},
		"no partition key":         {"dynamodb:Query", query(`"KeyConditionExpression":"sk = :p"` + values), "KeyConditionExpression: the condition lacks the partition key pk"},
		"other attribute":          {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p AND begins_with(x, :p)"` + values), "KeyConditionExpression: x is not a key attribute"},
		"keys of the table":        {"dynamodb:Query", query(`"IndexName":"byDue","KeyConditionExpression":"due = :p AND sk = :p"` + values), "KeyConditionExpression: sk is not a key attribute"},
		"filter of a key":          {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p","FilterExpression":"contains(sk, :p)"` + values), "FilterExpression: the filter refers to the key attribute sk"},
		"alternatives":             {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p OR sk = :p"` + values), "KeyConditionExpression: a key condition has OR or NOT"},
		"negation":                 {"dynamodb:Query", query(`"KeyConditionExpression":"NOT pk = :p"` + values), "KeyConditionExpression: a key condition has OR or NOT"},
		"partition key twice":      {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p AND pk = :p"` + values), "KeyConditionExpression: pk has two conditions"},
		"range of partitions":      {"dynamodb:Query", query(`"KeyConditionExpression":"pk >= :p"` + values), "KeyConditionExpression: a condition on the key attribute pk has the operator >="},
		"start of a partition key": {"dynamodb:Query", query(`"KeyConditionExpression":"begins_with(pk, :p)"` + values), "KeyConditionExpression: a condition on the key attribute pk has the operator begins_with"},
		"other sort key":           {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p AND sk <> :p"` + values), "KeyConditionExpression: a condition on the key attribute sk has the operator <>"},
		"existing sort key":        {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p AND attribute_exists(sk)"` + values), "KeyConditionExpression: a condition on the key attribute sk has the operator attribute_exists"},
		"type of a key":            {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"N":"1"}}`), "KeyConditionExpression.pk: a key attribute has another type than S"},
		"empty value of a key":     {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":""}}`), "KeyConditionExpression.pk: a key attribute is empty"},
		"syntax of a condition":    {"dynamodb:Query", query(`"KeyConditionExpression":"pk = :p AND"` + values), `KeyConditionExpression: want a name, got ""`},
		"unknown index":            {"dynamodb:Query", query(`"IndexName":"byName","KeyConditionExpression":"pk = :p"` + values), "IndexName: the table has no index byName"},
		"consistent index":         {"dynamodb:Query", query(`"IndexName":"byDue","ConsistentRead":true,"KeyConditionExpression":"due = :p"` + values), "ConsistentRead: a global secondary index has no consistent reads"},
		"start without index keys": {"dynamodb:Scan", query(`"IndexName":"byDue","ExclusiveStartKey":` + item(`,"due":{"S":"d"}`)), "ExclusiveStartKey: the key attribute created is missing"},
		"start with attributes":    {"dynamodb:Scan", query(`"ExclusiveStartKey":` + item(`,"due":{"S":"d"}`)), "ExclusiveStartKey: due is not a key attribute"},
		"nothing selected":         {"dynamodb:Scan", query(`"Select":"SPECIFIC_ATTRIBUTES"`), "Select: SPECIFIC_ATTRIBUTES requires a projection"},
		"projection of no index":   {"dynamodb:Scan", query(`"Select":"ALL_PROJECTED_ATTRIBUTES"`), "Select: ALL_PROJECTED_ATTRIBUTES requires an index"},
		"segment of no scan":       {"dynamodb:Scan", query(`"Segment":0`), "Segment: a parallel scan has both"},
		"segment after the last":   {"dynamodb:Scan", query(`"Segment":4,"TotalSegments":4`), "Segment: 4 is not from 0 to 3"},
		"count of a projection":    {"dynamodb:Scan", query(`"Select":"COUNT","ProjectionExpression":"a"`), "Select: COUNT excludes a projection"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_transactionOrBatch_violatesOneRule(t *testing.T) {
	transact := func(items ...string) string { return `{"TransactItems":[` + strings.Join(items, ",") + `]}` }
	one := func(n, bytes int) string {
		return fmt.Sprintf(`{"Put":{"TableName":"hub","Item":{"pk":{"S":"p%02d"},"sk":{"S":"s"},"a":{"S":"%s"}}}}`, n, text(bytes))
	}
	large := make([]string, 11)
	for i := range large {
		large[i] = one(i, 390<<10)
	}
	batch := func(requests ...string) string {
		return `{"RequestItems":{"hub":[` + strings.Join(requests, ",") + `]}}`
	}
	write := func(n int) string {
		return fmt.Sprintf(`{"PutRequest":{"Item":{"pk":{"S":"p%d"},"sk":{"S":"s"}}}}`, n)
	}
	writes := make([]string, 26)
	keys := make([]string, 101)
	for i := range keys {
		keys[i] = fmt.Sprintf(`{"pk":{"S":"p%d"},"sk":{"S":"s"}}`, i)
	}
	for i := range writes {
		writes[i] = write(i)
	}
	const check = `{"ConditionCheck":{"TableName":"hub",` + key + `,"ConditionExpression":"attribute_exists(pk)"}}`
	for name, c := range map[string]rejected{
		"4 MB":               {"dynamodb:TransactWriteItems", transact(large...), "TransactItems: the items have 4393"},
		"large item":         {"dynamodb:TransactWriteItems", transact(one(1, 400<<10)), "TransactItems[0].Put.Item: the item has 409609 bytes"},
		"same item":          {"dynamodb:TransactWriteItems", transact(check, `{"Delete":{"TableName":"hub",`+key+`}}`), "TransactItems[1].Delete: another request has the same item"},
		"two actions":        {"dynamodb:TransactWriteItems", transact(`{"Put":{},"Delete":{}}`), "TransactItems[0]: the item has 2 actions, want 1"},
		"no action":          {"dynamodb:TransactWriteItems", transact(`{}`), "TransactItems[0]: the item has 0 actions, want 1"},
		"empty update":       {"dynamodb:TransactWriteItems", transact(`{"Update":{"TableName":"hub",` + key + `}}`), "TransactItems[0].Update: an update of a transaction has no expression"},
		"undefined value":    {"dynamodb:TransactWriteItems", transact(`{"Delete":{"TableName":"hub",` + key + `,"ConditionExpression":"a = :a"}}`), "TransactItems[0].Delete: the placeholder :a"},
		"read without key":   {"dynamodb:TransactGetItems", transact(`{"Get":{"TableName":"hub","Key":{"pk":{"S":"p"}}}}`), "TransactItems[0].Get.Key: the key attribute sk is missing"},
		"26 writes":          {"dynamodb:BatchWriteItem", batch(writes...), "RequestItems: the batch has 26 requests, want 1 to 25"},
		"no writes":          {"dynamodb:BatchWriteItem", batch(), "RequestItems: the batch has 0 requests"},
		"repeated write":     {"dynamodb:BatchWriteItem", batch(write(1), write(1)), "RequestItems.hub[1]: another request has the same item"},
		"write and deletion": {"dynamodb:BatchWriteItem", batch(`{"PutRequest":null,"DeleteRequest":{` + key + `}}`), "RequestItems.hub[0]: the request has 2 actions"},
		"101 reads":          {"dynamodb:BatchGetItem", `{"RequestItems":{"hub":{"Keys":[` + strings.Join(keys, ",") + `]}}}`, "RequestItems: the batch has 101 keys, want 1 to 100"},
		"repeated read":      {"dynamodb:BatchGetItem", `{"RequestItems":{"hub":{"Keys":[` + keys[0] + "," + keys[0] + `]}}}`, "RequestItems.hub.Keys[1]: another request has the same item"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_message_violatesOneRule(t *testing.T) {
	standard := func(more string) string { return `{"QueueUrl":"http://h/1/q","MessageBody":"b"` + more + `}` }
	fifo := func(more string) string { return `{"QueueUrl":"http://h/1/q.fifo","MessageBody":"b"` + more + `}` }
	attributes := func(all string) string { return standard(`,"MessageAttributes":{` + all + `}`) }
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf(`"a%d":{"DataType":"String","StringValue":"x"}`, i)
	}
	for name, c := range map[string]rejected{
		"1 MiB":                   {"sqs:SendMessage", `{"QueueUrl":"q","MessageBody":"` + text(1<<20+1) + `"}`, "MessageBody: the message has 1048577 bytes, want at most 1048576"},
		"1 MiB with attributes":   {"sqs:SendMessage", `{"QueueUrl":"q","MessageBody":"` + text(1<<20-10) + `","MessageAttributes":{"a":{"DataType":"String","StringValue":"1234"}}}`, "MessageBody: the message has 1048577 bytes"},
		"empty":                   {"sqs:SendMessage", `{"QueueUrl":"q","MessageBody":""}`, "MessageBody: the body is empty"},
		"control character":       {"sqs:SendMessage", `{"QueueUrl":"q","MessageBody":"a\u0001"}`, "MessageBody: the body has a character at byte 1"},
		"delay":                   {"sqs:SendMessage", standard(`,"DelaySeconds":901`), "DelaySeconds: 901 is not from 0 to 900"},
		"negative delay":          {"sqs:SendMessage", standard(`,"DelaySeconds":-1`), "DelaySeconds: -1 is not from 0 to 900"},
		"group with a space":      {"sqs:SendMessage", fifo(`,"MessageGroupId":"a b"`), `MessageGroupId: "a b" is not 1 to 128 characters`},
		"group of 129":            {"sqs:SendMessage", fifo(`,"MessageGroupId":"` + text(129) + `"`), "MessageGroupId: "},
		"no group":                {"sqs:SendMessage", fifo(""), "MessageGroupId: a message of a FIFO queue has no group"},
		"delay in a FIFO queue":   {"sqs:SendMessage", fifo(`,"MessageGroupId":"g","DelaySeconds":1`), "DelaySeconds: a message of a FIFO queue has a delay"},
		"deduplication":           {"sqs:SendMessage", standard(`,"MessageDeduplicationId":"d"`), "MessageDeduplicationId: a message of a standard queue"},
		"11 attributes":           {"sqs:SendMessage", attributes(strings.Join(many, ",")), "MessageAttributes: the message has 11 attributes, want at most 10"},
		"name of an attribute":    {"sqs:SendMessage", attributes(`"AWS.x":{"DataType":"String","StringValue":"x"}`), `MessageAttributes: "AWS.x" is not a name`},
		"name with a period":      {"sqs:SendMessage", attributes(`"a..b":{"DataType":"String","StringValue":"x"}`), `MessageAttributes: "a..b" is not a name`},
		"type of an attribute":    {"sqs:SendMessage", attributes(`"a":{"DataType":"Text","StringValue":"x"}`), `MessageAttributes.a: "Text" is not a type`},
		"value of an attribute":   {"sqs:SendMessage", attributes(`"a":{"DataType":"Binary","StringValue":"x"}`), "MessageAttributes.a: the value is empty"},
		"text for a number":       {"sqs:SendMessage", attributes(`"a":{"DataType":"Number","StringValue":"x"}`), `MessageAttributes.a: "x" is not a number`},
		"control in an attribute": {"sqs:SendMessage", attributes(`"a":{"DataType":"String","StringValue":"x\u0001"}`), "MessageAttributes.a: the value has a character at byte 1"},
		"long type":               {"sqs:SendMessage", attributes(`"a":{"DataType":"String.` + text(250) + `","StringValue":"x"}`), "MessageAttributes.a: the type has 257 bytes, want at most 256"},
		"no receipt to delete":    {"sqs:DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":""}`, "ReceiptHandle: the receipt handle is empty"},
		"no receipt":              {"sqs:ChangeMessageVisibility", `{"QueueUrl":"q","ReceiptHandle":"","VisibilityTimeout":1}`, "ReceiptHandle: the receipt handle is empty"},
		"visibility":              {"sqs:ChangeMessageVisibility", `{"QueueUrl":"q","ReceiptHandle":"r","VisibilityTimeout":43201}`, "VisibilityTimeout: 43201 is not from 0 to 43200"},
		"visibility of a receive": {"sqs:ReceiveMessage", `{"QueueUrl":"q","VisibilityTimeout":43201}`, "VisibilityTimeout: 43201 is not from 0 to 43200"},
		"11 messages":             {"sqs:ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":11}`, "MaxNumberOfMessages: 11 is not from 1 to 10"},
		"long wait":               {"sqs:ReceiveMessage", `{"QueueUrl":"q","WaitTimeSeconds":21}`, "WaitTimeSeconds: 21 is not from 0 to 20"},
		"receive attempt":         {"sqs:ReceiveMessage", `{"QueueUrl":"q","ReceiveRequestAttemptId":"a"}`, "ReceiveRequestAttemptId: the ID is for FIFO queues"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_batchOfMessages_violatesOneRule(t *testing.T) {
	batch := func(entries ...string) string {
		return `{"QueueUrl":"q","Entries":[` + strings.Join(entries, ",") + `]}`
	}
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf(`{"Id":"%d","MessageBody":"b","ReceiptHandle":"r","VisibilityTimeout":1}`, i)
	}
	for name, c := range map[string]rejected{
		"11 messages":    {"sqs:SendMessageBatch", batch(many...), "Entries: the batch has 11 entries, want 1 to 10"},
		"11 deletions":   {"sqs:DeleteMessageBatch", batch(many...), "Entries: the batch has 11 entries, want 1 to 10"},
		"11 changes":     {"sqs:ChangeMessageVisibilityBatch", batch(many...), "Entries: the batch has 11 entries, want 1 to 10"},
		"empty":          {"sqs:SendMessageBatch", batch(), "Entries: the batch has 0 entries, want 1 to 10"},
		"same ID":        {"sqs:DeleteMessageBatch", batch(many[1], many[1]), `Entries[1].Id: another entry has the ID "1"`},
		"invalid ID":     {"sqs:DeleteMessageBatch", batch(`{"Id":"a b","ReceiptHandle":"r"}`), `Entries[0].Id: "a b" is not 1 to 80`},
		"1 MiB together": {"sqs:SendMessageBatch", batch(`{"Id":"a","MessageBody":"`+text(600<<10)+`"}`, `{"Id":"b","MessageBody":"`+text(600<<10)+`"}`), "Entries: the messages have 1228800 bytes, want at most 1048576"},
		"delay":          {"sqs:SendMessageBatch", batch(`{"Id":"a","MessageBody":"b","DelaySeconds":901}`), "Entries[0].DelaySeconds: 901 is not from 0 to 900"},
		"no receipt":     {"sqs:DeleteMessageBatch", batch(`{"Id":"a","ReceiptHandle":""}`), "Entries[0].ReceiptHandle: the receipt handle is empty"},
		"no visibility":  {"sqs:ChangeMessageVisibilityBatch", batch(`{"Id":"a","ReceiptHandle":"r"}`), "Entries[0]: the entry has no visibility timeout"},
		"visibility":     {"sqs:ChangeMessageVisibilityBatch", batch(`{"Id":"a","ReceiptHandle":"r","VisibilityTimeout":50000}`), "Entries[0].VisibilityTimeout: 50000 is not from 0 to 43200"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_otherServices_violateOneRule(t *testing.T) {
	schedule := func(expression, window, target string) string {
		return `{"ScheduleExpression":"` + expression + `","FlexibleTimeWindow":{` + window + `},"Target":{` + target + `}}`
	}
	const at, off = "at(2026-01-02T03:04:05)", `"Mode":"OFF"`
	const queue = `"Arn":"arn:aws:sqs:us-east-1:1:q","Input":"x"`
	objects := make([]string, 1001)
	for i := range objects {
		objects[i] = `{"Key":"k"}`
	}
	for name, c := range map[string]rejected{
		"time with a zone":     {"scheduler:CreateSchedule", schedule("at(2026-01-02T03:04:05Z)", off, queue), "ScheduleExpression: "},
		"rate of zero":         {"scheduler:UpdateSchedule", schedule("rate(0 minutes)", off, queue), "ScheduleExpression: "},
		"window of a fixed":    {"scheduler:CreateSchedule", schedule(at, off+`,"MaximumWindowInMinutes":5`, queue), "FlexibleTimeWindow: "},
		"flexible without one": {"scheduler:CreateSchedule", schedule(at, `"Mode":"FLEXIBLE"`, queue), "FlexibleTimeWindow: "},
		"input of a schedule":  {"scheduler:CreateSchedule", schedule(at, off, `"Arn":"arn:aws:sqs:us-east-1:1:q","Input":"`+text(256<<10+1)+`"`), "Target.Input: the input has 262145 bytes"},
		"no input":             {"scheduler:CreateSchedule", schedule(at, off, `"Arn":"arn:aws:sqs:us-east-1:1:q"`), "Target.Input: a message of a queue has no body"},
		"FIFO without a group": {"scheduler:CreateSchedule", schedule(at, off, `"Arn":"arn:aws:sqs:us-east-1:1:q.fifo","Input":"x"`), "Target.SqsParameters: "},
		"group of a standard":  {"scheduler:CreateSchedule", schedule(at, off, queue+`,"SqsParameters":{"MessageGroupId":"g"}`), "Target.SqsParameters: "},
		"FIFO dead letters":    {"scheduler:CreateSchedule", schedule(at, off, queue+`,"DeadLetterConfig":{"Arn":"arn:aws:sqs:us-east-1:1:d.fifo"}`), "Target.DeadLetterConfig: "},
		"payload":              {"lambda:Invoke", `{"FunctionName":"f","Payload":6291457}`, "Payload: the payload has 6291457 bytes, want at most 6291456"},
		"asynchronous payload": {"lambda:Invoke", `{"FunctionName":"f","InvocationType":"Event","Payload":1048577}`, "Payload: the payload has 1048577 bytes, want at most 1048576"},
		"client context":       {"lambda:Invoke", `{"FunctionName":"f","ClientContext":"` + text(3584) + `"}`, "ClientContext: the context has 3584 bytes"},
		"parameter":            {"ssm:PutParameter", `{"Name":"n","Value":"` + text(4097) + `"}`, "Value: the parameter has 4097 bytes, want at most 4096"},
		"advanced parameter":   {"ssm:PutParameter", `{"Name":"n","Tier":"Advanced","Value":"` + text(8193) + `"}`, "Value: the parameter has 8193 bytes, want at most 8192"},
		"two days of cron":     {"scheduler:CreateSchedule", `{"ScheduleExpression":"cron(0 12 * * * *)","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"arn:aws:lambda:us-east-1:1:function:f"}}`, "ScheduleExpression: cron requires ?"},
		"no day of cron":       {"scheduler:CreateSchedule", `{"ScheduleExpression":"cron(0 12 ? * ? *)","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"arn:aws:lambda:us-east-1:1:function:f"}}`, "ScheduleExpression: cron requires ?"},
		"metadata":             {"s3:PutObject", `{"Bucket":"payloads","Key":"k","Metadata":{"a":"` + text(2048) + `"}}`, "Metadata: the metadata has 2049 bytes, want at most 2048"},
		"bucket of a head":     {"s3:HeadObject", `{"Bucket":"Payloads","Key":"k"}`, `Bucket: "Payloads" is not a name of a bucket`},
		"name of a bucket":     {"s3:GetObject", `{"Bucket":"Payloads","Key":"k"}`, `Bucket: "Payloads" is not a name of a bucket`},
		"address as a bucket":  {"s3:ListObjectsV2", `{"Bucket":"10.0.0.1"}`, `Bucket: "10.0.0.1" is not a name of a bucket`},
		"long key":             {"s3:PutObject", `{"Bucket":"payloads","Key":"` + text(1025) + `"}`, "Key: the key has 1025 bytes, want at most 1024"},
		"large object":         {"s3:PutObject", `{"Bucket":"payloads","Key":"k","Body":5368709121}`, "Body: the object has 5368709121 bytes"},
		"copy without a key":   {"s3:CopyObject", `{"Bucket":"payloads","Key":"k","CopySource":"/payloads"}`, "CopySource: "},
		"1,001 objects":        {"s3:DeleteObjects", `{"Bucket":"payloads","ChecksumSHA256":"x","Delete":{"Objects":[` + strings.Join(objects, ",") + `]}}`, "Delete.Objects: the request has 1001 objects"},
		"no checksum":          {"s3:DeleteObjects", `{"Bucket":"payloads","ChecksumAlgorithm":"SHA256","Delete":{"Objects":[{"Key":"k"}]}}`, "Delete: the request has no checksum"},
	} {
		t.Run(name, c.run)
	}
}

func TestCheck_requestAtTheLimits_isAccepted(t *testing.T) {
	const names, values = `,"ExpressionAttributeNames":`, `,"ExpressionAttributeValues":`
	batch := make([]string, 10)
	for i := range batch {
		batch[i] = fmt.Sprintf(`{"Id":"%d","MessageBody":"b","MessageGroupId":"g"}`, i)
	}
	for name, c := range map[string]struct{ operation, input string }{
		"item of 400 KB":      {"dynamodb:PutItem", put(`,"a":{"S":"` + text(400<<10-7) + `"}`)},
		"values":              {"dynamodb:PutItem", put(`,"n":{"N":"-1.50e125"},"z":{"N":"0"},"t":{"N":"1e-130"},"s":{"SS":["a","b"]},"e":{"S":""},"d":{"N":"` + strings.Repeat("1", 38) + `"},"ns":{"NS":["0","-1","+1","1.5"]}`)},
		"update":              {"dynamodb:UpdateItem", update("SET #a.b = :v, a.c = if_not_exists(a.c, :v), due = :v REMOVE d[1], d[0] ADD n :n", names+`{"#a":"a"}`+values+`{":v":{"S":"x"},":n":{"N":"1"}}`)},
		"keywords":            {"dynamodb:DeleteItem", `{"TableName":"hub",` + key + `,"ConditionExpression":"a Between :v AND :v and not size (b) in (:v) OR #status = :v"` + names + `{"#status":"status"}` + values + `{":v":{"N":"1"}}}`},
		"update of nothing":   {"dynamodb:UpdateItem", `{"TableName":"hub",` + key + `}`},
		"query of an index":   {"dynamodb:Query", `{"TableName":"hub","IndexName":"byDue","KeyConditionExpression":"#d = :d AND created BETWEEN :a AND :b","FilterExpression":"attribute_not_exists(x.sk)","ExclusiveStartKey":` + item(`,"due":{"S":"d"},"created":{"N":"1"}`) + names + `{"#d":"due"}` + values + `{":d":{"S":"d"},":a":{"N":"1"},":b":{"N":"2"}}}`},
		"unknown table":       {"dynamodb:GetItem", `{"TableName":"other","Key":{"id":{"S":"x"}}}`},
		"message of 1 MiB":    {"sqs:SendMessage", `{"QueueUrl":"q","DelaySeconds":900,"MessageGroupId":"tenant","MessageBody":"` + text(1<<20) + `"}`},
		"batch of 10":         {"sqs:SendMessageBatch", `{"QueueUrl":"q.fifo","Entries":[` + strings.Join(batch, ",") + `]}`},
		"zero delay":          {"sqs:SendMessage", `{"QueueUrl":"q.fifo","DelaySeconds":0,"MessageGroupId":"g","MessageDeduplicationId":"d","MessageBody":"\t"}`},
		"receive":             {"sqs:ReceiveMessage", `{"QueueUrl":"q.fifo","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":0,"ReceiveRequestAttemptId":"a"}`},
		"cron":                {"scheduler:CreateSchedule", `{"ScheduleExpression":"cron(0 12 ? * MON *)","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"arn:aws:lambda:us-east-1:1:function:f"}}`},
		"flexible schedule":   {"scheduler:CreateSchedule", `{"ScheduleExpression":"rate(1 hour)","FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":5},"Target":{"Arn":"arn:aws:lambda:us-east-1:1:function:f"}}`},
		"payload of 6 MiB":    {"lambda:Invoke", `{"FunctionName":"f","Payload":6291456}`},
		"copy":                {"s3:CopyObject", `{"Bucket":"payloads","Key":"k","CopySource":"/payloads/a/b"}`},
		"operation unchecked": {"dynamodb:ListTables", `{"Limit":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(t, c.operation, c.input); len(got) > 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}
