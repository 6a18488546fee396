package api

import "net/http"

var noJob = codes{404: {"job_not_found"}}

// jobOperations are the operations on bulk jobs.
var jobOperations = []Operation{
	{
		ID: "startJob", Summary: "Start a bulk job; 200 for a dry run",
		Method: http.MethodPost, Path: "/v1/jobs", Grant: "GrantPurge",
		Query: []string{RequireKey}, Request: "Bulk", Success: schemas{200: "Preview", 202: "Job"},
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "{operation}", Subject: SubjectJob},
		Go: on("admin.StartJob", "admin.PreviewJob"), Command: on("purge", "cancel", "terminate"),
		WebUI: on("Counting matching instances …"),
	},
	{
		ID: "listJobs", Summary: "List running jobs and jobs of the last seven days",
		Method: http.MethodGet, Path: "/v1/jobs", Grant: "GrantRead", Success: schemas{200: "Jobs"},
		Go: on("admin.Jobs"), Command: on("jobs"), WebUI: on("Jobs of the last 7 days"),
	},
	{
		ID: "getJob", Summary: "Get a job",
		Method: http.MethodGet, Path: "/v1/jobs/{jobId}", Grant: "GrantRead",
		Success: schemas{200: "Job"}, Errors: noJob,
		Go: on("admin.Job"), Command: on("purge", "cancel", "terminate"), WebUI: none("the list shows all fields"),
	},
	{
		ID: "cancelJob", Summary: "Stop a job",
		Method: http.MethodPost, Path: "/v1/jobs/{jobId}/cancel", Grant: "GrantPurge",
		Success: schemas{200: "Job"}, Errors: noJob,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "cancel job", Subject: SubjectJob},
		Go: on("admin.CancelJob"), Command: on("jobs cancel"), WebUI: on("Stop job"),
	},
}

const (
	schedulePath  = "/v1/schedules/{scheduleId}"
	grantSchedule = "GrantSchedule"
)

var noSchedulePage = none("the command line changes the definitions of schedules")

var scheduleOperations = []Operation{
	{
		ID: "listSchedules", Summary: "List schedules",
		Method: http.MethodGet, Path: "/v1/schedules", Grant: "GrantRead",
		Query: []string{"limit", "cursor"}, Success: schemas{200: "Schedules"},
		Go: on("client.Schedules.List", "client.Schedules.ListPage"), Command: on("schedule list"),
		WebUI: on("Schedules"),
	},
	{
		ID: "getSchedule", Summary: "Get a schedule",
		Method: http.MethodGet, Path: schedulePath, Grant: "GrantRead",
		Success: schemas{200: "ScheduleStatus"}, Errors: missingInstance,
		Go: on("client.Schedules.Get"), Command: on("schedule show"), WebUI: none("the list shows all fields"),
	},
	{
		ID: "putSchedule", Summary: "Create or replace a schedule",
		Method: http.MethodPut, Path: schedulePath, Grant: grantSchedule,
		Request: "Schedule", Success: accepted, Errors: codes{404: {"unknown_orchestration"}},
		Changes: true, Repeat: RepeatReplaces, Audit: Audit{Action: "put schedule", Subject: SubjectInstance},
		Go: on("client.Schedules.Put"), Command: on("schedule put"), WebUI: noSchedulePage,
	},
	{
		ID: "deleteSchedule", Summary: "End a schedule after its current run",
		Method: http.MethodDelete, Path: schedulePath, Grant: grantSchedule, Success: accepted, Errors: missingInstance,
		Changes: true, Repeat: RepeatContinue, Audit: Audit{Action: "delete schedule", Subject: SubjectInstance},
		Go: on("client.Schedules.Delete"), Command: on("schedule delete"), WebUI: noSchedulePage,
	},
	{
		ID: "runSchedule", Summary: "Start a run now",
		Method: http.MethodPost, Path: schedulePath + "/run", Grant: grantSchedule,
		Query: []string{RequireKey}, Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "run schedule", Subject: SubjectInstance},
		Go: on("client.Schedules.Trigger"), Command: on("schedule run"), WebUI: on("Run now"),
	},
	{
		ID: "backfillSchedule", Summary: "Start the runs of a past period",
		Method: http.MethodPost, Path: schedulePath + "/backfill", Grant: grantSchedule,
		Request: "Window", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect,
		Audit: Audit{Action: "backfill schedule", Subject: SubjectInstance},
		Go:    on("client.Schedules.Backfill"), Command: on("schedule backfill"), WebUI: noSchedulePage,
	},
	{
		ID: "pauseSchedule", Summary: "Pause a schedule",
		Method: http.MethodPost, Path: schedulePath + "/pause", Grant: grantSchedule,
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatReplaces, Audit: Audit{Action: "pause", Subject: SubjectInstance},
		Go: on("client.Schedules.Pause"), Command: on("schedule pause"), WebUI: on("Pause schedule"),
	},
	{
		ID: "resumeSchedule", Summary: "Resume a schedule",
		Method: http.MethodPost, Path: schedulePath + "/resume", Grant: grantSchedule,
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "resume", Subject: SubjectInstance},
		Go: on("client.Schedules.Resume"), Command: on("schedule resume"), WebUI: on("Resume schedule"),
	},
}

