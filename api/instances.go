package api

import "net/http"

const instancePath = "/v1/instances/{id}"

const (
	noInstance = "instance_not_found"
	ended      = "instance_over"
)

// Errors of operations on any instance, on an instance that has not ended, of starts and of queries.
var (
	missingInstance = codes{404: {noInstance}}
	goneInstance    = codes{404: {noInstance}, 410: {ended}}
	startErrors     = codes{404: {"unknown_orchestration"}, 409: {"instance_id_in_use"}}
	queryErrors     = codes{
		400: {"query_bad_input"},
		404: {noInstance, "unknown_query"},
		409: {"nobody_to_ask", "query_blocked", "query_not_begun", "query_unregistered", "query_unsupported"},
		422: {
			"query_answer_too_large", "query_died", "query_failed", "query_hung", "query_misused", "query_timed_out",
		},
	}
)

// Responses of operations that send a message, and of starts.
var (
	accepted = schemas{202: "Accepted"}
	started  = schemas{202: "Started"}
)

// updateErrors returns the errors of an update and of a start that may precede the update.
func updateErrors(start codes) codes {
	return codes{
		400: {"update_bad_input"},
		404: append([]string{noInstance, "unknown_update"}, start[404]...),
		409: append([]string{"update_left", "update_too_many"}, start[409]...),
		410: {ended, "update_forgotten"},
		422: {"update_failed", "update_misused", "update_rejected"},
	}
}

const ofApplication = "only applications use it, with their own input"

