package table

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The keys and attributes of items that belong to the hub.
const (
	PKHub     = "hub"
	SKBuilds  = "b#"
	AttrBuild = "build"
	AttrFirst = "first"
)

// The attributes of a segment's items: a header in every first part, and the events as JSON (AttrEvents) or compressed
// (AttrZstd).
const (
	AttrNonce  = "nonce"
	AttrParts  = "parts"
	AttrInbox  = "inbox"
	AttrWM     = "wm"
	AttrEvents = "events"
	AttrZstd   = "zstd"

	// These attributes are in an execution's first segment: its instance, the previous execution, and the oldest
	// execution to whose documents it refers. That execution and later ones must not be erased before this execution.
	AttrInstance = "instance"
	AttrPrevious = "previous"
	AttrRefs     = "refs"
	// AttrNext is the next execution, in the stub of a past execution's start.
	AttrNext = "next"

	// AttrStub is the time when the segment was deleted. An item with it only occupies the key (R17).
	AttrStub = "stub"
)

// AttrTakenBy is the run of the reconciliation that wrote a dispatch record or a cursor. A dispatch has none.
const AttrTakenBy = "takenBy"

// ActivitySK returns a sort key that sorts by activity ID.
func ActivitySK(activityID int64) string { return NumberedSK(SKActivities, activityID) }

// CancelDecisionsSK and CancelBlockSK return sort keys that sort by segment.
func CancelDecisionsSK(sequence int64) string { return NumberedSK(SKCancelDecisions, sequence) }

// CancelBlockSK returns the sort key of a block of cancel decisions, by its last segment.
func CancelBlockSK(sequence int64) string { return NumberedSK(SKCancelBlocks, sequence) }

// CancelMarkPartSK returns the sort key of a part of a large cancel mark.
func CancelMarkPartSK(n int) string { return fmt.Sprintf("%s#%03d", SKCancelMark, n) }

// MaxSequence is the greatest segment number that a key can contain.
const MaxSequence = 9_999_999_999

// SequenceOf returns the segment in an item's key, or -1 if there is none.
func SequenceOf(it Item, prefix string) int64 {
	digits, _, _ := strings.Cut(strings.TrimPrefix(GetString(it, AttrSK), prefix), "#")
	sequence, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return sequence
}

// The names of attributes. pk and sk are the keys of the table. gs and created are the keys of the creation index.
const (
	AttrPK = "pk"
	AttrSK = "sk"

	IndexByCreation = "byCreation"
	AttrShard       = "gs"
	AttrCreated     = "created"
	AttrRequestedBy = "requestedBy" // the caller that started the instance
	AttrPurgedBy    = "purgedBy"    // the caller that deletes or has deleted the instance

	// The attention index contains instances that are blocked, paused or being deleted, or that were pending for too
	// long. It is empty if there are no such instances.
	IndexByAttention = "byAttention"
	AttrAttention    = "attention"
	// AttentionBlocked marks a blocked instance. instances.BlockedPartition distributes blocked instances.
	AttentionBlocked = "blocked"
	// AttentionPending marks a pending instance that the sweeper has found. Its attribute updated is the time of the
	// next check.
	AttentionPending = "pending"
	// AttentionPaused marks a paused instance (R25).
	AttentionPaused = "paused"
	// AttentionDeleting marks an instance whose deletion is not complete (R17). instances.DeletingPartition distributes
	// these instances.
	AttentionDeleting = "deleting"

	// The due index contains the first due date of each instance for retention. It is separate from the attention
	// index, which is written with each change of an instance, and in which an instance has only one entry.
	IndexByDue = "byDue"
	AttrDue    = "due" // a day and a shard

	Shards = 16 // an index only by status or day would have one hot partition
)

