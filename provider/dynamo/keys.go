package dynamo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The names of attributes. pk and sk are the keys of the table; gs and created are those of the creation index.
const (
	attrPK = "pk"
	attrSK = "sk"

	indexByCreation = "byCreation"
	attrShard       = "gs"
	attrCreated     = "created"
	attrRequestedBy = "requestedBy" // the caller that started the instance
	attrPurgedBy    = "purgedBy"    // the caller that deletes it, or that deleted it if the item is a tombstone

	// The attention index contains instances that are blocked, paused or being deleted, or that were pending for too
	// long. It is empty if there are no such instances.
	indexByAttention = "byAttention"
	attrAttention    = "attention"
	// attentionBlocked marks a blocked instance; partitionOf distributes them.
	attentionBlocked = "blocked"
	// attentionPending marks a pending instance that the sweeper has found. Its attribute updated is the time of the
	// next check.
	attentionPending = "pending"
	// attentionPaused marks a paused instance (R25).
	attentionPaused = "paused"
	// attentionDeleting marks an instance whose deletion is not complete (R17).
	attentionDeleting = "deleting"

	// The due index contains the first due date of each instance for retention. It is separate from the attention
	// index, whose entries are written with each change of an instance, and whose attribute has only one value.
	indexByDue = "byDue"
	attrDue    = "due" // a day and a shard

	shards = 16 // an index only by status or day would have one hot partition
)

// The attributes of the instance item that more than one file uses.
const (
	attrStartID   = "startId"
	attrExecution = "execution"
	attrStatus    = "status"
	nameStatus    = "#status"
	attrUpdated   = "updated"
	attrStartAt   = "startAt"
	attrParent    = "parent"
	attrPast      = "past"     // the IDs of rejected starts (R10)
	attrPurgedAt  = "purgedAt" // the time when the previous incarnation was purged (R31)
	attrLives     = "lives"    // the IDs of starts whose instances were deleted, the latest last (R10)
	attrDiagnosis = "diagnosis"
	attrBlockedBy = "blockedBy" // the build
	attrPaused    = "paused"    // the requester, message and time of the pause
	attrRefused   = "refused"   // the number of starts in past
	nameRefused   = "#refused"
	// the time; the item is then a tombstone with the starts that must not succeed, and not an instance
	attrDeleted  = "deleted"
	attrTTL      = "ttl"
	attrDeleting = "deleting" // the time; the instance has ended and becomes a tombstone (R17)
	attrRetain   = "retain"   // seconds for which past executions are kept, if the instance continues as new
	attrOldest   = "oldest"   // the first execution that is not erased, if the instance has continued as new
	// the position of the search for oldest, if the instance continued as new in an earlier release
	attrSeeking  = "seeking"
	attrAnswered = "answered" // there are results of updates for the instance
	// the execution that a deletion has reached; without it, the outputs of the end must still be sent
	attrErasing = "erasing"
)

const (
	idPrefix   = "i#"
	skInstance = "i"
	skSegments = "h#"
	skRollups  = "g#" // and the number of its first segment: a copy of a run of small segments
	// A turn's decisions have its segment's number and sort before c, so that one query reads the decisions from a
	// segment on together with c.
	skDecided = "b#"
	skCancels = "c"  // all is cancelled, because the instance is deleted; in earlier releases, the whole record
	skBlocks  = "f#" // and the number of its last segment: a copy of the decisions of a block of turns

	skActivities = "a#" // and the ID: the activity record
	skRetries    = "r#" // and the ID: the attempt record of an activity that has failed before
	skCursors    = "o#" // and the number: the progress of sending a large segment
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func getString(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func getNumber(it item, name string) int64 {
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

// The names of keys in queries.
const (
	valuePK = ":pk"
	valueSK = ":sk"
)

func instanceKey(instanceID string) item {
	return item{attrPK: str(idPrefix + instanceID), attrSK: str(skInstance)}
}

func executionPK(executionID string) string { return "x#" + executionID }

// numberedSK returns a sort key for a number from 0 to lastSequence. The keys sort by number.
func numberedSK(prefix string, n int64) string {
	const zeros = "0000000000"
	digits := strconv.FormatInt(n, 10)
	return prefix + zeros[min(len(digits), len(zeros)):] + digits
}

// segmentSK returns the sort key of a segment's part. The first part has no suffix, because the commit's condition is
// on it (R7).
func segmentSK(sequence int64, part int) string {
	if part == 0 {
		return numberedSK(skSegments, sequence)
	}
	return fmt.Sprintf("%s#%03d", numberedSK(skSegments, sequence), part)
}

// parseSegmentSK is the inverse of segmentSK.
func parseSegmentSK(sk string) (sequence int64, part int, err error) {
	digits, suffix, more := strings.Cut(strings.TrimPrefix(sk, skSegments), "#")
	if sequence, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("sort key %q: %w", sk, err)
	}
	if !more {
		return sequence, 0, nil
	}
	if part, err = strconv.Atoi(suffix); err != nil {
		return 0, 0, fmt.Errorf("sort key %q: %w", sk, err)
	}
	return sequence, part, nil
}

// groupID returns the message group of an instance. It is a digest because SQS allows 128 ASCII characters, and an
// instance ID can have 1,024 bytes of UTF-8 (R1).
func groupID(instanceID string) string { return digest("group", instanceID) }

// fairGroup returns the message group of a fairness key, by which SQS's fair queues distinguish tenants.
func fairGroup(key string) string { return digest("fair", key) }

// exclusiveGroup returns the message group of an exclusive key.
func exclusiveGroup(key string) string { return digest("exclusive", key) }

// digest returns a name that is derived from parts. Equal parts result in equal names.
func digest(parts ...string) string {
	var room [512]byte
	all := room[:0]
	for _, p := range parts {
		all = append(strconv.AppendInt(all, int64(len(p)), 10), ':')
		all = append(all, p...)
	}
	sum := sha256.Sum256(all)
	return string(hex.AppendEncode(all[:0], sum[:20]))
}

func shardOf(instanceID string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instanceID)) // a hash never fails
	return strconv.Itoa(int(h.Sum32() % shards))
}
