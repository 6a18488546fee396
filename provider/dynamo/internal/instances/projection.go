package instances

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Projection is the part of an instance that derives from its history up to a segment. It is empty if nothing changed.
type Projection struct {
	InstanceID, ExecutionID string
	Sequence                int64
	Event                   int64 // the first event ID of the segment
	Status                  provider.RuntimeStatus
	version                 string
	customStatus            history.Payload
	watermark               provider.Position
	blocked                 history.Blocked
	paused                  *history.Pause
	retention               time.Duration // the retention of an ended instance; 0 means forever
}

// Changed reports whether there are changes to write.
func (u *Projection) Changed() bool { return u.Status != "" }

// MinWakeInterval and MaxWakeInterval limit the time between two wakes of a pending instance, which doubles each time.
// Without these limits, each search would send a message for each pending instance of a hub with a backlog, which would
// increase the backlog.
const (
	MinWakeInterval = 2 * time.Minute
	MaxWakeInterval = time.Hour
)

// pending reports whether the instance has had no turn although its history has more than the start, for example
// because it was paused before its first turn. The sweeper may have passed the instance in the meantime, so the write
// adds it to the attention index.
func (u *Projection) pending() bool { return u.Status == provider.StatusPending }

// updated returns the time of the change to store. For a pending instance, this is the time of the sweeper's next
// check.
func (u *Projection) updated(now time.Time) time.Time {
	if u.pending() {
		return now.Add(MinWakeInterval)
	}
	return now
}

// Project writes a projection to the instance item, on condition that the execution is still the current one (R7) and
// that no later segment was projected. A slow process therefore does not overwrite a later status. If the condition
// fails, Project does nothing, because another process is ahead or deletes the instance.
func (is *Store) Project(ctx context.Context, u Projection) error {
	in := &dynamodb.UpdateItemInput{
		Key: table.InstanceKey(u.InstanceID),
		ConditionExpression: aws.String(
			"#execution = :execution AND (attribute_not_exists(#seq) OR #seq < :seq) " +
				"AND attribute_not_exists(deleting)",
		),
		ExpressionAttributeNames: map[string]string{"#execution": table.AttrExecution, "#seq": "seq"},
		ExpressionAttributeValues: table.Item{
			":updated":   table.Str(table.FormatTime(u.updated(is.now()))),
			":execution": table.Str(u.ExecutionID),
			":seq":       table.Num(u.Sequence),
		},
	}
	assignments := u.assignments(in.ExpressionAttributeNames, in.ExpressionAttributeValues, is.now())
	in.UpdateExpression = aws.String("SET updated = :updated, #seq = :seq" + assignments + u.removals())
	_, _, err := is.table.UpdateIf(ctx, u.InstanceID, in)
	return err
}

// secondExecution is the number of the execution after the first one.
const secondExecution = 2

// NextExecutionUpdate returns the update that makes the turn's next execution the current one, on condition that the
// turn's own execution is the current one (R7).
func (is *Store) NextExecutionUpdate(t *provider.Turn, u Projection) *types.Update {
	names := map[string]string{"#execution": table.AttrExecution, "#seq": "seq", "#number": "number"}
	values := table.Item{
		":at": table.Str(table.FormatTime(is.now())), ":execution": table.Str(t.Head.ExecutionID),
		":next": table.Str(t.Next.ExecutionID), ":number": table.Num(t.Next.Start.Number),
	}
	set := "SET updated = :at, #execution = :next, #number = :number" + u.assignments(names, values, is.now())
	remove := " REMOVE #seq, attention, blockedBy, diagnosis, paused"
	if t.Retention > 0 {
		set += ", due = if_not_exists(due, :due), retain = :retain"
		values[":retain"] = table.Num(int64(t.Retention / time.Second))
		values[":due"] = table.Str(DueKey(t.InstanceID, is.now().Add(PastRetention(t.Retention))))
	} else {
		remove += ", due, retain"
	}
	if t.Next.Start.Number == secondExecution {
		set += ", oldest = :execution"
	}
	set += remove
	return &types.Update{
		Key:                       table.InstanceKey(t.InstanceID),
		UpdateExpression:          &set,
		ConditionExpression:       aws.String("#execution = :execution"),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	}
}

