package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

// securityPage has the threat model: a table of rights below the heading "Rights".
const securityPage = "../../docs/operate/security.md"

// right is a row of the threat model. A row shows on the local cloud what the right permits, or names a test of another
// package that shows it.
type right struct {
	// policy returns the policy of a role that has only this right. role is the role of a function or of the schedules.
	policy func(t *testing.T, s *deployedStack) string
	role   string
	// operations reports which operations of the API the right permits. If it is nil, no operation is permitted.
	operations func(o *api.Operation) bool
	// direct are the names of the probes that succeed.
	direct string
	// shownBy is the file and the name of a test.
	shownBy [2]string
}

// Probes that several rights permit.
const (
	reads       = "configuration, read-table, read-payloads, "
	writesTable = "write-table, write-notes, "
)

var rights = map[string]right{
	"GrantRead":     {policy: ofGrant("GrantRead"), operations: alsoReads("")},
	"GrantStart":    {policy: ofGrant("GrantStart"), operations: alsoReads("GrantStart")},
	"GrantPut":      {policy: ofGrant("GrantPut"), operations: alsoReads("GrantPut")},
	"GrantControl":  {policy: ofGrant("GrantControl"), operations: alsoReads("GrantControl")},
	"GrantPurge":    {policy: ofGrant("GrantPurge"), operations: alsoReads("GrantPurge")},
	"GrantSchedule": {policy: ofGrant("GrantSchedule"), operations: alsoReads("GrantSchedule")},
	"GrantRedrive":  {policy: ofGrant("GrantRedrive"), operations: alsoReads("GrantRedrive")},
	"GrantComplete": {policy: ofGrant("GrantComplete"), operations: only("GrantComplete")},
	"GrantRenew":    {policy: ofGrant("GrantRenew"), operations: only("GrantRenew")},
	"GrantPoll":     {policy: ofGrant("GrantPoll"), operations: only("GrantRenew"), direct: "receive-work"},
	"GrantAPI":      {policy: ofGrant("GrantAPI"), operations: func(*api.Operation) bool { return true }},

	"GrantReadDirect": {policy: ofGrant("GrantReadDirect"), direct: reads},
	"GrantStartDirect": {
		policy: ofGrant("GrantStartDirect"),
		direct: reads + writesTable + "send-inbox, send-timers, write-payloads, delete-payloads",
	},
	// The local cloud ignores the condition of the grant that permits only writes of notes.
	"GrantControlDirect": {
		policy: ofGrant("GrantControlDirect"), direct: reads + writesTable + "send-inbox, write-payloads",
	},
	"GrantQueryDirect": {policy: ofGrant("GrantQueryDirect"), direct: reads + "invoke-orchestrator"},
	"GrantPurgeDirect": {
		policy: ofGrant("GrantPurgeDirect"),
		direct: reads + writesTable + "delete-items, send-inbox, delete-schedules, delete-payloads",
	},
	"GrantPollDirect": {
		policy: ofGrant("GrantPollDirect"),
		direct: reads + writesTable + "receive-work, send-work, send-inbox, send-timers, send-dead-letters, " +
			"invoke-orchestrator, write-payloads",
	},
	"GrantOperate": {
		policy: ofGrant("GrantOperate"),
		direct: reads + writesTable + "delete-items, receive-inbox, receive-timers, receive-work, receive-dead-letters, " +
			"send-inbox, send-timers, send-work, send-dead-letters, invoke-orchestrator, delete-schedules, " +
			"write-payloads, delete-payloads",
	},

	"orchestrator": {
		role: "TaskHubOrchestratorRole",
		direct: "read-table, " + writesTable + "receive-inbox, send-inbox, send-work, send-timers, send-dead-letters, " +
			"delete-schedules, read-payloads, write-payloads",
	},
	"worker": {
		role: "TaskHubWorkerdefaultRole",
		direct: "read-table, " + writesTable + "receive-work, send-work, send-inbox, send-timers, send-dead-letters, " +
			"invoke-orchestrator, read-payloads, write-payloads",
	},
	"renewer": {
		role: "TaskHubRenewerRole",
		direct: "read-table, " + writesTable + "delete-items, receive-timers, receive-dead-letters, send-inbox, " +
			"send-timers, send-work, send-dead-letters, create-schedules, delete-schedules, delete-payloads",
	},
	"api": {
		role: "TaskHubApiRole",
		direct: "read-table, " + writesTable + "delete-items, send-inbox, send-timers, invoke-orchestrator, " +
			"delete-schedules, read-payloads, write-payloads, delete-payloads",
	},
	"schedules": {role: "TaskHubScheduleRole", direct: "send-timers, send-dead-letters"},

	"send to a work queue": {policy: sendsWork, direct: "send-work"},
	"send to any queue": {
		policy: statement("sqs:SendMessage", "*"), direct: "send-inbox, send-timers, send-work, send-dead-letters",
	},
	"write to the table": {
		policy: statement("dynamodb:PutItem", "*", "dynamodb:UpdateItem"), direct: writesTable,
	},
	"receive from a queue": {
		policy: statement("sqs:ReceiveMessage", "*"),
		direct: "receive-inbox, receive-timers, receive-work, receive-dead-letters",
	},
	"read payloads":  {policy: statement("s3:GetObject", "*", "s3:ListBucket"), direct: "read-payloads"},
	"write payloads": {policy: statement("s3:PutObject", "*"), direct: "write-payloads"},
	"invoke a function": {
		policy: statement("lambda:InvokeFunction", "*"), direct: "invoke-orchestrator, invoke-api, invoke-renewer",
	},
	"write the configuration": {policy: statement("ssm:PutParameter", "*"), direct: "write-configuration"},
	"KMS key":                 {policy: statement("kms:*", "*")},
	"read logs":               {policy: statement("logs:*", "*")},

	"JWT or Lambda authorizer": {shownBy: [2]string{
		"infra/cdk/httpapi_test.go", "TestHTTPAPIProps_authorizer_protectsAllRoutes",
	}},
	"completion token": {shownBy: [2]string{
		"dispatch/pending_test.go", "TestR26_invalidOrLateToken_errorNamesTheReason",
	}},
	"work item token": {shownBy: [2]string{
		"provider/worktoken/completion_test.go", "TestSigner_forgedCompletionTokens_areInvalid",
	}},
}

