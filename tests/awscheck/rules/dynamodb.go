package rules

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Limits of requests to DynamoDB.
const (
	mostTransactionBytes = 4 << 20
	mostBatchWrites      = 25
	mostBatchReads       = 100
	mostBatchBytes       = 16 << 20
)

const (
	conditionExpression  = "ConditionExpression"
	projectionExpression = "ProjectionExpression"
	filterExpression     = "FilterExpression"
	keyExpression        = "KeyConditionExpression"
	tableName            = "TableName"
)

func tableOf(r *report, in fields) *Table {
	if r.tables == nil {
		return nil
	}
	return r.tables(text(in, tableName))
}

func putItem(r *report, in fields) {
	checkPut(r, "", in)
	checkReturns(r, in, "NONE", "ALL_OLD")
}

func updateItem(r *report, in fields) {
	checkUpdate(r, "", in)
}

func deleteItem(r *report, in fields) {
	checkKeyed(r, "", in, conditionExpression)
	checkReturns(r, in, "NONE", "ALL_OLD")
}

func getItem(r *report, in fields) { checkKeyed(r, "", in, projectionExpression) }

// checkReturns checks ReturnValues, whose model has the values of all operations.
func checkReturns(r *report, in fields, allowed ...string) {
	if value, ok := in["ReturnValues"].(string); ok && !slices.Contains(allowed, value) {
		r.addf("ReturnValues", "%s is not one of %v", value, allowed)
	}
}

// checkPut checks a put, and returns the size of its item.
func checkPut(r *report, path string, in fields) int {
	at, item := join(path, "Item"), object(in, "Item")
	size := checkItem(r, at, item)
	if size > mostItemBytes {
		r.addf(at, "the item has %d bytes, want at most %d", size, mostItemBytes)
	}
	checkExpressions(r, path, in, conditionExpression)
	if t := tableOf(r, in); t != nil {
		checkComplete(r, at, item, t.Keys)
		checkKeys(r, at, item, t.Keys)
		for _, index := range t.Indexes {
			checkKeys(r, at, item, index)
		}
	}
	return size
}

// checkComplete checks that an item has the key attributes.
func checkComplete(r *report, path string, item fields, k Keys) {
	for _, name := range []string{k.Partition, k.Sort} {
		if name != "" && item[name] == nil {
			r.addf(path, "the key attribute %s is missing", name)
		}
	}
}

// checkKey checks the key of an item, which has the key attributes alone, and returns its size.
func checkKey(r *report, path string, in fields) int {
	at, key := join(path, "Key"), object(in, "Key")
	size := checkItem(r, at, key)
	if t := tableOf(r, in); t != nil {
		checkComplete(r, at, key, t.Keys)
		checkKeys(r, at, key, t.Keys)
		for name := range key {
			if !t.has(name) {
				r.addf(at, "%s is not a key attribute", name)
			}
		}
	}
	return size
}

// checkKeyed checks a request with a key and an expression.
func checkKeyed(r *report, path string, in fields, expression string) int {
	size := checkKey(r, path, in)
	checkExpressions(r, path, in, expression)
	return size
}

// checkUpdate checks an update. It returns the size of the key and of the values that the update stores.
func checkUpdate(r *report, path string, in fields) int {
	size := checkKey(r, path, in)
	checkExpressions(r, path, in, updateExpression, conditionExpression)
	values := object(in, attributeValues)
	silent := report{} // checkExpressions has reported violations
	seen := map[string]bool{}
	for _, token := range tokens(text(in, updateExpression)) {
		if value, ok := values[token]; ok && !seen[token] {
			seen[token] = true
			size += checkValue(&silent, "", value, 1)
		}
	}
	if size > mostItemBytes {
		r.addf(path, "the update stores %d bytes, want at most %d", size, mostItemBytes)
	}
	if t := tableOf(r, in); t != nil {
		checkTargets(r, path, in, t)
	}
	return size
}

func transactWriteItems(r *report, in fields) {
	total, seen := 0, map[string]bool{}
	for i, item := range objects(in, "TransactItems") {
		path := fmt.Sprintf("TransactItems[%d]", i)
		if len(item) != 1 {
			r.addf(path, "the item has %d actions, want 1", len(item))
			continue
		}
		for action := range item {
			request, at := object(item, action), join(path, action)
			switch action {
			case "Put":
				total += checkPut(r, at, request)
			case "Update":
				if text(request, updateExpression) == "" {
					r.addf(at, "an update of a transaction has no expression")
				}
				total += checkUpdate(r, at, request)
			case "Delete", "ConditionCheck":
				total += checkKeyed(r, at, request, conditionExpression)
			}
			checkDistinct(r, at, request, seen)
		}
	}
	if total > mostTransactionBytes {
		r.addf("TransactItems", "the items have %d bytes, want at most %d", total, mostTransactionBytes)
	}
}

// checkDistinct checks that a transaction or batch has one request for each item.
func checkDistinct(r *report, path string, request fields, seen map[string]bool) {
	t := tableOf(r, request)
	if t == nil {
		return
	}
	item := object(request, "Key")
	if item == nil {
		item = object(request, "Item")
	}
	id := fmt.Sprint(text(request, tableName), "\x00", item[t.Partition], "\x00", item[t.Sort])
	if seen[id] {
		r.addf(path, "another request has the same item")
	}
	seen[id] = true
}

func transactGetItems(r *report, in fields) {
	for i, item := range objects(in, "TransactItems") {
		checkKeyed(r, fmt.Sprintf("TransactItems[%d].Get", i), object(item, "Get"), projectionExpression)
	}
}

