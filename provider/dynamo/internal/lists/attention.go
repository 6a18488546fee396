package lists

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// entry is an entry of the attention index, and the number of its partition.
type entry struct {
	table.Item

	partition int
}

// mergePartitions merges the partitions of a kind after a cursor, the latest change first. next is the cursor of the
// rest of the list, or nil at the end. Entries with the same time are sorted by partition, and then in the order of the
// index.
func (ls *Lists) mergePartitions(
	ctx context.Context, kind string, limit int, c cursor,
) (named []table.Item, next *entry, err error) {
	partitions := instances.Partitions(kind)
	pages := make([][]table.Item, len(partitions))
	more := make([]bool, len(partitions))
	err = awscall.ForEach(len(partitions), func(i int) (err error) {
		in := ls.partitionQuery(partitions[i], i, c)
		in.Limit = aws.Int32(int32(limit))
		pages[i], err = ls.table.QueryPage(ctx, "", in)
		more[i] = in.ExclusiveStartKey != nil
		return err
	})
	if err != nil {
		return nil, nil, err
	}

	var all []entry
	for i, page := range pages {
		for _, it := range page {
			all = append(all, entry{it, i})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Compare(table.GetString(b.Item, table.AttrUpdated), table.GetString(a.Item, table.AttrUpdated))
	})
	hasMore := len(all) > limit || slices.Contains(more, true)
	all = all[:min(limit, len(all), completeEntries(all, pages, more, limit))]
	for _, a := range all {
		named = append(named, a.Item)
	}
	if hasMore && len(all) > 0 {
		next = &all[len(all)-1]
	}
	return named, next, nil
}

// completeEntries returns the number of entries without gaps, up to the last entry of a page that ended early. Pages of
// a query end at 1 MB.
func completeEntries(all []entry, pages [][]table.Item, more []bool, limit int) int {
	whole := len(all)
	for i, page := range pages {
		if !more[i] || len(page) >= limit {
			continue
		}
		last := 0
		for n := range all {
			if all[n].partition == i {
				last = n + 1
			}
		}
		whole = min(whole, last)
	}
	return whole
}

// partitionQuery returns a query of a partition after a cursor, the latest change first. For the exact time of the
// cursor, partitions with a lower number than the cursor's partition have been listed. Partitions with a higher number
// have not.
func (ls *Lists) partitionQuery(partition string, number int, c cursor) *dynamodb.QueryInput {
	in := instances.AttentionQuery(partition)
	in.ScanIndexForward = aws.Bool(false)
	if c.Key == "" {
		return in
	}
	if number == c.Partition {
		in.ExclusiveStartKey = instances.IndexPosition{Updated: c.Before, Key: c.Key}.StartKey(partition)
		return in
	}
	upTo := " AND updated <= :before"
	if number < c.Partition {
		upTo = " AND updated < :before"
	}
	in.KeyConditionExpression = aws.String(*in.KeyConditionExpression + upTo)
	in.ExpressionAttributeValues[":before"] = table.Str(c.Before)
	return in
}
