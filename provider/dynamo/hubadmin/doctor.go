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

// DescribeAPI contains the DynamoDB operations that Check calls. *dynamodb.Client implements it.
type DescribeAPI interface {
	DescribeTable(
		ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(
		ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTimeToLiveOutput, error)
	DescribeContinuousBackups(
		ctx context.Context, in *dynamodb.DescribeContinuousBackupsInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DescribeContinuousBackupsOutput, error)
}

// Finding is a problem of a hub, or a resource that could not be read.
type Finding struct {
	// Unverified is true if the resource could not be read. Problem is then the error, and Impact is empty.
	Unverified bool `json:"unread,omitempty"`
	// Resource is the resource, such as "table" or "queue inbox".
	Resource string `json:"of"`
	// Problem is the problem.
	Problem string `json:"what"`
	// Impact is the impact of the problem.
	Impact string `json:"leadsTo,omitempty"`
	// Fix is the fix.
	Fix string `json:"do"`
}

const (
	// leastRetention is the minimum message retention of a queue (R19).
	leastRetention = 14 * 24 * time.Hour
	// leastReceives is the minimum maxReceiveCount of a queue. Crash markers detect poison messages much earlier (R13).
	leastReceives = 50
	// leastMessageBytes is the minimum MaximumMessageSize of a queue. Queues that were created before August 2025
	// have 256 KiB by default.
	leastMessageBytes = 1 << 20
	// mostSkew is the maximum clock skew. Timers and retries allow for two seconds (R15).
	mostSkew = 2 * time.Second
	// ttlAttribute is the TTL attribute of the table.
	ttlAttribute = "ttl"
	// redeploy is the fix of most problems. orRedeploy is the alternative to a more specific fix.
	redeploy   = "deploy the stack again, or correct the resource if it does not belong to the stack"
	orRedeploy = ", or deploy the stack again"
)

// indexes are the names of the table's indexes.
var indexes = []string{"byAttention", "byCreation", "byDue"}

// examination collects findings.
type examination struct {
	*Admin
	findings []Finding
	// The ARN of the table, and the ARNs and visibility timeouts of the queues by name. Values that could not be
	// read are missing.
	tableARN   string
	arns       map[string]string
	visibility map[string]time.Duration
}

func (x *examination) report(resource, problem, impact, fix string) {
	x.findings = append(x.findings, Finding{Resource: resource, Problem: problem, Impact: impact, Fix: fix})
}

func (x *examination) reportUnread(resource string, err error) {
	const fix = "repeat with a role that has permission to read it"
	x.findings = append(x.findings, Finding{Unverified: true, Resource: resource, Problem: err.Error(), Fix: fix})
}

// Check checks the hub's deployment and returns its problems and the resources that could not be read. It changes
// nothing. It continues if a resource cannot be read. Checks whose client in Admin is nil are skipped.
func (h *Admin) Check(ctx context.Context) []Finding {
	x := &examination{Admin: h, arns: map[string]string{}, visibility: map[string]time.Duration{}}
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
	out, err := x.Describe.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &x.Config.Table})
	if err != nil {
		x.reportUnread(of, err)
		return
	}
	x.tableARN = aws.ToString(out.Table.TableArn)
	keys := map[types.KeyType]string{}
	for _, k := range out.Table.KeySchema {
		keys[k.KeyType] = *k.AttributeName
	}
	if keys[types.KeyTypeHash] != "pk" || keys[types.KeyTypeRange] != "sk" {
		x.report(of, fmt.Sprintf("the key is %q and %q instead of \"pk\" and \"sk\"",
			keys[types.KeyTypeHash], keys[types.KeyTypeRange]), "the hub does not work", redeploy)
	}
	there := map[string]bool{}
	for _, ix := range out.Table.GlobalSecondaryIndexes {
		// The local emulator returns no status.
		there[*ix.IndexName] = ix.IndexStatus == types.IndexStatusActive || ix.IndexStatus == ""
	}
	for _, name := range indexes {
		if !there[name] {
			x.report(of, "the index "+name+" is missing or not active",
				"lists, the sweeper, retention and reconcile do not find instances",
				redeploy+". Restore a table with all its indexes")
		}
	}
}

func (x *examination) backups(ctx context.Context) {
	const of = "table"
	ttl, err := x.Describe.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &x.Config.Table})
	switch {
	case err != nil:
		x.reportUnread(of, err)
	case ttl.TimeToLiveDescription == nil ||
		ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled ||
		*ttl.TimeToLiveDescription.AttributeName != ttlAttribute:
		x.report(of, "TTL on the attribute "+ttlAttribute+" is off",
			"tombstones, crash markers and other temporary items are never deleted, and cost storage",
			"enable TTL on the attribute "+ttlAttribute+" (a restored table has it off)")
	}
	backups, err := x.Describe.DescribeContinuousBackups(ctx,
		&dynamodb.DescribeContinuousBackupsInput{TableName: &x.Config.Table})
	if err != nil {
		x.reportUnread(of, err)
		return
	}
	d := backups.ContinuousBackupsDescription
	if d == nil || d.PointInTimeRecoveryDescription == nil ||
		d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		x.report(of, "point-in-time recovery is off", "deleted data cannot be restored",
			"enable point-in-time recovery (a restored table has it off)")
	}
}