func batchWriteItem(r *report, in fields) {
	count, total, seen := 0, 0, map[string]bool{}
	requests := object(in, "RequestItems")
	for table := range requests {
		for i, request := range objects(requests, table) {
			path := fmt.Sprintf("RequestItems.%s[%d]", table, i)
			count++
			if len(request) != 1 {
				r.addf(path, "the request has %d actions, want 1", len(request))
			}
			total += checkWrite(r, path, table, request, seen)
		}
	}
	if count < 1 || count > mostBatchWrites {
		r.addf("RequestItems", "the batch has %d requests, want 1 to %d", count, mostBatchWrites)
	}
	if total > mostBatchBytes {
		r.addf("RequestItems", "the batch has %d bytes, want at most %d", total, mostBatchBytes)
	}
}

// checkWrite checks a request of a batch, and returns the size of its item or key.
func checkWrite(r *report, path, table string, request fields, seen map[string]bool) (size int) {
	for action := range request {
		write := object(request, action)
		if write == nil {
			continue
		}
		write[tableName] = table
		if action == "PutRequest" {
			size += checkPut(r, join(path, action), write)
		} else {
			size += checkKey(r, join(path, action), write)
		}
		checkDistinct(r, path, write, seen)
	}
	return size
}

func batchGetItem(r *report, in fields) {
	count, seen := 0, map[string]bool{}
	requests := object(in, "RequestItems")
	for table := range requests {
		of := object(requests, table)
		checkExpressions(r, "RequestItems."+table, of, projectionExpression)
		for i, key := range objects(of, "Keys") {
			count++
			request := fields{tableName: table, "Key": key}
			path := fmt.Sprintf("RequestItems.%s.Keys[%d]", table, i)
			checkKey(r, path, request)
			checkDistinct(r, path, request, seen)
		}
	}
	if count < 1 || count > mostBatchReads {
		r.addf("RequestItems", "the batch has %d keys, want 1 to %d", count, mostBatchReads)
	}
}

func query(r *report, in fields) {
	checkExpressions(r, "", in, keyExpression, filterExpression, projectionExpression)
	if in[keyExpression] == nil && in["KeyConditions"] == nil {
		r.addf(keyExpression, "the query has no key condition")
	}
	keys, ok := queriedKeys(r, in)
	if !ok || in[keyExpression] == nil {
		return
	}
	checkKeyTerms(r, in, keys)
	used := attributes(in, keyExpression)
	if !slices.Contains(used, keys.Partition) {
		r.addf(keyExpression, "the condition lacks the partition key %s", keys.Partition)
	}
	for _, name := range used {
		if !keys.has(name) {
			r.addf(keyExpression, "%s is not a key attribute", name)
		}
	}
	for _, name := range attributes(in, filterExpression) {
		if keys.has(name) {
			r.addf(filterExpression, "the filter refers to the key attribute %s", name)
		}
	}
}

func scan(r *report, in fields) {
	checkExpressions(r, "", in, filterExpression, projectionExpression)
	queriedKeys(r, in)
	checkSegment(r, in)
}

// checkSegment checks the segment of a parallel scan.
func checkSegment(r *report, in fields) {
	total, ofTotal := in["TotalSegments"].(json.Number)
	_, ofSegment := in["Segment"].(json.Number)
	if ofTotal != ofSegment {
		r.addf("Segment", "a parallel scan has both Segment and TotalSegments")
		return
	}
	if n, err := total.Int64(); err == nil {
		r.within(in, "", "Segment", 0, n-1)
	}
}

// queriedKeys returns the keys of the table or the index that a request reads. It checks the parts of the request that
// depend on them.
func queriedKeys(r *report, in fields) (Keys, bool) {
	t := tableOf(r, in)
	if t == nil {
		return Keys{}, false
	}
	keys, start := t.Keys, []Keys{t.Keys}
	if name := text(in, "IndexName"); name != "" {
		index, ok := t.Indexes[name]
		if !ok {
			r.addf("IndexName", "the table has no index %s", name)
			return Keys{}, false
		}
		if in["ConsistentRead"] == true {
			r.addf("ConsistentRead", "a global secondary index has no consistent reads")
		}
		keys, start = index, append(start, index)
	}
	if from := object(in, "ExclusiveStartKey"); from != nil {
		for _, k := range start {
			checkComplete(r, "ExclusiveStartKey", from, k)
			checkKeys(r, "ExclusiveStartKey", from, k)
		}
		for name := range from {
			if !slices.ContainsFunc(start, func(k Keys) bool { return k.has(name) }) {
				r.addf("ExclusiveStartKey", "%s is not a key attribute", name)
			}
		}
	}
	checkSelect(r, in)
	return keys, true
}

// checkSelect checks which attributes a request selects.
func checkSelect(r *report, in fields) {
	if text(in, "Select") == "SPECIFIC_ATTRIBUTES" && in[projectionExpression] == nil && in["AttributesToGet"] == nil {
		r.addf("Select", "SPECIFIC_ATTRIBUTES requires a projection")
	}
	if text(in, "Select") == "ALL_PROJECTED_ATTRIBUTES" && text(in, "IndexName") == "" {
		r.addf("Select", "ALL_PROJECTED_ATTRIBUTES requires an index")
	}
	if s := text(in, "Select"); in[projectionExpression] != nil && s != "" && s != "SPECIFIC_ATTRIBUTES" {
		r.addf("Select", "%s excludes a projection", s)
	}
}