// The attributes of the instance item that more than one file uses.
const (
	AttrStartID        = "startId"
	AttrExecution      = "execution"
	AttrStatus         = "status"
	AttrUpdated        = "updated"
	AttrStartAt        = "startAt"
	AttrParent         = "parent"
	AttrRejectedStarts = "past"     // the IDs of rejected starts (R10)
	AttrPurgedAt       = "purgedAt" // the time when the previous incarnation was purged (R31)
	AttrDeletedStarts  = "lives"    // the IDs of starts whose instances were deleted, the latest last (R10)
	AttrDiagnosis      = "diagnosis"
	AttrBlockedBy      = "blockedBy" // the build
	AttrPaused         = "paused"    // the requester, message and time of the pause
	AttrRejectedCount  = "refused"   // the number of starts in past
	// the time; the item is then a tombstone with the starts that must not succeed, and not an instance
	AttrTombstone = "deleted"
	AttrTTL       = "ttl"
	AttrDeleting  = "deleting" // the time; the instance has ended and becomes a tombstone (R17)
	AttrRetain    = "retain"   // seconds for which past executions are kept, if the instance continues as new
	AttrOldest    = "oldest"   // the first execution that is not erased, if the instance has continued as new
	// the position of the search for oldest, if the instance continued as new in an earlier release
	AttrOldestSearch     = "seeking"
	AttrHasUpdateResults = "answered" // there are results of updates for the instance
	// the execution that a deletion has reached; without it, the outputs of the end must still be sent
	AttrErasing = "erasing"
)

// The prefixes of keys.
const (
	IDPrefix   = "i#"
	SKInstance = "i"
	SKSegments = "h#"
	SKRollups  = "g#" // and the number of its first segment: a copy of a run of small segments
	// SKCancelDecisions is followed by the number of a segment: the cancel decisions of a turn. They sort before
	// SKCancelMark, so that one query reads the decisions since a segment together with the mark.
	SKCancelDecisions = "b#"
	SKCancelMark      = "c"  // the mark of a deleted instance; the whole record in earlier releases
	SKCancelBlocks    = "f#" // and the number of its last segment: a copy of the decisions of a block of turns

	SKActivities = "a#" // and the ID: the activity record
	SKAttempts   = "r#" // and the ID: the attempt record of an activity that has failed before
	SKCursors    = "o#" // and the number: the progress of sending a large segment
)

// Item contains the attributes of an item, or of its key.
type Item = map[string]types.AttributeValue

