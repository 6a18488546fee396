package simaws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// query is a validated Query.
type query struct {
	table      *Table
	index      *index // nil for the table
	consistent bool
	span       span
	filter     *condition
	scope      scope
	backward   bool
	limit      int
	start      *startKey
	projection []string // nil: all attributes
}

// startKey is the key at which the previous page ended.
type startKey struct{ sort, tie string }

// page is the result of a Query. Its items are the stored items, not copies.
type page struct {
	items   []item
	scanned int
	size    int
	last    *row // the last row, if the page stopped before the end
}

// Query reads items of one partition in the order of their sort keys, one page at a time. A page contains at most Limit
// items and at most 1 MB before filters and projections. Query simulates these selections of attributes:
// ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES, COUNT, and projections of whole attributes.
func (t *Table) Query(
	ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	return do(ctx, t.cloud, opQuery, in, func() (*dynamodb.QueryOutput, error) {
		q, err := t.newQuery(in)
		if err != nil {
			return nil, err
		}

		found, err := q.run()
		if err != nil {
			return nil, err
		}

		halves := halfReads(found.size, q.consistent)
		t.cloud.usage.halfReads.Add(halves)

		out := &dynamodb.QueryOutput{
			Count: int32(len(found.items)), ScannedCount: int32(found.scanned),
			LastEvaluatedKey: q.keyAt(found.last),
			ConsumedCapacity: t.reportRead(in.ReturnConsumedCapacity, halves, q.index),
		}
		if in.Select != ddbtypes.SelectCount {
			out.Items = q.copies(found.items)
		}

		return out, nil
	})
}

func (t *Table) newQuery(in *dynamodb.QueryInput) (*query, error) {
	if in.AttributesToGet != nil || in.KeyConditions != nil ||
		in.QueryFilter != nil || in.ConditionalOperator != "" || in.Select == ddbtypes.SelectSpecificAttributes {
		return nil, unsupported("a legacy projection or condition of Query")
	}

	t, err := t.named(in.TableName)
	if err != nil {
		return nil, err
	}

	q := &query{
		table: t, consistent: aws.ToBool(in.ConsistentRead),
		scope:    scope{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues},
		backward: in.ScanIndexForward != nil && !*in.ScanIndexForward,
	}

	if err := q.setLimit(in.Limit); err != nil {
		return nil, err
	}

	if err := q.setIndex(in.IndexName); err != nil {
		return nil, err
	}

	if err := q.setConditions(in); err != nil {
		return nil, err
	}

	return q, q.setStart(in.ExclusiveStartKey)
}

func (q *query) setLimit(limit *int32) error {
	if limit == nil {
		return nil
	}

	if *limit < 1 {
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: "+
			"Member must have value greater than or equal to 1", *limit)
	}

	q.limit = int(*limit)

	return nil
}

func (q *query) setIndex(name *string) error {
	if name == nil {
		return nil
	}

	if q.index = q.table.index(*name); q.index == nil {
		return invalid("The table does not have the specified index: %s", *name)
	}

	if q.consistent {
		return invalid("Consistent reads are not supported on global secondary indexes")
	}

	return nil
}

func (q *query) setConditions(in *dynamodb.QueryInput) error {
	condition, err := q.table.expressions.key(in.KeyConditionExpression)
	if err != nil {
		return err
	}

	if condition == nil {
		return invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}

	if q.filter, err = q.table.expressions.filter(in.FilterExpression); err != nil {
		return err
	}

	used := condition.used
	if q.projection, used, err = q.scope.project(in.ProjectionExpression, used); err != nil {
		return err
	}

	if err := q.scope.check(&used, q.filter.placeholders()); err != nil {
		return err
	}

	partitionKey, sortKey := q.keys()
	q.span, err = q.table.spanOf(condition, &q.scope, partitionKey, sortKey)

	return err
}

