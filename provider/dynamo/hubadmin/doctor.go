package hubadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// DescribeAPI is the part of DynamoDB that Examine calls. *dynamodb.Client implements it.
type DescribeAPI interface {
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	DescribeContinuousBackups(ctx context.Context, in *dynamodb.DescribeContinuousBackupsInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
}

// Finding is something that is wrong with a hub, or that could not be read.
type Finding struct {
	// Unread: it is not known whether anything is wrong. What is then the error.
	Unread bool `json:"unread,omitempty"`
	// Of is the part of the hub: "table", "queue inbox".
	Of string `json:"of"`
	// What is wrong; what it LeadsTo; what to Do.
	What    string `json:"what"`
	LeadsTo string `json:"leadsTo,omitempty"`
	Do      string `json:"do"`
}

const (
	// leastRetention is how long the queues of the stack keep messages (R19).
	leastRetention = 14 * 24 * time.Hour
	// leastReceives is how often a queue must deliver a message: poison is found by marks, long before (R13).
	leastReceives = 50
	// leastMessageBytes is how large a message is that perdure sends at most: what SQS takes. Queues that were made before
	// August 2025 take 256 KiB until they are set otherwise.
	leastMessageBytes = 1 << 20
	// mostSkew is how far a clock may be off: timers and retries are reckoned with two seconds (R15).
	mostSkew = 2 * time.Second
	// ttlAttribute is the table's.
	ttlAttribute = "ttl"
	// redeploy is what mends most.
	redeploy = "deploy the stack again; if the resource is not of this stack, correct it"
)

// indexes are those of the table.
var indexes = []string{"byAttention", "byCreation", "byDue"}

// examination collects findings.
type examination struct {
	*Hub
	findings []Finding
	// tableARN, and of each queue its ARN and the visibility of its messages, as far as they could be read.
	tableARN   string
	arns       map[string]string
	visibility map[string]time.Duration
}

func (x *examination) wrong(of, what, leadsTo, do string) {
	x.findings = append(x.findings, Finding{Of: of, What: what, LeadsTo: leadsTo, Do: do})
}

func (x *examination) unread(of string, err error) {
	x.findings = append(x.findings, Finding{Unread: true, Of: of, What: err.Error(), Do: "examine it with a role that may read it"})
}

// Examine looks whether the hub is deployed right, and returns what is not, or could not be read. It changes nothing. What
// the caller may not read does not keep it from the rest.
func (h *Hub) Examine(ctx context.Context) []Finding {
	x := &examination{Hub: h, arns: map[string]string{}, visibility: map[string]time.Duration{}}
	x.table(ctx)
	x.backups(ctx)
	queues := h.queues()
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		x.queue(ctx, name, queues[name])
	}
	x.deadLetters(ctx)
	mappings := x.mappings(ctx)
	x.functions(ctx, mappings)
	x.concurrency(ctx, mappings)
	x.schedules(ctx)
	x.payloads(ctx)
	x.workers(ctx)
	x.builds(ctx)
	x.clock(ctx)
	return x.findings
}

func (x *examination) table(ctx context.Context) {
	const of = "table"
	out, err := x.Describe.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &x.Where.Table})
	if err != nil {
		x.unread(of, err)
		return
	}
	x.tableARN = aws.ToString(out.Table.TableArn)
	keys := map[types.KeyType]string{}
	for _, k := range out.Table.KeySchema {
		keys[k.KeyType] = *k.AttributeName
	}
	if keys[types.KeyTypeHash] != "pk" || keys[types.KeyTypeRange] != "sk" {
		x.wrong(of, fmt.Sprintf("its key is %q and %q, and not pk and sk", keys[types.KeyTypeHash], keys[types.KeyTypeRange]), "nothing works", redeploy)
	}
	there := map[string]bool{}
	for _, ix := range out.Table.GlobalSecondaryIndexes {
		there[*ix.IndexName] = ix.IndexStatus == types.IndexStatusActive || ix.IndexStatus == "" // as the local cloud says
	}
	for _, name := range indexes {
		if !there[name] {
			x.wrong(of, "the index "+name+" is missing, or not active", "lists, the watch, retention and reconcile do not find instances", redeploy+"; restore tables with all their indexes")
		}
	}
}

func (x *examination) backups(ctx context.Context) {
	const of = "table"
	ttl, err := x.Describe.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &x.Where.Table})
	switch {
	case err != nil:
		x.unread(of, err)
	case ttl.TimeToLiveDescription == nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *ttl.TimeToLiveDescription.AttributeName != ttlAttribute:
		x.wrong(of, "items do not expire by the attribute "+ttlAttribute, "what deletions and deaths leave behind stays, and costs", "turn TTL on: a restored table has none")
	}
	backups, err := x.Describe.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &x.Where.Table})
	if err != nil {
		x.unread(of, err)
		return
	}
	d := backups.ContinuousBackupsDescription
	if d == nil || d.PointInTimeRecoveryDescription == nil || d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		x.wrong(of, "point-in-time recovery is off", "what is lost of the table is lost for good", "turn it on: a restored table has none")
	}
}