// Str returns a string attribute.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute.
func Num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bin returns a binary attribute.
func Bin(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// GetBytes returns a binary attribute, or nil if there is none.
func GetBytes(it Item, name string) []byte {
	if v, ok := it[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// Names returns the aliases of attributes in expressions. An alias is # and the name. Aliases are required because
// DynamoDB reserves some names.
func Names(attributes ...string) map[string]string {
	names := make(map[string]string, len(attributes))
	for _, name := range attributes {
		names["#"+name] = name
	}
	return names
}

// GetString returns a string attribute, or an empty string if there is none.
func GetString(it Item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// GetNumber returns a number attribute, or 0 if there is none.
func GetNumber(it Item, name string) int64 {
	v, ok := it[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Key returns the key of an item.
func Key(pk, sk string) Item { return Item{AttrPK: Str(pk), AttrSK: Str(sk)} }

// KeyOf returns the key of an item that was read.
func KeyOf(it Item) Item { return Item{AttrPK: it[AttrPK], AttrSK: it[AttrSK]} }

// HubKey returns the key of an item that belongs to the hub.
func HubKey(sk string) Item { return Key(PKHub, sk) }

// InstanceKey returns the key of an instance.
func InstanceKey(instanceID string) Item { return Key(IDPrefix+instanceID, SKInstance) }

// InstanceIDOf returns the instance whose partition contains an item.
func InstanceIDOf(it Item) string {
	pk := GetString(it, AttrPK)
	return pk[min(len(IDPrefix), len(pk)):]
}

// ExecutionPK returns the partition key of the items of an execution.
func ExecutionPK(executionID string) string { return "x#" + executionID }

// ExecutionKey returns the key of an item of an execution.
func ExecutionKey(executionID, sk string) Item { return Key(ExecutionPK(executionID), sk) }

// NumberedSK returns a sort key for a number from 0 to MaxSequence. The keys sort by number.
func NumberedSK(prefix string, n int64) string {
	const zeros = "0000000000"
	digits := strconv.FormatInt(n, 10)
	return prefix + zeros[min(len(digits), len(zeros)):] + digits
}

// SegmentSK returns the sort key of a segment's part. The first part has no suffix, because the condition of the commit
// applies to it (R7).
func SegmentSK(sequence int64, part int) string {
	if part == 0 {
		return NumberedSK(SKSegments, sequence)
	}
	return fmt.Sprintf("%s#%03d", NumberedSK(SKSegments, sequence), part)
}

// ParseSegmentSK returns the segment and the part of a sort key that SegmentSK has returned.
func ParseSegmentSK(sk string) (sequence int64, part int, err error) {
	digits, suffix, more := strings.Cut(strings.TrimPrefix(sk, SKSegments), "#")
	if sequence, err = strconv.ParseInt(digits, 10, 64); err != nil || sequence < 0 {
		return 0, 0, fmt.Errorf("sort key %q has no segment: %w", sk, cmp.Or(err, strconv.ErrRange))
	}
	if !more {
		return sequence, 0, nil
	}
	if part, err = strconv.Atoi(suffix); err != nil || part < 0 {
		return 0, 0, fmt.Errorf("sort key %q has no part: %w", sk, cmp.Or(err, strconv.ErrRange))
	}
	return sequence, part, nil
}

// Digest returns a name that is derived from parts. Equal parts result in equal names.
func Digest(parts ...string) string {
	var room [512]byte
	all := room[:0]
	for _, p := range parts {
		all = append(strconv.AppendInt(all, int64(len(p)), 10), ':')
		all = append(all, p...)
	}
	sum := sha256.Sum256(all)
	return string(hex.AppendEncode(all[:0], sum[:20]))
}

// ShardOf returns the shard of an instance in the indexes.
func ShardOf(instanceID string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instanceID)) // a hash never fails
	return strconv.Itoa(int(h.Sum32() % Shards))
}

// AttemptSK returns a sort key that sorts by activity ID.
func AttemptSK(activityID int64) string { return NumberedSK(SKAttempts, activityID) }

// AttemptKey returns the key of an attempt record.
func AttemptKey(executionID string, activityID int64) Item {
	return ExecutionKey(executionID, AttemptSK(activityID))
}

// RollupSK returns the sort key of a rollup, by its first segment.
func RollupSK(first int64) string { return NumberedSK(SKRollups, first) }

// CursorSK returns the sort key of a segment's cursor.
func CursorSK(sequence int64) string { return NumberedSK(SKCursors, sequence) }

// TombstoneLifetime exceeds the maximum lifetime of a message: 14 days in its queue, and 14 days in the dead-letter
// queue (R17).
const TombstoneLifetime = 30 * 24 * time.Hour

// SKSweep is the prefix of the sort keys of the items that store the progress of the sweeper's repairs. The key without
// a suffix belongs to earlier releases, which had one position for all repairs.
const SKSweep = "watch"

// SweepPositionKey returns the key of the position of a sweeper's search.
func SweepPositionKey(name string) Item { return HubKey(SKSweep + "#" + name) }

// TimeFormat has a fixed width, so that texts sort by time.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime returns a time as text that sorts by time.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// DecodeTime returns a time of an instance, or zero if it has none.
func DecodeTime(it Item, name string) (at time.Time, err error) {
	if text := GetString(it, name); text != "" {
		at, err = time.Parse(TimeFormat, text)
	}
	if err != nil {
		err = fmt.Errorf("dynamo: item %q: %s: %w", GetString(it, AttrPK), name, err)
	}
	return at, err
}

// Unix returns a time as a TTL.
func Unix(t time.Time) types.AttributeValue { return Num(t.Unix()) }