// keys returns the key attributes of the queried table or index.
func (q *query) keys() (partitionKey, sortKey string) {
	if q.index != nil {
		return q.index.PartitionKey, q.index.SortKey
	}

	return q.table.PartitionKey, q.table.SortKey
}

// setStart parses an ExclusiveStartKey: the whole key of an item and of its index entry.
func (q *query) setStart(start item) error {
	if start == nil {
		return nil
	}

	problem := invalid("The provided starting key is invalid")

	k, err := q.table.keyOf(start)
	if err != nil {
		return problem
	}

	if q.index == nil {
		if k.partition != q.span.partition {
			return problem
		}

		q.start = &startKey{sort: k.sort}

		return nil
	}

	at, ok := q.index.keyOf(start)
	if !ok || at.partition != q.span.partition {
		return problem
	}

	q.start = &startKey{at.sort, k.tie()}

	return nil
}

// run reads a page under the locks that its consistency requires.
func (q *query) run() (page, error) {
	t := q.table
	mask := t.shardOf(q.span.partition)

	t.lock(mask)

	if q.consistent || t.past.depth == 0 {
		defer t.unlock(mask)

		return q.live(mask)
	}

	t.unlock(mask)
	t.lock(everyShard)
	defer t.unlock(everyShard)

	if q.index != nil {
		return q.read(q.index.stale(q.span.partition))
	}

	return q.read(t.staleRows(q.span.partition))
}

func (q *query) live(mask uint64) (page, error) {
	if q.index == nil {
		return q.read(q.table.partition(q.span.partition, mask))
	}

	q.index.mu.Lock()
	defer q.index.mu.Unlock()

	return q.read(q.index.partitions[q.span.partition])
}

// read reads the rows of the span from one of its ends, or from the start key.
func (q *query) read(l *rows) (page, error) {
	out := page{}
	if l == nil {
		return out, nil
	}

	at, step := q.first(l), l.next
	if q.backward {
		step = l.previous
	}

	for r := l.at(at); r != nil && q.span.side(r.sort) == 0; r = l.at(at) {
		if out.size+r.size > maxPageSize && out.scanned > 0 {
			return out, nil
		}

		out.size += r.size
		out.scanned++
		out.last = r

		ok, err := q.selects(r.item)
		if err != nil {
			return out, err
		}

		if ok {
			out.items = append(out.items, r.item)
		}

		if out.scanned == q.limit {
			return out, nil
		}

		at = step(at)
	}

	out.last = nil

	return out, nil
}

// first returns the position of the first row.
func (q *query) first(l *rows) position {
	if q.backward {
		end := l.search(func(r *row) bool {
			return q.span.side(r.sort) > 0 || (q.start != nil && r.compare(q.start.sort, q.start.tie) >= 0)
		})

		return l.previous(end)
	}

	return l.search(func(r *row) bool {
		return q.span.side(r.sort) >= 0 && (q.start == nil || r.compare(q.start.sort, q.start.tie) > 0)
	})
}

func (q *query) selects(it item) (bool, error) {
	if q.filter == nil {
		return true, nil
	}

	s := q.scope
	s.item = it

	return q.filter.root.eval(&s)
}

// keyAt returns the LastEvaluatedKey for the last row of a page.
func (q *query) keyAt(r *row) item {
	if r == nil {
		return nil
	}

	partitionKey, sortKey := q.keys()
	out := item{}

	for _, name := range []string{partitionKey, sortKey, q.table.PartitionKey, q.table.SortKey} {
		if name != "" {
			out[name] = r.item[name]
		}
	}

	return out
}

func (q *query) copies(items []item) []item {
	out := make([]item, len(items))

	for i, it := range items {
		switch {
		case q.index != nil:
			out[i] = selected(q.index.project(it), q.projection)
		case q.projection != nil:
			out[i] = selected(it, q.projection)
		default:
			out[i] = clone(it)
		}
	}

	return out
}