func (x *examination) queue(ctx context.Context, name, url string) {
	of := "queue " + name
	attributes, err := x.attributes(ctx, url, sqstypes.QueueAttributeNameAll)
	if err != nil {
		x.unread(of, err)
		return
	}
	x.arns[name] = attributes["QueueArn"]
	if seconds, err := strconv.Atoi(attributes["VisibilityTimeout"]); err == nil {
		x.visibility[name] = time.Duration(seconds) * time.Second
	}
	_, exclusive := history.OfExclusiveQueue(name)
	if fifo := attributes["FifoQueue"] == "true"; fifo != (exclusive || name == provider.QueueInbox) {
		x.wrong(of, "it is of the wrong kind: the inbox, and what is for exclusive keys, is a FIFO queue, and no other is",
			"turns of an instance, or activities of a key, run side by side, or work waits for other work", redeploy)
	}
	if seconds, err := strconv.Atoi(attributes["MessageRetentionPeriod"]); err == nil && time.Duration(seconds)*time.Second < leastRetention {
		x.wrong(of, fmt.Sprintf("it keeps messages for %v", time.Duration(seconds)*time.Second), "an outage of that length loses work", redeploy)
	}
	x.messageSize(of, attributes)

	var redrive struct {
		MaxReceiveCount json.Number `json:"maxReceiveCount"`
	}
	_ = json.Unmarshal([]byte(attributes["RedrivePolicy"]), &redrive) // none is an empty text
	switch most, err := redrive.MaxReceiveCount.Int64(); {
	case err != nil:
		x.wrong(of, "it has no dead letters", "a message that is delivered in vain blocks its instance until it expires, and is lost then", redeploy)
	case most < leastReceives:
		x.wrong(of, fmt.Sprintf("it gives up a message after %d deliveries", most), "an outage makes dead letters of what is healthy", redeploy)
	}
}

func (x *examination) messageSize(of string, attributes map[string]string) {
	const name = string(sqstypes.QueueAttributeNameMaximumMessageSize)
	if most, err := strconv.Atoi(attributes[name]); err == nil && most < leastMessageBytes {
		x.wrong(of, fmt.Sprintf("it takes messages of at most %d bytes", most), "larger inputs, results and events are not delivered",
			fmt.Sprintf("set %s to %d, or %s", name, leastMessageBytes, redeploy))
	}
}

func (x *examination) deadLetters(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(x.Where.DeadLetters)) {
		of := "dead letters of " + name
		attributes, err := x.attributes(ctx, x.Where.DeadLetters[name], sqstypes.QueueAttributeNameApproximateNumberOfMessages,
			sqstypes.QueueAttributeNameMaximumMessageSize)
		if err != nil {
			x.unread(of, err)
			continue
		}
		x.messageSize(of, attributes)
		if n := attributes["ApproximateNumberOfMessages"]; n != "0" {
			x.wrong(of, "there are about "+n, "they are deleted after 14 days, and some are the only copy", "perdure dead list --queue "+name)
		}
	}
}

// mappings returns what it has looked at.
func (x *examination) mappings(ctx context.Context) []Mapping {
	all, err := x.Mappings(ctx)
	if err != nil {
		x.unread("mappings", err)
		return nil
	}
	written, err := x.readPaused(ctx)
	by := whoDisabled{written: written.uuids, unread: err != nil}
	if err != nil {
		x.unread("what is paused", err)
	} else {
		x.pauses(&written, all)
	}
	mapped := map[string]bool{}
	for i := range all {
		m := &all[i]
		if m.Queue != "" {
			mapped[m.Queue] = true
		}
		if m.State != stateEnabled {
			x.disabled(m, by)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.queues())) {
		if !mapped[name] {
			x.wrong("queue "+name, "no function is mapped to it", "its messages wait, unless processes poll it", redeploy)
		}
	}
	return all
}

// whoDisabled is what is known of who has disabled a mapping.
type whoDisabled struct {
	written map[string]bool
	unread  bool
}

// disabled says what it leads to that a mapping, or the watch's rule, is not enabled.
func (x *examination) disabled(m *Mapping, by whoDisabled) {
	of, leadsTo, all := fmt.Sprintf("mapping of queue %s: %s to %s", m.Queue, m.UUID, m.Function), "messages wait, for 14 days at most", x.resume()+" --all, unless processes poll the queue"
	if m.Queue == "" {
		of, leadsTo, all = "the watch's "+m.UUID, "nothing that is stuck is picked up, nothing is purged by its retention, jobs do not go on", x.resume()+" --all"
	}
	switch {
	case by.unread:
		x.wrong(of, fmt.Sprintf("it is %s, and whether perdure pause has done that could not be read", m.State), leadsTo, x.resume()+", or, if it was somebody else, "+all)
	case by.written[m.UUID]:
		x.wrong(of, "it is paused by perdure pause, and "+m.State, leadsTo, x.resume())
	default:
		x.wrong(of, fmt.Sprintf("it is %s, and was not paused by perdure pause", m.State), leadsTo, all)
	}
}

// clock compares the clock of this machine with that of AWS.
func (x *examination) clock(ctx context.Context) {
	before := x.Now()
	server, err := x.ServerTime(ctx)
	if err == nil && server.IsZero() {
		err = errors.New("the answer had no date")
	}
	if err != nil {
		x.unread("clock", err)
		return
	}
	if skew := max(before.Sub(server), server.Sub(x.Now())) - time.Second; skew > mostSkew { // a date has no parts of a second
		x.wrong("clock", fmt.Sprintf("this machine's differs from that of AWS by %v", skew.Round(time.Second)), "where a process of the hub runs here: timers early or late, and retention", "set the clock by NTP")
	}
}
