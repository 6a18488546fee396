package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/provider"
)

// IDs of the operations whose tools change something.
const (
	opStart          = "startOrchestration"
	opRaise          = "raiseEvent"
	opAnnotate       = "annotateInstance"
	opCancel         = "cancelInstance"
	opCancelActivity = "cancelActivity"
	opTerminate      = "terminateInstance"
	opPause          = "pauseInstance"
	opResume         = "resumeInstance"
	opRestart        = "restartInstance"
	opPurge          = "purgeInstance"
	opRedrive        = "redriveDeadLetters"
	opDrop           = "dropDeadLetters"
)

// toolOf has the tool of each operation that has one, by the ID of the operation.
var toolOf = map[string]string{
	"listInstances": "list", "getInstance": "status", "getHistory": "history", "listCancellations": "why",
	"countDeadLetters": "count_dead_letters", "listDeadLetters": "dead_letters", "listQueues": nameQueues,

	opStart: "start", opRaise: "raise", opAnnotate: "annotate", opCancel: "cancel",
	opCancelActivity: "cancel_activity", opTerminate: "terminate", opPause: "pause", opResume: "resume",
	opRestart: "restart", opPurge: "purge", opRedrive: "redrive_dead_letters", opDrop: "drop_dead_letters",
}

// Reasons why an operation has no tool.
const (
	noToolBulk     = "it changes many instances; use the command"
	noToolSchedule = "use perdure schedule"
	noToolHandler  = "it runs code of the application, which may change something; use the command"
	noToolToken    = "the holder of the token calls it"
	noToolService  = "it is a service for programs"
	noToolCovered  = "another tool shows it"
)

// noTool has the reason of each operation without a tool, by the ID of the operation.
var noTool = map[string]string{
	"startJob": noToolBulk, "cancelJob": noToolBulk, "listJobs": "use perdure jobs", "getJob": "use perdure jobs",
	"reconcile": noToolBulk, "sweepPayloads": noToolBulk,
	"listSchedules": noToolSchedule, "getSchedule": noToolSchedule, "putSchedule": noToolSchedule,
	"deleteSchedule": noToolSchedule, "runSchedule": noToolSchedule, "backfillSchedule": noToolSchedule,
	"pauseSchedule": noToolSchedule, "resumeSchedule": noToolSchedule,
	"queryInstance": noToolHandler, "updateInstance": noToolHandler, "entityState": noToolHandler,
	"callEntity": noToolHandler, "putInstance": "use start or raise",
	"completeActivity": noToolToken, "failActivity": noToolToken, "beatActivity": noToolToken,
	api.RenewWorkItems: noToolToken,
	"prepareStart":     noToolService, "getOpenAPI": noToolService, "getHealth": noToolService,
	"streamHistory": "a tool responds once; use history", "getResult": noToolCovered,
	"listExecutions": "use perdure executions", "getDeadLetter": noToolCovered,
	"getPayload": "a payload can be larger than a result; use perdure export",
}

// Allowed returns the IDs of the operations that the names allow. A name is a command, such as cancel, or the ID of an
// operation, such as cancelInstance. A command allows all its operations that have a tool.
func Allowed(names []string) (map[string]bool, error) {
	allowed := map[string]bool{}
	for _, name := range names {
		reason, found := "", false
		for _, o := range api.Operations() {
			if o.ID != name && !slices.Contains(o.Command.Names, name) {
				continue
			}
			switch {
			case toolOf[o.ID] == "":
				reason = noTool[o.ID]
			case !o.Changes:
				reason = "it changes nothing and is always allowed"
			default:
				allowed[o.ID], found = true, true
			}
		}
		switch {
		case found:
		case reason != "":
			return nil, &provider.FieldError{Field: "--allow", Problem: fmt.Sprintf("%q: %s", name, reason)}
		default:
			return nil, &provider.FieldError{Field: "--allow", Problem: fmt.Sprintf("%q is not an operation; "+
				"use a command (%s) or the ID of an operation (%s)", name, strings.Join(changingCommands(), ", "),
				strings.Join(changingOperations(), ", "))}
		}
	}
	return allowed, nil
}

// changing returns the operations whose tools change something.
func changing() (all []api.Operation) {
	for _, o := range api.Operations() {
		if o.Changes && toolOf[o.ID] != "" {
			all = append(all, o)
		}
	}
	return all
}

func changingCommands() []string {
	names := map[string]bool{}
	for _, o := range changing() {
		for _, name := range o.Command.Names {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func changingOperations() []string {
	var ids []string
	for _, o := range changing() {
		ids = append(ids, o.ID)
	}
	return slices.Sorted(slices.Values(ids))
}