func (x *examination) queue(ctx context.Context, name, url string) {
	of := "queue " + name
	attributes, err := x.attributes(ctx, url, sqstypes.QueueAttributeNameAll)
	if err != nil {
		x.reportUnread(of, err)
		return
	}
	x.arns[name] = attributes["QueueArn"]
	if seconds, err := strconv.Atoi(attributes["VisibilityTimeout"]); err == nil {
		x.visibility[name] = time.Duration(seconds) * time.Second
	}
	_, exclusive := history.BaseQueue(name)
	if fifo := attributes["FifoQueue"] == "true"; fifo != (exclusive || name == provider.QueueInbox) {
		is, want := "standard", "FIFO"
		if fifo {
			is, want = want, is
		}
		x.report(of, fmt.Sprintf("the queue type is %s instead of %s", is, want), typeImpact(fifo), redeploy)
	}
	if seconds, err := strconv.Atoi(attributes["MessageRetentionPeriod"]); err == nil &&
		time.Duration(seconds)*time.Second < leastRetention {
		x.report(of,
			fmt.Sprintf("the message retention is %d seconds instead of %.0f", seconds, leastRetention.Seconds()),
			"an outage of that length loses messages", redeploy)
	}
	x.messageSize(of, attributes)

	var redrive struct {
		MaxReceiveCount json.Number `json:"maxReceiveCount"`
	}
	_ = json.Unmarshal([]byte(attributes["RedrivePolicy"]), &redrive) // the attribute is empty if there is no policy
	switch most, err := redrive.MaxReceiveCount.Int64(); {
	case err != nil:
		x.report(of, "the queue has no dead-letter queue",
			"a message that always fails blocks its instance until it expires, and is then lost", redeploy)
	case most < leastReceives:
		x.report(of, fmt.Sprintf("the maxReceiveCount is %d, but must be at least %d", most, leastReceives),
			"an outage moves healthy messages to the dead-letter queue", redeploy)
	}
}

// typeImpact returns the impact of a queue that is FIFO by mistake, or standard by mistake.
func typeImpact(fifo bool) string {
	if fifo {
		return "messages wait for unrelated messages"
	}
	return "turns of one instance, or activities with the same exclusive key, run concurrently"
}

func (x *examination) messageSize(of string, attributes map[string]string) {
	const name = string(sqstypes.QueueAttributeNameMaximumMessageSize)
	if most, err := strconv.Atoi(attributes[name]); err == nil && most < leastMessageBytes {
		x.report(of, fmt.Sprintf("the maximum message size is %d bytes instead of %d", most, leastMessageBytes),
			"larger inputs, results and events are not delivered",
			fmt.Sprintf("set %s to %d%s", name, leastMessageBytes, orRedeploy))
	}
}

func (x *examination) deadLetters(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(x.Config.DeadLetters)) {
		of := "dead letters of " + name
		attributes, err := x.attributes(ctx, x.Config.DeadLetters[name],
			sqstypes.QueueAttributeNameApproximateNumberOfMessages,
			sqstypes.QueueAttributeNameMaximumMessageSize)
		if err != nil {
			x.reportUnread(of, err)
			continue
		}
		x.messageSize(of, attributes)
		if n := attributes["ApproximateNumberOfMessages"]; n != "0" {
			x.report(of, "the queue contains about "+n+" dead letters",
				"SQS deletes them after 14 days, and some are the only copy of a message",
				"inspect them with perdure dead-letters list --queue "+name)
		}
	}
}

// mappings checks the event source mappings and the sweeper's rule, and returns them.
func (x *examination) mappings(ctx context.Context) []Mapping {
	all, err := x.Mappings(ctx)
	if err != nil {
		x.reportUnread("mappings", err)
		return nil
	}
	written, err := x.readPaused(ctx)
	by := whoDisabled{written: written.uuids, unread: err != nil}
	if err != nil {
		x.reportUnread("pause record", err)
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
			x.report("queue "+name, "no function is mapped to the queue",
				"its messages wait, unless a process polls the queue", redeploy)
		}
	}
	return all
}

// whoDisabled holds the mappings that perdure pause disabled. If unread is true, they are unknown.
type whoDisabled struct {
	written map[string]bool
	unread  bool
}

// disabled reports a mapping, or the sweeper's rule, that is not enabled.
func (x *examination) disabled(m *Mapping, by whoDisabled) {
	of := fmt.Sprintf("mapping of queue %s: %s to %s", m.Queue, m.UUID, m.Function)
	leadsTo := "messages wait, and expire after 14 days"
	all := x.resume() + " --all (not required if processes poll the queue)"
	if m.Queue == "" {
		of, all = "sweeper's "+m.UUID, x.resume()+" --all"
		leadsTo = "stuck instances are not woken, and deletions, retention and bulk jobs wait"
	}
	switch {
	case by.unread:
		x.report(of,
			fmt.Sprintf("the state is %s, "+
				"and the cause is unknown because the pause record could not be read", m.State),
			leadsTo, x.resume()+" if perdure pause disabled it, otherwise "+all)
	case by.written[m.UUID]:
		x.report(of, fmt.Sprintf("the state is %s (disabled by perdure pause)", m.State), leadsTo, x.resume())
	default:
		x.report(of, fmt.Sprintf("the state is %s (not by perdure pause)", m.State), leadsTo, all)
	}
}

// clock compares the clock of this machine with the clock of AWS.
func (x *examination) clock(ctx context.Context) {
	before := x.Now()
	server, err := x.ServerTime(ctx)
	if err == nil && server.IsZero() {
		err = errors.New("the response has no Date header")
	}
	if err != nil {
		x.reportUnread("clock", err)
		return
	}
	// The Date header has a resolution of one second.
	if skew := max(before.Sub(server), server.Sub(x.Now())) - time.Second; skew > mostSkew {
		x.report("clock",
			fmt.Sprintf("the clock of this machine differs from the clock of AWS by %v", skew.Round(time.Second)),
			"if a process of the hub runs on this machine, timers and retention are early or late",
			"synchronize the clock with NTP")
	}
}