const deadLetterPath = "/v1/dead-letters/{queue}"

var noDeadLetters = codes{404: {"no_dead_letters"}}

var deadLetterOperations = []Operation{
	{
		ID: "countDeadLetters", Summary: "Count dead letters by queue",
		Method: http.MethodGet, Path: "/v1/dead-letters", Grant: "GrantRead",
		Success: schemas{200: "DeadLetterQueues"}, Errors: noDeadLetters,
		Go: on("admin.CountDeadLetters"), Command: on("dead-letters list"), WebUI: on("Dead letters"),
	},
	{
		ID: "listDeadLetters", Summary: "List dead letters",
		Method: http.MethodGet, Path: deadLetterPath, Grant: "GrantRead",
		Query:   []string{"reason", "instance", "limit"},
		Success: schemas{200: "DeadLetters"}, Errors: noDeadLetters,
		Go: on("admin.DeadLetters"), Command: on("dead-letters list"), WebUI: on("Dead letters"),
	},
	{
		ID: "getDeadLetter", Summary: "Get a dead letter",
		Method: http.MethodGet, Path: deadLetterPath + "/{deadLetterId}", Grant: "GrantRead",
		Success: schemas{200: "DeadLetter"},
		Errors: codes{
			404: {"no_dead_letters", "dead_letter_not_found"}, 422: {"answer_too_large"},
		},
		Go: on("admin.DeadLetters"), Command: on("dead-letters show"), WebUI: on("Dead letters"),
	},
	{
		ID: "redriveDeadLetters", Summary: "Redrive dead letters",
		Method: http.MethodPost, Path: deadLetterPath + "/redrive", Grant: "GrantRedrive",
		Request: "DeadLetterRedrive", Success: schemas{200: "DeadLettersDone"}, Errors: noDeadLetters,
		Changes: true, Repeat: RepeatContinue,
		Audit: Audit{Action: "redrive dead letters", Subject: SubjectQueue},
		Go:    on("admin.RedriveDeadLetters"), Command: on("dead-letters redrive"), WebUI: on("Redrive"),
	},
	{
		ID: "dropDeadLetters", Summary: "Delete dead letters",
		Method: http.MethodPost, Path: deadLetterPath + "/drop", Grant: "GrantRedrive",
		Request: "DeadLetterDrop", Success: schemas{200: "DeadLettersDone"}, Errors: noDeadLetters,
		Changes: true, Repeat: RepeatContinue,
		Audit: Audit{Action: "drop dead letters", Subject: SubjectQueue},
		Go:    on("admin.DropDeadLetters"), Command: on("dead-letters drop"), WebUI: on("Drop"),
	},
}

const grantComplete = "GrantComplete"

var (
	tokenErrors = codes{
		400: {"invalid_token", "other_hub"}, 409: {"superseded", "activity_over"}, 410: {"execution_over"},
	}
	noTokenPage  = none("only the token holder uses it")
	frequentCall = Audit{Reason: "calls are frequent, and the history or the queue shows their effect"}
)