// instanceOperations are the operations that start, read and delete instances.
var instanceOperations = []Operation{
	{
		ID: "startOrchestration", Summary: "Start an instance",
		Method: http.MethodPost, Path: "/v1/orchestrations/{name}", Grant: "GrantStart",
		Request: "Start", Success: started, Errors: startErrors,
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "start", Subject: SubjectInstance},
		Go: on("client.Start"), Command: on("start"), WebUI: none(ofApplication),
	},
	{
		ID: "prepareStart", Summary: "Prepare a start as an item of your DynamoDB transaction",
		NoRoute: "the caller runs the transaction",
		Changes: true, Repeat: RepeatNoEffect, Audit: noAudit,
		Go: on("client.PrepareStart"), Command: none("the caller runs the transaction"),
		WebUI: none("the caller runs the transaction"),
	},
	{
		ID: "listInstances", Summary: "List instances, newest first",
		Method: http.MethodGet, Path: "/v1/instances", Grant: "GrantRead",
		Query: []string{
			"status", "name", "version", "tag", "parent", "startedAfter", "startedBefore", "limit", "cursor",
		},
		Success: schemas{200: "Instances"},
		Go:      on("client.List", "client.ListPage"), Command: on("list"), WebUI: on("Instances"),
	},
	{
		ID: "getInstance", Summary: "Get the status and the pending tasks",
		Method: http.MethodGet, Path: instancePath, Grant: "GrantRead",
		Query:   []string{"pending", "waitForStart", "cost", "limit"},
		Success: schemas{200: "Instance"}, Errors: missingInstance,
		Go:      on("client.Status", "client.Pending", "client.WaitForStart", "admin.EstimateCost"),
		Command: on("status", "cost"), WebUI: on("Status"),
	},
	{
		ID: "putInstance", Summary: "Start an instance with this ID, or send it an event or update",
		Method: http.MethodPut, Path: instancePath, Grant: "GrantPut",
		Request: "Put", Success: schemas{200: "Updated", 202: "Started"}, Errors: updateErrors(startErrors),
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "put", Subject: SubjectInstance},
		Go: on("client.StartOrRaiseEvent", "client.StartOrUpdate"), Command: on("start"), WebUI: none(ofApplication),
	},
	{
		ID: "purgeInstance", Summary: "Purge an ended instance; `force=true` terminates it first",
		Method: http.MethodDelete, Path: instancePath, Grant: "GrantPurge",
		Query:   []string{"force", "withChildren", "createdAt"},
		Success: schemas{204: ""}, Errors: codes{404: {noInstance}, 409: {"instance_not_over"}},
		Changes: true, Repeat: RepeatContinue, Audit: Audit{Action: "purge", Subject: SubjectInstance},
		Go: on("client.Purge"), Command: on("purge"), WebUI: on("Purge instance"),
	},
	{
		ID: "getResult", Summary: "Get the result",
		Method: http.MethodGet, Path: instancePath + "/result", Grant: "GrantRead", Query: []string{"wait"},
		Success: schemas{200: "Result", 202: "Result"}, Errors: missingInstance,
		Go: on("client.Wait"), Command: on("wait"), WebUI: none("the status contains the result"),
	},
	{
		ID: "listExecutions", Summary: "List the executions",
		Method: http.MethodGet, Path: instancePath + "/executions", Grant: "GrantRead",
		Query:   []string{"limit", "cursor"},
		Success: schemas{200: "Executions"}, Errors: missingInstance,
		Go: on("client.Executions", "client.ExecutionsPage"), Command: on("executions"),
		WebUI: on("Execution"),
	},
	{
		ID: "getHistory", Summary: "List the [events](events.md) of an execution",
		Method: http.MethodGet, Path: instancePath + "/history", Grant: "GrantRead",
		Query:   []string{"execution", "after", "limit"},
		Success: schemas{200: "History"},
		Errors:  codes{404: {noInstance, "execution_not_found"}, 422: {"answer_too_large"}},
		Go:      on("client.History"), Command: on("history", "export"), WebUI: on("Events"),
	},
	{
		ID: "streamHistory", Summary: "Stream the [events](#streams) until the end",
		Method: http.MethodGet, Path: instancePath + "/events/stream", Grant: "GrantRead",
		Query:   []string{"lastEventId", "wait"},
		Success: schemas{200: "", 204: ""},
		Errors:  codes{404: {noInstance, "execution_not_found"}, 422: {"answer_too_large"}},
		Go:      on("client.Follow"), Command: on("watch"), WebUI: on("Updating"),
	},
	{
		ID: "listCancellations", Summary: "List cancelled tasks",
		Method: http.MethodGet, Path: instancePath + "/cancellations", Grant: "GrantRead",
		Query:   []string{"execution", "limit", "cursor"},
		Success: schemas{200: "Cancellations"}, Errors: codes{404: {noInstance, "execution_not_found"}},
		Go: on("client.Cancellations", "client.CancellationsPage"), Command: on("why"),
		WebUI: on("Cancellations"),
	},
	{
		ID: "getPayload", Summary: "Read a stored or encoded payload of an event",
		NoRoute: "a payload can be larger than a response",
		Go:      on("client.Payload", "client.StoredPayload"), Command: on("export"),
		WebUI: noPage,
	},
}

