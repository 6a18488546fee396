package dynamo

import (
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/builds"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/deadletters"
	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/hubstore"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/lists"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/payloadstore"
	"github.com/perdure/perdure/provider/dynamo/internal/queryinvoke"
	"github.com/perdure/perdure/provider/dynamo/internal/reconcile"
	"github.com/perdure/perdure/provider/dynamo/internal/rejections"
	"github.com/perdure/perdure/provider/dynamo/internal/retention"
	"github.com/perdure/perdure/provider/dynamo/internal/retries"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/starts"
	"github.com/perdure/perdure/provider/dynamo/internal/sweep"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
	"github.com/perdure/perdure/provider/dynamo/internal/updates"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// These stores are embedded, because all of their methods are methods of the provider. The other stores also have
// methods for each other. facade.go defines the methods of the provider for them.
type (
	activityStore   = activityrecords.Store
	deadLetterStore = deadletters.DeadLetters
	documentStore   = segments.Documents
	hubStore        = hubstore.Store
	instanceLists   = lists.Lists
	instanceQueries = queryinvoke.Queries
	sweepSearches   = sweep.Searches
)

// stores are the packages behind the facade.
type stores struct {
	*activityStore
	*deadLetterStore
	*documentStore
	*hubStore
	*instanceLists
	*instanceQueries
	*sweepSearches

	table      *table.Table
	tokens     *tokens.Keys
	queue      *sqsqueue.Queues
	payloads   *payloadstore.Store // nil if the hub has no bucket
	inbox      *inbox.Inbox
	cancels    *cancels.Store
	builds     *builds.Builds
	instances  *instances.Store
	workItems  *segments.WorkItems
	segments   *segments.Store
	timers     *timers.Timers
	workQueues *workqueue.WorkQueues
	updates    *updates.Store
	outbox     *outbox.Outbox
	retries    *retries.Retries
	rejections *rejections.Rejections
	starts     *starts.Starts
	deletion   *deletion.Deleter
	retention  *retention.Retention
	reconcile  *reconcile.Reconciler
}

// newStores connects the stores of a hub, starting with the table and the queues.
func newStores(hub *HubConfig, clients Clients, s *settings) stores {
	st := stores{table: table.New(clients.Table, hub.Table)}
	st.queue = sqsqueue.New(clients.Queues, sqsqueue.Config{
		Hub: hub.Name, InboxURL: hub.InboxURL, TimersURL: hub.TimersURL, WorkQueues: hub.WorkQueues,
		DeadLetters: hub.DeadLetters, MaxDelay: s.LongestDelay,
	}, s.Now)
	st.tokens = tokens.New(st.table, hub.Name, s.Now, s.Log)
	st.hubStore = hubstore.New(st.table, s.Now, s.Log)
	st.inbox = inbox.New(st.table, st.queue, s.Now)
	st.cancels = cancels.New(st.table, s.Now)
	st.activityStore = activityrecords.New(st.table, st.cancels, s.Now)
	st.builds = builds.New(st.table, st.tokens, st.inbox, hub.Name, s.Now, s.Log)
	st.instances = instances.New(st.table, s.Now)
	st.instanceLists = lists.New(st.table, st.instances, s.Log)
	st.sweepSearches = sweep.New(
		st.table, st.instances, hubstore.NewPositions(st.table, s.Log), st.builds, s.Now, s.Log,
	)
	st.documentStore = segments.NewDocuments(st.table)
	st.workItems = segments.NewWorkItems(st.table)
	st.segments = segments.New(st.table, st.instances, st.documentStore, segments.Config{
		Now: s.Now, Log: s.Log, RollupSize: s.Rollup, RollupAlways: s.AlwaysRollup,
	})
	st.timers = timers.New(clients.Schedules, st.queue, st.segments, st.activityStore, timers.Config{
		UseSchedules: hub.TimerMode == TimersSchedules, ScheduleGroup: hub.ScheduleGroup,
		ScheduleRoleARN: hub.ScheduleRoleARN, TimersARN: hub.TimersARN,
		TimersDeadLettersARN: hub.TimersDeadLettersARN, ScheduleLead: s.ScheduleLead, Now: s.Now, Log: s.Log,
	})
	st.workQueues = workqueue.New(st.queue, st.inbox, st.tokens, st.cancels, s.Now, s.Log)
	st.updates = updates.New(st.table, s.Now)
	st.outbox = outbox.New(outbox.Stores{
		Table: st.table, Queue: st.queue, Inbox: st.inbox, WorkQueues: st.workQueues, Timers: st.timers,
		Instances: st.instances, Attempts: st.activityStore, Segments: st.segments, Updates: st.updates,
	}, s.Now, s.Log)
	st.addOperations(hub, clients, s)
	return st
}

// addOperations adds the stores that use the outbox.
func (st *stores) addOperations(hub *HubConfig, clients Clients, s *settings) {
	st.retries = retries.New(retries.Stores{
		Table: st.table, Queue: st.queue, WorkQueues: st.workQueues, Attempts: st.activityStore,
		WorkItems: st.workItems, Outbox: st.outbox,
	}, s.Now)
	st.rejections = rejections.New(st.table, st.inbox, s.Now, s.Log)
	st.starts = starts.New(starts.Stores{
		Table: st.table, Inbox: st.inbox, Builds: st.builds, Timers: st.timers, Instances: st.instances,
		Segments: st.segments, Outbox: st.outbox,
	}, s.Now)
	st.payloads = payloadstore.New(clients.Bucket, hub.PayloadBucket, hub.Name, s.Now)
	eraser := erasure.New(st.table, st.cancels, st.payloads, s.Now)
	st.deletion = deletion.New(deletion.Stores{
		Table: st.table, Instances: st.instances, Segments: st.segments, Cancels: st.cancels, Updates: st.updates,
		Payloads: st.payloads, Timers: st.timers, Outbox: st.outbox, Eraser: eraser,
	}, s.Now, s.Log)
	st.retention = retention.New(retention.Stores{
		Table: st.table, Instances: st.instances, Segments: st.segments, Eraser: eraser, Deleter: st.deletion,
	}, s.Now, s.Log)
	st.reconcile = reconcile.New(reconcile.Stores{
		Queue: st.queue, Inbox: st.inbox, Timers: st.timers, Instances: st.instances, Segments: st.segments,
		Cancels: st.cancels, Attempts: st.activityStore, Outbox: st.outbox, Rejections: st.rejections,
		Deleter: st.deletion,
	}, s.Now)
	st.deadLetterStore = deadletters.New(st.queue, st.timers, st.tokens)
	st.instanceQueries = queryinvoke.New(clients.Functions, hub.Name, hub.Orchestrator)
}
