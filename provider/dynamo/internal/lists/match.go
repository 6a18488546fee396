package lists

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// pagesPerMatch is the maximum number of pages that one match reads, with filteredPage instances each.
const pagesPerMatch = 20

// MatchInstances reads the index by creation time, shard by shard, oldest first. Its cursor consists of a shard and the
// last key that was read.
func (ls *Lists) MatchInstances(
	ctx context.Context, f provider.Filter, from string, most int,
) (found []provider.Target, next string, err error) {
	shard, after, err := parseMatchCursor(from)
	if err != nil {
		return nil, "", err
	}
	for range pagesPerMatch {
		page, more, err := ls.matchPage(ctx, &f, shard, after)
		if err != nil {
			return nil, "", err
		}
		for _, it := range page {
			after = table.GetString(it, table.AttrCreated)
			if !selects(&f, it) {
				continue
			}
			if found = append(found, targetOf(it)); len(found) == most {
				return found, matchCursor(shard, after), nil
			}
		}
		if more {
			continue
		}

		if shard, after = shard+1, ""; shard == table.Shards {
			return found, "", nil
		}
	}
	return found, matchCursor(shard, after), nil
}

// matchPage reads the next page of a shard after a key.
func (ls *Lists) matchPage(
	ctx context.Context, f *provider.Filter, shard int, after string,
) (page []table.Item, more bool, err error) {
	// keys of instances that were started at a time sort after that time
	begin, end := table.FormatTime(f.StartedAfter), table.FormatTime(f.StartedBefore)
	if after != "" {
		begin = after + "!" // between the key and the next one, because all keys have the same length
	}
	if begin > end {
		return nil, false, nil // the range is empty, and DynamoDB rejects such a query
	}
	in := instances.ShardQuery(shard, begin, end)
	in.Limit = aws.Int32(filteredPage)
	page, err = ls.table.QueryPage(ctx, "", in)
	return page, in.ExclusiveStartKey != nil, err
}

// targetOf returns the target for an item. An unreadable instance is also a target, so that the error occurs when the
// job processes it, and concerns only this instance.
func targetOf(it table.Item) provider.Target {
	in, _ := instances.Decode(it)
	return provider.Target{InstanceID: in.InstanceID, CreatedAt: in.CreatedAt}
}

func matchCursor(shard int, after string) string { return strconv.Itoa(shard) + " " + after }

func parseMatchCursor(s string) (shard int, after string, err error) {
	if s == "" {
		return 0, "", nil
	}
	head, after, _ := strings.Cut(s, " ")
	if shard, err = strconv.Atoi(head); err != nil || shard < 0 || shard >= table.Shards {
		return 0, "", &provider.FieldError{Field: "from", Problem: "is not a cursor of MatchInstances"}
	}
	return shard, after, nil
}

// selects reports whether a filter selects an item of the index. The query has already applied the start times.
func selects(f *provider.Filter, it table.Item) bool {
	if f.Orchestration != "" && table.GetString(it, "name") != f.Orchestration ||
		len(f.Statuses) > 0 &&
			!slices.Contains(f.Statuses, provider.RuntimeStatus(table.GetString(it, table.AttrStatus))) ||
		f.Version != "" && table.GetString(it, "version") != f.Version ||
		f.ParentID != "" &&
			!strings.HasPrefix(table.GetString(it, table.AttrParent), instances.ParentPrefix(f.ParentID)) ||
		!f.UpdatedBefore.IsZero() && lastChange(it) >= table.FormatTime(f.UpdatedBefore) {
		return false
	}
	return instances.HasTags(it, f.Tags)
}

// lastChange returns the time of the last change of an instance. For a pending instance, this is the start, because the
// attribute updated is the time of the sweeper's next check.
func lastChange(it table.Item) string {
	if table.GetString(it, table.AttrStatus) != string(provider.StatusPending) {
		return table.GetString(it, table.AttrUpdated)
	}
	created, _, _ := strings.Cut(table.GetString(it, table.AttrCreated), "#")
	return created
}