// controlOperations are the operations that send a message to an instance, run a handler or add a note.
var controlOperations = []Operation{
	{
		ID: "raiseEvent", Summary: "Send an external event",
		Method: http.MethodPost, Path: instancePath + "/events/{event}", Grant: "GrantControl",
		Request: AnyJSON, Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "raise", Subject: SubjectInstance},
		Go: on("client.RaiseEvent"), Command: on("raise"), WebUI: on("Raise event"),
	},
	{
		ID: "queryInstance", Summary: "Run a query handler",
		Method: http.MethodPost, Path: instancePath + "/query", Grant: "GrantControl",
		Request: "Question", Success: schemas{200: "Answered"}, Errors: queryErrors,
		Go: on("client.Query"), Command: on("query"), WebUI: on("Run query"),
	},
	{
		ID: "updateInstance", Summary: "Run an update handler",
		Method: http.MethodPost, Path: instancePath + "/update", Grant: "GrantControl",
		Request: "Update", Success: schemas{200: "Updated", 202: "Updated"}, Errors: updateErrors(nil),
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "update", Subject: SubjectInstance},
		Go: on("client.Update"), Command: on("update"), WebUI: none(ofApplication),
	},
	{
		ID: "entityState", Summary: "Get the state of an entity",
		Method: http.MethodGet, Path: "/v1/entities/{entity}/{key}", Grant: "GrantRead",
		Success: schemas{200: "EntityState"}, Errors: queryErrors,
		Go: on("client.EntityState"), Command: on("state"), WebUI: on("Read state"),
	},
	{
		ID: "callEntity", Summary: "Call an operation",
		Method: http.MethodPost, Path: "/v1/entities/{entity}/{key}/{operation}", Grant: "GrantControl",
		Request: "EntityCall", Success: schemas{200: "Updated", 202: "Updated"},
		Errors: updateErrors(startErrors), Changes: true, Repeat: RepeatByKey,
		Audit: Audit{Action: "update", Subject: SubjectInstance},
		Go:    on("client.CallEntity"), Command: on("call"), WebUI: none(ofApplication),
	},
	{
		ID: "annotateInstance", Summary: "Add a note",
		Method: http.MethodPost, Path: instancePath + "/notes", Grant: "GrantControl",
		Query: []string{RequireKey}, Request: "NewNote", Success: schemas{204: ""},
		Errors:  codes{404: {noInstance}, 409: {"notes_unsupported"}},
		Changes: true, Repeat: RepeatByKey, Audit: Audit{Action: "annotate", Subject: SubjectInstance},
		Go: on("client.Annotate"), Command: on("annotate"), WebUI: on("Add note"),
	},
	{
		ID: "cancelInstance", Summary: "Cancel an instance",
		Method: http.MethodPost, Path: instancePath + "/cancel", Grant: "GrantControl",
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "cancel", Subject: SubjectInstance},
		Go: on("client.Cancel"), Command: on("cancel"), WebUI: on("Cancel instance"),
	},
	{
		ID: "terminateInstance", Summary: "Terminate an instance",
		Method: http.MethodPost, Path: instancePath + "/terminate", Grant: "GrantControl",
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "terminate", Subject: SubjectInstance},
		Go: on("client.Terminate"), Command: on("terminate"), WebUI: on("Terminate instance"),
	},
	{
		ID: "restartInstance", Summary: "Restart an ended instance",
		Method: http.MethodPost, Path: instancePath + "/restart", Grant: "GrantControl",
		Request: "Restart", Success: started,
		Errors: codes{
			404: {noInstance, "unknown_orchestration"}, 409: {"instance_not_over", "instance_id_in_use"},
		},
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "restart", Subject: SubjectInstance},
		Go: on("client.Restart"), Command: on("restart"), WebUI: on("Restart instance"),
	},
	{
		ID: "pauseInstance", Summary: "Pause an instance",
		Method: http.MethodPost, Path: instancePath + "/pause", Grant: "GrantControl",
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "pause", Subject: SubjectInstance},
		Go: on("client.Pause"), Command: on("pause"), WebUI: on("Pause instance"),
	},
	{
		ID: "resumeInstance", Summary: "Resume an instance",
		Method: http.MethodPost, Path: instancePath + "/resume", Grant: "GrantControl",
		Request: "Reason", Success: accepted, Errors: goneInstance,
		Changes: true, Repeat: RepeatNoEffect, Audit: Audit{Action: "resume", Subject: SubjectInstance},
		Go: on("client.Resume"), Command: on("resume"), WebUI: on("Resume instance"),
	},
	{
		ID: "cancelActivity", Summary: "Cancel one activity",
		Method: http.MethodPost, Path: instancePath + "/activities/{activityId}/cancel", Grant: "GrantControl",
		Request: "Reason", Success: accepted,
		Errors:  codes{404: {noInstance, "activity_not_found"}, 409: {"not_cancellable"}},
		Changes: true, Repeat: RepeatNoEffect,
		Audit: Audit{Action: "cancel activity {activityId}", Subject: SubjectInstance},
		Go:    on("client.CancelActivity"), Command: on("cancel"), WebUI: on("Cancel activity"),
	},
}
