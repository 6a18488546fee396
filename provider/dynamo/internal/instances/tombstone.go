package instances

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// HolderOf returns the instance that has an ID. It returns a zero Instance for a tombstone and for an item that cannot
// be read. A read of the instance reports that error.
func HolderOf(it table.Item) provider.Instance {
	if IsTombstone(it) {
		return provider.Instance{}
	}
	in, err := Decode(it)
	if err != nil {
		return provider.Instance{}
	}
	return in
}

// IsDeleting reports whether the instance is being deleted.
func IsDeleting(it table.Item) bool {
	_, deleting := it[table.AttrDeleting]
	return deleting
}

// Tombstone returns the tombstone of an instance. It contains the starts that may never succeed, including the
// instance's own (R10), and the watermark (R3).
func (is *Store) Tombstone(it table.Item) table.Item {
	now := is.now()
	starts := append(DeletedStarts(it), table.Str(table.GetString(it, table.AttrStartID)))
	t := table.Item{
		table.AttrTombstone:      table.Str(table.FormatTime(now)),
		table.AttrTTL:            table.Unix(now.Add(table.TombstoneLifetime)),
		table.AttrRejectedCount:  table.Num(table.GetNumber(it, table.AttrRejectedCount)),
		table.AttrRejectedStarts: it[table.AttrRejectedStarts],
		table.AttrDeletedStarts:  &types.AttributeValueMemberL{Value: starts[max(0, len(starts)-MaxStoredStarts):]},
		table.AttrWM:             it[table.AttrWM],
		table.AttrInbox:          it[table.AttrInbox],
		table.AttrPK:             it[table.AttrPK],
		table.AttrSK:             it[table.AttrSK],
		table.AttrPurgedBy:       it[table.AttrPurgedBy],
	}
	maps.DeleteFunc(t, func(_ string, v types.AttributeValue) bool { return v == nil })
	return t
}

// WatermarkOf returns the watermark of an ended instance or a tombstone.
func WatermarkOf(it table.Item) provider.Position {
	return provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: table.GetString(it, table.AttrWM)}
}

// MaxStoredStarts is the maximum number of rejected starts of an instance, and of starts of deleted incarnations of an
// ID, because the size of an item is limited.
const MaxStoredStarts = 256

// IsTombstone reports whether the item is the tombstone of a deleted instance.
func IsTombstone(it table.Item) bool {
	_, deleted := it[table.AttrTombstone]
	return deleted
}

// MustNotStart reports whether a start was rejected, or created an incarnation of the ID that is deleted.
func MustNotStart(it table.Item, startID string) bool {
	if past, ok := it[table.AttrRejectedStarts].(*types.AttributeValueMemberSS); ok &&
		slices.Contains(past.Value, startID) {
		return true
	}
	return IsDeletedStart(it, startID)
}

// PurgedAt returns the time when the last incarnation of an ID was purged, according to its tombstone. Later rejections
// extend the lifetime of the tombstone.
func PurgedAt(tombstone table.Item) time.Time {
	if at, err := table.DecodeTime(tombstone, table.AttrTombstone); err == nil {
		return at
	}
	return time.Unix(table.GetNumber(tombstone, table.AttrTTL), 0).Add(-table.TombstoneLifetime)
}

// IsDeletedStart reports whether a start created an incarnation of the ID that is deleted.
func IsDeletedStart(it table.Item, startID string) bool {
	return slices.ContainsFunc(DeletedStarts(it), func(v types.AttributeValue) bool {
		life, ok := v.(*types.AttributeValueMemberS)
		return ok && life.Value == startID
	})
}

// DeletedStarts returns the starts of the deleted incarnations of an ID, the latest last.
func DeletedStarts(it table.Item) []types.AttributeValue {
	if starts, ok := it[table.AttrDeletedStarts].(*types.AttributeValueMemberL); ok {
		return slices.Clone(starts.Value)
	}
	return nil
}

// ReplaceTombstone makes an instance replace a tombstone, on condition that the tombstone has not changed or has
// expired. The instance item retains the starts that must not succeed, and the time when the previous incarnation was
// purged.
func ReplaceTombstone(put *types.Put, old table.Item) {
	refused := table.Num(table.GetNumber(old, table.AttrRejectedCount))
	put.Item[table.AttrRejectedCount] = refused
	for _, kept := range []string{table.AttrRejectedStarts, table.AttrDeletedStarts} {
		if old[kept] != nil {
			put.Item[kept] = old[kept]
		}
	}
	if len(DeletedStarts(old)) > 0 {
		put.Item[table.AttrPurgedAt] = table.Str(table.FormatTime(PurgedAt(old)))
	}
	put.ConditionExpression = aws.String(table.NotExists + " OR #deleted = :deleted AND #refused = :refused")
	put.ExpressionAttributeNames = table.Names(table.AttrTombstone, table.AttrRejectedCount)
	put.ExpressionAttributeValues = table.Item{":deleted": old[table.AttrTombstone], ":refused": refused}
}