// activityOperations are the operations with the token of an attempt or a work item.
var activityOperations = []Operation{
	{
		ID: "completeActivity", Summary: "Complete an attempt",
		Method: http.MethodPost, Path: "/v1/activities/complete", Grant: grantComplete,
		Request: "Completion", Success: schemas{202: ""}, Errors: tokenErrors,
		Changes: true, Repeat: RepeatNoEffect, Audit: frequentCall,
		Go: on("client.CompleteActivity"), Command: on("complete"), WebUI: noTokenPage,
	},
	{
		ID: "failActivity", Summary: "Fail an attempt",
		Method: http.MethodPost, Path: "/v1/activities/fail", Grant: grantComplete,
		Request: "Failing", Success: schemas{202: ""}, Errors: tokenErrors,
		Changes: true, Repeat: RepeatNoEffect, Audit: frequentCall,
		Go: on("client.FailActivity"), Command: on("fail"), WebUI: noTokenPage,
	},
	{
		ID: "beatActivity", Summary: "Send a heartbeat",
		Method: http.MethodPost, Path: "/v1/activities/heartbeat", Grant: grantComplete,
		Request: "Beat", Success: schemas{200: "Beaten"}, Errors: tokenErrors,
		Changes: true, Repeat: RepeatReplaces, Audit: frequentCall,
		Go: on("client.HeartbeatActivity"), Command: on("heartbeat"), WebUI: noTokenPage,
	},
	{
		ID: RenewWorkItems, Summary: "Extend the locks of work items",
		Method: http.MethodPost, Path: "/v1/work-items/renew", Grant: "GrantRenew",
		Request: "Leases", Success: schemas{200: "Renewals"},
		Changes: true, Repeat: RepeatReplaces, Audit: frequentCall,
		Go:      on("client.RenewWorkItems"),
		Command: none("perdure worker renews the locks of its work items in the queue"), WebUI: noTokenPage,
	},
}

// RenewWorkItems is the ID of the operation that the renewer function also serves.
const RenewWorkItems = "renewWorkItems"

const (
	operatorsOnly = "the operation needs permissions that the API does not have"
	ofAPI         = "the operation describes or checks the API"
)

var (
	noAudit = Audit{Reason: "the operation has no route"}
	noPage  = none("the API has no route")
)

// hubOperations are the operations on the hub and its API.
var hubOperations = []Operation{
	{
		ID: "listQueues", Summary: "List queues with their depth, dead letters and workers",
		Method: http.MethodGet, Path: "/v1/queues", Grant: "GrantRead", Success: schemas{200: "QueueList"},
		Go: on("admin.Queues"), Command: on("queues"), WebUI: on("Queues and workers"),
	},
	{
		ID: "getOpenAPI", Summary: "Get the OpenAPI document",
		Method: http.MethodGet, Path: "/v1/openapi.json", Grant: "GrantRead", Success: schemas{200: ""},
		Go: none(ofAPI), Command: none(ofAPI), WebUI: none(ofAPI),
	},
	{
		ID: "getHealth", Summary: "Check the API",
		Method: http.MethodGet, Path: "/v1/healthz", Grant: "GrantRead", Success: schemas{200: ""},
		Go: none(ofAPI), Command: none(ofAPI), WebUI: none(ofAPI),
	},
	{
		ID: "reconcile", Summary: "Repair instances, and drain queues after a restore", NoRoute: operatorsOnly,
		Changes: true, Repeat: RepeatContinue, Audit: noAudit,
		Go: on("admin.Reconcile", "admin.PurgeQueues"), Command: on("reconcile"), WebUI: noPage,
	},
	{
		ID: "sweepPayloads", Summary: "Delete payloads that no history refers to", NoRoute: operatorsOnly,
		Changes: true, Repeat: RepeatContinue, Audit: noAudit,
		Go: on("admin.SweepPayloads"), Command: on("sweep"), WebUI: noPage,
	},
}
