package segments

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// A rollup is a compressed copy of a run of an execution's small segments in one item. A turn of a simple chain takes
// half a KB, and a twentieth of that in a rollup. A reader that reads a whole history and finds a long run of single
// segments writes a rollup for the next reader. Rollups are optional. The segments are not deleted, and take
// precedence.
const attrLast = "last" // the last segment of a rollup; its sort key contains the first one

const (
	// rollupLimit is the maximum size of the documents of a rollup. Their compressed size is always well below the 400
	// KB of an item (a DynamoDB quota).
	rollupLimit = 300 << 10
	// maxRollupWrites limits the writes of one read, because a partition supports a thousand write units per second (a
	// DynamoDB quota).
	maxRollupWrites = 4
	// rollupTimeout is the time that a read waits for its rollups to be written. pauseAfterFailure is the time for
	// which a process writes none after a failure, because the table may be throttling.
	rollupTimeout     = time.Second
	pauseAfterFailure = time.Minute
)

// rollup holds the consecutive small segments of a rollup.
type rollup struct {
	first, last int64 // first is 0 if the run is empty, because the first segment of an execution is in no rollup
	docs        []byte
}

// Add appends a segment and returns true. It returns false if the segment is not small, because it has several parts or
// is compressed itself.
func (r *rollup) Add(sequence int64, parts []table.Item) bool {
	doc, small := parts[0][table.AttrEvents].(*types.AttributeValueMemberS)
	if !small || len(parts) != 1 || r.first > 0 && sequence != r.last+1 || len(r.docs)+len(doc.Value) > rollupLimit {
		return false
	}
	if r.first == 0 {
		r.first = sequence
	}
	r.last = sequence
	for _, field := range []string{
		table.GetString(parts[0], table.AttrInbox), table.GetString(parts[0], table.AttrWM), doc.Value,
	} {
		r.docs = binary.AppendUvarint(r.docs, uint64(len(field)))
		r.docs = append(r.docs, field...)
	}
	return true
}

// Length returns the number of segments.
func (r *rollup) Length() int64 {
	if r.first == 0 {
		return 0
	}
	return r.last - r.first + 1
}

// Encode returns the rollup. worth is true if the rollup is much smaller than its segments, because a write unit costs
// as much as five read units, and a transaction writes twice.
func (r *rollup) Encode(executionID string) (it table.Item, worth bool) {
	packed := table.Compress(r.docs)
	it = table.ExecutionKey(executionID, table.RollupSK(r.first))
	it[attrLast] = table.Num(r.last)
	it[table.AttrZstd] = table.Bin(packed)
	return it, len(packed) <= len(r.docs)/4
}

func decodeRollup(it table.Item) (segments []provider.Segment, err error) {
	sk := table.GetString(it, table.AttrSK)
	var first int64
	if _, err := fmt.Sscanf(sk, table.SKRollups+"%d", &first); err != nil {
		return nil, fmt.Errorf("item %s: %w", sk, err)
	}
	packed := table.GetBytes(it, table.AttrZstd)
	if packed == nil {
		return nil, fmt.Errorf("item %s contains no segments", sk)
	}
	docs, err := table.Decompress(packed)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", sk, err)
	}
	for sequence := first; len(docs) > 0; sequence++ {
		var fields [3][]byte
		for i := range fields {
			n, size := binary.Uvarint(docs)
			if size <= 0 || n > uint64(len(docs)-size) {
				return nil, fmt.Errorf("item %s ends within segment %d", sk, sequence)
			}
			fields[i], docs = docs[size:size+int(n)], docs[size+int(n):]
		}
		s := provider.Segment{
			Sequence:  sequence,
			Watermark: provider.Position{Inbox: string(fields[0]), Sequence: string(fields[1])},
		}
		if s.Events, err = history.Decode(fields[2]); err != nil {
			return nil, fmt.Errorf("item %s: segment %d: %w", sk, sequence, err)
		}
		if len(s.Events) == 0 {
			return nil, fmt.Errorf("item %s: segment %d: %w", sk, sequence, errNoEvents)
		}
		segments = append(segments, s)
	}
	if last := first + int64(len(segments)) - 1; len(segments) == 0 || last != table.GetNumber(it, attrLast) {
		return nil, fmt.Errorf("item %s ends with segment %d instead of %d", sk, last, table.GetNumber(it, attrLast))
	}
	return segments, nil
}

// pause is the time until which a process pauses optional work. The zero value means no pause.
type pause struct{ until atomic.Int64 }

func (r *pause) active(now time.Time) bool { return now.UnixNano() < r.until.Load() }

func (r *pause) start(now time.Time) { r.until.Store(now.Add(pauseAfterFailure).UnixNano()) }

// writeRollups writes the rollups of runs. An existing rollup is not replaced, because its writer has read the same
// segments. Failures are logged as a warning if they are unexpected, and not returned, because the read itself has
// succeeded.
func (st *Store) writeRollups(ctx context.Context, instanceID, executionID string, runs []rollup) {
	if len(runs) == 0 || st.rollupPause.active(st.now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rollupTimeout)
	defer cancel()
	var writes []func() error
	for i := 0; i < len(runs) && len(writes) < maxRollupWrites; i++ {
		if it, worth := runs[i].Encode(executionID); worth || st.rollupAlways {
			writes = append(writes, func() error { return st.putRollup(ctx, executionID, it) })
		}
	}
	if err := awscall.Parallel(writes...); err != nil {
		st.rollupPause.start(st.now())
		st.log.WarnContext(ctx, "rollup write failed, histories are read turn by turn",
			"event", logevent.RollupWriteFailed, "instance", instanceID, "execution", executionID, "error", err)
	}
}

// putRollup writes a rollup if there is none and the execution is not deleted. A deletion marks the start before it
// removes rollups.
func (st *Store) putRollup(ctx context.Context, executionID string, it table.Item) error {
	err := st.table.TransactOnce(ctx, []types.TransactWriteItem{
		{Put: &types.Put{Item: it, ConditionExpression: aws.String(table.NotExists)}},
		{ConditionCheck: &types.ConditionCheck{
			Key:                 table.ExecutionKey(executionID, table.SegmentSK(0, 0)),
			ConditionExpression: aws.String("attribute_exists(pk) AND attribute_not_exists(" + table.AttrStub + ")"),
		}},
	})
	if table.ConditionFailed(err) {
		return nil
	}
	return err
}