// alsoReads returns the operations of a grant, and all reads.
func alsoReads(grant string) func(*api.Operation) bool {
	return func(o *api.Operation) bool { return o.Grant == grant || o.Method == http.MethodGet }
}

// only returns the operations of a grant.
func only(grant string) func(*api.Operation) bool {
	return func(o *api.Operation) bool { return o.Grant == grant }
}

// statement returns a policy that allows actions.
func statement(action, resource string, more ...string) func(*testing.T, *deployedStack) string {
	actions, _ := json.Marshal(append(more, action))
	return func(*testing.T, *deployedStack) string {
		return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":%s,"Resource":%q}]}`,
			actions, "arn:aws:"+strings.Split(action, ":")[0]+":"+resource)
	}
}

// sendsWork returns a policy for the default work queue only.
func sendsWork(t *testing.T, s *deployedStack) string {
	t.Helper()
	_, queue, _ := strings.Cut(s.arn(t, "TaskHubWorkdefault845D3ADB"), "arn:aws:sqs:")
	return statement("sqs:SendMessage", queue)(t, s)
}

// The page has a row for each right, and each right that the tests show.
func TestRights_rowsOfThePage_haveTests(t *testing.T) {
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Rights\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for i, name := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				rows = append(rows, name)
			}
		}
	}
	for _, row := range rows {
		if _, shown := rights[row]; !shown {
			t.Errorf("no test shows the row %q", row)
		}
	}
	for name, policy := range readGrants(t) {
		// The local cloud permits this call to every role.
		if pauses := strings.Contains(fmt.Sprint(policy), "UpdateEventSourceMapping"); pauses != (name == "GrantOperate") {
			t.Errorf("%s permits to pause a hub: %v", name, pauses)
		}
		if _, shown := rights[name]; !shown && name != "GrantCancel" { // equivalent to GrantControl
			t.Errorf("no test shows %s", name)
		}
	}
	for name, r := range rights {
		if !slices.Contains(rows, name) {
			t.Errorf("the page lacks a row for %q", name)
		}
		if file, test := r.shownBy[0], r.shownBy[1]; file != "" {
			source, err := os.ReadFile("../../" + file)
			if err != nil || !bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T) {\n")) {
				t.Errorf("%s: %s has no test %s", name, file, test)
			}
		}
	}
}

// The local cloud enforces the policies. A role with one right can call the operations and the AWS services that the
// threat model lists, and no others.
func TestRights_oneRight_permitsNothingElse(t *testing.T) {
	if onLocalStack {
		t.Skip("LocalStack does not enforce IAM")
	}
	h, stack := toAPI(t), describeStack(t)
	p := newProbes(t)
	for name, r := range rights {
		if r.shownBy[0] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if r.role != "" {
				r.policy = ofRole(r.role)
			}
			cfg := assume(t, "right-"+name, r.policy(t, stack))
			for _, o := range routes() {
				permitted := r.operations != nil && r.operations(&o)
				if r.operations == nil && o.ID != "getHealth" {
					continue // one operation shows that the right permits none
				}
				method, target := requestOf(&o)
				if answer := signed(t, cfg, h, method, target, nil); isDeniedCall(t, answer) == permitted {
					t.Errorf("%s: got HTTP %d, want permitted: %v", o.ID, answer.StatusCode, permitted)
				}
			}
			for _, probe := range p.all {
				err, permitted := probe.call(t.Context(), cfg), slices.Contains(strings.Split(r.direct, ", "), probe.name)
				if isAccessDenied(err) == permitted {
					t.Errorf("%s: got error %v, want permitted: %v", probe.name, err, permitted)
				}
			}
		})
	}
}
