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

// Attribute names. pk and sk are the table's key; gs and created that of the index by creation.
const (
	attrPK = "pk"
	attrSK = "sk"

	indexByCreation = "byCreation"
	attrShard       = "gs"
	attrCreated     = "created"
	attrRequestedBy = "requestedBy" // who started the instance
	attrPurgedBy    = "purgedBy"    // who has it deleted; of a tombstone, who had

	// The index by attention holds what is blocked, being deleted, or was found pending for too long, and is empty where all is well.
	indexByAttention = "byAttention"
	attrAttention    = "attention"
	attentionBlocked = "blocked"
	// attentionPending marks a pending instance that the watch has noticed; its updated is when the watch looks at it next.
	attentionPending = "pending"
	// attentionDeleting marks an instance whose deletion is not finished (R17).
	attentionDeleting = "deleting"

	// The index by due date holds what a retention deletes some day: of an instance whatever is due first. It is apart from that by
	// attention, whose entries are written with each change of an instance, and whose attribute has but one value.
	indexByDue = "byDue"
	attrDue    = "due" // a day and a shard

	shards = 16 // an index by status or day alone would be one hot partition
)

// Attributes of the instance item that more than one file knows.
const (
	attrStartID   = "startId"
	attrExecution = "execution"
	attrStatus    = "status"
	nameStatus    = "#status"
	attrUpdated   = "updated"
	attrStartAt   = "startAt"
	attrParent    = "parent"
	attrPast      = "past"  // the ids of starts that were refused (R10)
	attrLives     = "lives" // the ids of starts whose instances are deleted, the latest last (R10)
	attrDiagnosis = "diagnosis"
	attrBlockedBy = "blockedBy" // the build
	attrRefused   = "refused"   // and how many there were
	nameRefused   = "#refused"
	attrDeleted   = "deleted" // when; an item with it is a tombstone: it says what may not be started, and that nothing is there
	attrTTL       = "ttl"
	attrDeleting  = "deleting" // since when; an instance with it is over, and on its way to a tombstone (R17)
	attrRetain    = "retain"   // for how many seconds past executions are kept, of an instance that continues as new
	attrOldest    = "oldest"   // the first execution that is not erased, of an instance that has continued as new
	attrSeeking   = "seeking"  // how far back the search for it has come, of one that did so in an earlier release
	attrErasing   = "erasing"  // the execution that a deletion has come to; until then its end is to be sent
)

const (
	idPrefix   = "i#"
	skInstance = "i"
	skSegments = "h#"
	// What a turn has cancelled lies under its segment's number, and sorts before c: so one query reads what was decided from a segment
	// on, and c with it.
	skDecided = "b#"
	skCancels = "c"  // all is cancelled, since the instance is deleted; in releases before this one, the whole record
	skBlocks  = "f#" // and the number of its last segment: what so many turns have cancelled, once more

	skActivities = "a#" // and the id: what workers leave of activities
	skRetries    = "r#" // and the id: which attempt an activity is at that has failed before
	skCursors    = "o#" // and the sequence: how far a large segment is sent
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

func instanceKey(instanceID string) item {
	return item{attrPK: str(idPrefix + instanceID), attrSK: str(skInstance)}
}

func executionPK(executionID string) string { return "x#" + executionID }

// segmentSK is the sort key of a segment's part. The first part has no suffix: it is what the commit's condition is on (R7).
func segmentSK(sequence int64, part int) string {
	if part == 0 {
		return fmt.Sprintf("h#%010d", sequence)
	}
	return fmt.Sprintf("h#%010d#%03d", sequence, part)
}

// parseSegmentSK is the reverse of segmentSK.
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

// groupID is the message group of an instance: SQS takes 128 characters of ASCII, an instance id is 1,024 bytes of UTF-8 (R1).
func groupID(instanceID string) string { return digest("group", instanceID) }

// digest is a name made of ids: the same ids, the same name.
func digest(parts ...string) string {
	var room [512]byte
	all := room[:0]
	for _, p := range parts {
		all = append(strconv.AppendInt(all, int64(len(p)), 10), ':')
		all = append(all, p...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:20])
}

func shardOf(instanceID string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instanceID)) // a hash never fails
	return strconv.Itoa(int(h.Sum32() % shards))
}
