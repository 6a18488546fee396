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

// Attribute names. pk and sk are the table's key; gs and created are that of the index by creation.
const (
	attrPK = "pk"
	attrSK = "sk"

	indexByCreation = "byCreation"
	attrShard       = "gs"
	attrCreated     = "created"
	attrRequestedBy = "requestedBy" // who started the instance
	attrPurgedBy    = "purgedBy"    // who is having it deleted; in a tombstone, who had it deleted

	// The index by attention holds instances that are blocked, paused, being deleted, or were found pending for too long.
	// It is empty where all is well.
	indexByAttention = "byAttention"
	attrAttention    = "attention"
	// attentionBlocked marks a blocked instance; partitionOf distributes them.
	attentionBlocked = "blocked"
	// attentionPending marks a pending instance that the watch has noticed; its updated is when the watch looks at it
	// next.
	attentionPending = "pending"
	// attentionPaused marks an instance that somebody has paused (R25).
	attentionPaused = "paused"
	// attentionDeleting marks an instance whose deletion is not finished (R17).
	attentionDeleting = "deleting"

	// The index by due date holds what a retention deletes some day: of each instance, whatever is due first. It is
	// separate from the index by attention, whose entries are written with each change of an instance, and whose
	// attribute has only one value.
	indexByDue = "byDue"
	attrDue    = "due" // a day and a shard

	shards = 16 // an index by status or day alone would be one hot partition
)

// Attributes of the instance item that more than one file uses.
const (
	attrStartID   = "startId"
	attrExecution = "execution"
	attrStatus    = "status"
	nameStatus    = "#status"
	attrUpdated   = "updated"
	attrStartAt   = "startAt"
	attrParent    = "parent"
	attrPast      = "past"     // the ids of starts that were refused (R10)
	attrPurgedAt  = "purgedAt" // when the life before this one was purged (R31)
	attrLives     = "lives"    // the ids of starts whose instances are deleted, the latest last (R10)
	attrDiagnosis = "diagnosis"
	attrBlockedBy = "blockedBy" // the build
	attrPaused    = "paused"    // who has paused it, why and when
	attrRefused   = "refused"   // the number of starts in past
	nameRefused   = "#refused"
	attrDeleted   = "deleted" // when; an item with it is a tombstone, which holds what may not be started, and stands for no instance
	attrTTL       = "ttl"
	attrDeleting  = "deleting" // since when; an instance with it has ended, and is becoming a tombstone (R17)
	attrRetain    = "retain"   // how many seconds past executions are kept, of an instance that continues as new
	attrOldest    = "oldest"   // the first execution that is not erased, of an instance that has continued as new
	attrSeeking   = "seeking"  // how far back the search for oldest has come, of an instance that continued as new in an earlier release
	attrAnswered  = "answered" // there are answers to updates beside the instance
	attrErasing   = "erasing"  // the execution that a deletion has reached; while absent, the end is still to be sent
)

const (
	idPrefix   = "i#"
	skInstance = "i"
	skSegments = "h#"
	skRollups  = "g#" // and the number of its first segment: a run of small segments once more
	// A turn's decisions have its segment's number, and sort before c: one query therefore reads the decisions from a
	// segment on together with c.
	skDecided = "b#"
	skCancels = "c"  // everything is cancelled, since the instance is deleted; in earlier releases, the whole record
	skBlocks  = "f#" // and the number of its last segment: the decisions of a block of turns, once more

	skActivities = "a#" // and the id: what workers store of activities
	skRetries    = "r#" // and the id: the current attempt of an activity that has failed before
	skCursors    = "o#" // and the sequence: how far a large segment was sent
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

// numberedSK returns a sort key of a number from 0 to lastSequence, which sorts as the number does.
func numberedSK(prefix string, n int64) string {
	const zeros = "0000000000"
	digits := strconv.FormatInt(n, 10)
	return prefix + zeros[min(len(digits), len(zeros)):] + digits
}

// segmentSK returns the sort key of a segment's part. The first part has no suffix: the commit's condition is on it
// (R7).
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

// groupID returns the message group of an instance. It is a digest because SQS takes 128 characters of ASCII, and an
// instance id is up to 1,024 bytes of UTF-8 (R1).
func groupID(instanceID string) string { return digest("group", instanceID) }

// fairGroup returns the message group of a fairness key, by which SQS's fair queues tell tenants apart.
func fairGroup(key string) string { return digest("fair", key) }

// exclusiveGroup returns the message group of an exclusive key.
func exclusiveGroup(key string) string { return digest("exclusive", key) }

// digest makes a name from ids: the same ids give the same name.
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
