package dynamo

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// A faulty deployment can block thousands of instances at once, and a partition of an index supports 1,000 writes per
// second. Blocked instances are therefore distributed over as many partitions as the creation index has. Earlier
// releases stored all of them in the first partition, whatever their shard.

// partitionOf returns the partition of a blocked instance in the attention index.
func partitionOf(instanceID string) string {
	if shard := table.ShardOf(instanceID); shard != "0" {
		return table.AttentionBlocked + "#" + shard
	}
	return table.AttentionBlocked
}

// partitionsOf returns the partitions of a kind in the attention index.
func partitionsOf(kind string) []string {
	partitions := []string{kind}
	if kind == table.AttentionBlocked {
		for shard := 1; shard < table.Shards; shard++ {
			partitions = append(partitions, kind+"#"+strconv.Itoa(shard))
		}
	}
	return partitions
}

// attentive is an entry of the attention index, and the number of its partition.
type attentive struct {
	table.Item

	partition int
}

// newestAttentive merges the partitions of a kind after a cursor, the latest change first. next is the cursor of the
// rest of the list, or nil at the end. Entries with the same time are sorted by partition, and then as in the index.
func (p *Provider) newestAttentive(ctx context.Context, kind string, limit int, c cursor) (named []table.Item, next *attentive, err error) {
	partitions := partitionsOf(kind)
	pages := make([][]table.Item, len(partitions))
	more := make([]bool, len(partitions))
	reads := make([]func() error, len(partitions))
	for i, partition := range partitions {
		reads[i] = func() (err error) {
			in := p.latestOf(partition, i, c)
			in.Limit = aws.Int32(int32(limit))
			pages[i], err = p.table.QueryPage(ctx, "", in)
			more[i] = in.ExclusiveStartKey != nil
			return err
		}
	}
	if err := awscall.Parallel(reads...); err != nil {
		return nil, nil, err
	}

	var all []attentive
	for i, page := range pages {
		for _, it := range page {
			all = append(all, attentive{it, i})
		}
	}
	slices.SortStableFunc(all, func(a, b attentive) int {
		return cmp.Compare(table.GetString(b.Item, table.AttrUpdated), table.GetString(a.Item, table.AttrUpdated))
	})
	goesOn := len(all) > limit || slices.Contains(more, true)
	all = all[:min(limit, len(all), wholeUpTo(all, pages, more, limit))]
	for _, a := range all {
		named = append(named, a.Item)
	}
	if goesOn && len(all) > 0 {
		next = &all[len(all)-1]
	}
	return named, next, nil
}

// wholeUpTo returns the number of entries without gaps: up to the last entry of a page that ended early, as pages of a
// query do at 1 MB.
func wholeUpTo(all []attentive, pages [][]table.Item, more []bool, limit int) int {
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

// latestOf returns a query of a partition after a cursor, the latest change first. For the time of the cursor itself,
// the partitions before that of the cursor were listed, and those after it were not.
func (p *Provider) latestOf(partition string, number int, c cursor) *dynamodb.QueryInput {
	in := p.attentionQuery(partition)
	in.ScanIndexForward = aws.Bool(false)
	if c.Key == "" {
		return in
	}
	if number == c.Partition {
		in.ExclusiveStartKey = place{Updated: c.Before, Key: c.Key}.after(partition)
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