// assignments returns the assignments of an update, and adds their names and values.
func (u *Projection) assignments(names map[string]string, values table.Item, now time.Time) (set string) {
	if u.Status != "" {
		set += ", #status = :status"
		names["#status"], values[":status"] = table.AttrStatus, table.Str(string(u.Status))
	}
	if u.version != "" && u.Status != "" {
		set += ", #version = :version"
		names["#version"], values[":version"] = "version", table.Str(u.version)
	}
	if u.Status.Terminal() {
		set += ", wm = :wm, inbox = :inbox" // for the next incarnation of the ID (R3)
		values[":wm"], values[":inbox"] = table.Str(u.watermark.Sequence), table.Str(u.watermark.Inbox)
		if u.retention > 0 {
			set += ", due = :due"
			values[":due"] = table.Str(DueKey(u.InstanceID, now.Add(u.retention)))
		}
	}
	if u.customStatus != nil {
		set += ", #customStatus = :customStatus"
		names["#customStatus"], values[":customStatus"] = "customStatus", table.Str(string(u.customStatus))
	}
	if u.blocked.Active {
		set += ", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis"
		why, _ := json.Marshal(diagnosisOf(&u.blocked)) //nolint:errchkjson // strings and numbers cannot fail
		values[":attention"] = table.Str(BlockedPartition(u.InstanceID))
		values[":blockedBy"], values[":diagnosis"] = table.Str(u.blocked.LastBuild), table.Str(string(why))
	}
	if u.paused != nil {
		set += ", attention = :attention, paused = :paused"
		who, _ := json.Marshal(u.paused) //nolint:errchkjson // strings and a time cannot fail
		values[":attention"], values[":paused"] = table.Str(table.AttentionPaused), table.Str(string(who))
	}
	if u.pending() {
		set += ", attention = :attention"
		values[":attention"] = table.Str(table.AttentionPending)
	}
	return set
}

// removals returns the part of the update that removes outdated attributes. These are the attention of an instance that
// is not blocked or paused, and the due date of its time before the end.
func (u *Projection) removals() string {
	const attention = " REMOVE attention, blockedBy, diagnosis, paused"
	switch {
	case u.Status == "":
		return ""
	case u.pending():
		return " REMOVE blockedBy, diagnosis, paused"
	case u.blocked.Active:
		return " REMOVE paused"
	case u.paused != nil:
		return " REMOVE blockedBy, diagnosis"
	case u.Status.Terminal() && u.retention == 0:
		return attention + ", due"
	default:
		return attention
	}
}

// maxDiagnosisBytes limits the message of a diagnosis. JSON can encode each byte in six, and an item has at most 400
// KB. If the item could not be written, the instance would not become Blocked and its messages would be redelivered.
// The history contains the whole message.
const maxDiagnosisBytes = 16 << 10

// diagnosisOf returns the diagnosis of a blocked instance, shortened for its item.
func diagnosisOf(b *history.Blocked) *history.Failure {
	why := b.Diagnosis
	if why == nil || len(why.Message) <= maxDiagnosisBytes {
		return why
	}
	cut := *why
	cut.Message = history.TruncateMessage(why.Message, maxDiagnosisBytes)
	return &cut
}

// AfterTurn returns the changes of the instance after a turn. They include all values from the history, including
// values that an earlier turn could not write. The commit of a turn that continues as new has already updated the
// instance.
func AfterTurn(t *provider.Turn, s provider.Segment) Projection {
	if t.Next != nil {
		return Projection{}
	}
	before, after := t.Summaries()
	if !after.StatusChanged(&before) && t.StatusWrite != provider.StatusWriteAlways {
		return Projection{}
	}
	u := Projection{
		InstanceID: t.InstanceID, ExecutionID: t.Head.ExecutionID, Sequence: s.Sequence, Event: s.Events[0].ID,
		watermark: s.Watermark, retention: t.Retention,
	}
	u.Set(&after)
	if t.StatusWrite == provider.StatusWriteDeferred && !u.Required() {
		return Projection{}
	}
	return u
}

// FromHistory returns the state of an instance after its whole history.
func FromHistory(o *provider.Orchestration) Projection {
	last := o.Segments[len(o.Segments)-1]
	u := Projection{
		InstanceID: o.InstanceID, ExecutionID: o.Head.ExecutionID, Sequence: last.Sequence, Event: last.Events[0].ID,
		watermark: last.Watermark, retention: o.Retention,
	}
	u.Set(&o.State(0).Summary)
	return u
}

// Set copies the displayed state from a summary.
func (u *Projection) Set(s *history.Summary) {
	u.Status = s.Status()
	u.customStatus = s.CustomStatus
	if u.paused = s.Paused; u.paused == nil { // a paused instance is woken in no build
		u.blocked = s.Blocked
	}
	if s.FirstTurnRun {
		u.version = s.Version
	}
}

// Required reports whether other operations depend on the status. A terminal status frees the ID after the outcome was
// sent to the parent (R9), and the sweeper finds instances by Blocked (R18). Any other status is only displayed.
func (u *Projection) Required() bool { return u.Status.Terminal() || u.blocked.Active }
