package cdk_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// statement is a statement of a policy. References in its lists are logical IDs.
type statement struct {
	actions   []string
	resources []string
	condition any
}

// statementsIn reads the statements of a policy document.
func statementsIn(document any) []statement {
	object, _ := document.(map[string]any)
	list, _ := object["Statement"].([]any)
	var all []statement
	for _, each := range list {
		s, _ := each.(map[string]any)
		all = append(all, statement{plain(s["Action"]), plain(s["Resource"]), s["Condition"]})
	}
	return all
}

// statementsOf returns the statements of every inline policy of a role.
func statementsOf(role resource) []statement {
	var all []statement
	policies, _ := role.get("Policies").([]any)
	for _, each := range policies {
		policy, _ := each.(map[string]any)
		all = append(all, statementsIn(policy["PolicyDocument"])...)
	}
	return all
}

// plain returns one or several values as a list of strings.
func plain(value any) []string {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, each := range v {
			all = append(all, plain(each)...)
		}
		return all
	case map[string]any:
		if id := refOf(v); id != "" {
			return []string{id}
		}
		if join, ok := v["Fn::Join"].([]any); ok && len(join) == 2 {
			return []string{strings.Join(plain(join[1]), "")}
		}
	}
	return []string{"?"}
}

func actionsOf(statements []statement) map[string]bool {
	all := map[string]bool{}
	for _, s := range statements {
		for _, action := range s.actions {
			all[action] = true
		}
	}
	return all
}

// roles returns the roles of the hub, including the role for EventBridge Scheduler.
func roles(t *testing.T, parsed template) []resource {
	t.Helper()
	all := parsed.ofType("AWS::IAM::Role")
	if len(all) != 5 {
		t.Fatalf("%d roles, want one per function and the role of the schedules", len(all))
	}
	return all
}

func TestRoles_haveNoWildcards(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	if n := len(parsed.ofType("AWS::IAM::Policy")) + len(parsed.ofType("AWS::IAM::ManagedPolicy")); n != 1 {
		t.Errorf("%d policies in addition to the roles' inline ones, want that of "+
			"TestRenewals_areAllowedToAPIFunctionOnlyWithFunctionURL, since "+
			"no test reads the others", n)
	}
	for _, role := range roles(t, parsed) {
		if role.get("ManagedPolicyArns") != nil {
			t.Errorf("%s has managed policies, which are wider than needed", role.id)
		}
		for _, s := range statementsOf(role) {
			for _, action := range s.actions {
				if strings.Contains(action, "*") {
					t.Errorf("%s: action %s", role.id, action)
				}
			}
			for _, arn := range s.resources {
				if strings.HasPrefix(arn, "*") || arn == "?" || strings.Contains(arn, ":*:") {
					t.Errorf("%s: %v on resource %s", role.id, s.actions, arn)
				}
			}
		}
	}
}

// No emulator rejects missing or superfluous queue permissions. AWS would reject a missing permission only when a
// function needs it.
func TestFunctionRoles_allowOnlyRequiredQueueActions(t *testing.T) {
	t.Parallel()
	const consume = "ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"
	const consumeAndSend = consume + " SendMessage"
	parsed := parse(t)
	for prefix, want := range map[string]map[string]string{
		"TaskHubOrchestratorRole": {
			"Inbox": consumeAndSend, "Workdefault": "SendMessage", "Exclusivedefault": "SendMessage",
			"Timers": "SendMessage", "InboxDeadLetters": "SendMessage",
		},
		"TaskHubWorkerdefaultRole": { // a worker has a client, which needs Timers
			"Workdefault": consumeAndSend, "Exclusivedefault": consumeAndSend, "Inbox": "SendMessage",
			"Timers":                 "SendMessage",
			"WorkdefaultDeadLetters": "SendMessage", "ExclusivedefaultDeadLetters": "SendMessage",
		},
		"TaskHubRenewerRole": {
			"Timers": consumeAndSend, "Inbox": "SendMessage",
			"Workdefault":      "ChangeMessageVisibility GetQueueAttributes SendMessage",
			"Exclusivedefault": "ChangeMessageVisibility GetQueueAttributes SendMessage",
			"InboxDeadLetters": consumeAndSend, "TimersDeadLetters": consumeAndSend,
			"WorkdefaultDeadLetters": consumeAndSend, "ExclusivedefaultDeadLetters": consumeAndSend,
		},
		"TaskHubApiRole": {
			"Inbox": "SendMessage", "Timers": "SendMessage", "Workdefault": "GetQueueAttributes",
			"Exclusivedefault": "GetQueueAttributes",
		},
		"TaskHubScheduleRole": {"Timers": "SendMessage", "TimersDeadLetters": "SendMessage"},
	} {
		got := queueActions(statementsOf(parsed.find(t, "AWS::IAM::Role", prefix)))
		if !maps.Equal(got, want) {
			t.Errorf("%s\n got %v\nwant %v", prefix, got, want)
		}
	}
}

// With DeadLetters, the function of the API may consume the dead-letter queues, and send to the queues to which it
// redrives.
func TestDeadLettersProp_letsAPIRedriveOnlyIfSet(t *testing.T) {
	t.Parallel()
	const consume = "ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"
	for enabled, want := range map[bool]map[string]string{
		false: {"Inbox": "SendMessage", "Timers": "SendMessage", "Workdefault": "GetQueueAttributes"},
		true: {
			"Inbox": "SendMessage", "Timers": "SendMessage", "Workdefault": "GetQueueAttributes SendMessage",
			"InboxDeadLetters": consume, "TimersDeadLetters": consume, "WorkdefaultDeadLetters": consume,
		},
	} {
		got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, DeadLetters: enabled},
			func(stack awscdk.Stack, hub *cdk.TaskHub) {
				role := awsiam.NewRole(stack, jsii.String("Caller"), &awsiam.RoleProps{
					AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
				})
				if refused := panics(func() { hub.GrantRedrive(role) }); refused == enabled {
					t.Errorf("DeadLetters: %t, GrantRedrive panics: %t", enabled, refused)
				}
			})
		if actions := queueActions(statementsOf(got.find(t, "AWS::IAM::Role", "TaskHubApiRole"))); !maps.Equal(actions,
			want) {
			t.Errorf("DeadLetters: %t\n got %v\nwant %v", enabled, actions, want)
		}
		if _, reported := got.find(t, "AWS::Lambda::Function", "TaskHubApi").get("Environment",
			"Variables").(map[string]any)["PERDURE_DEAD_LETTERS"]; reported != enabled {
			t.Errorf("DeadLetters: %t, the function has the variable: %t", enabled, reported)
		}
	}
}

// queueActions returns the actions for each queue, sorted and without their prefix.
func queueActions(statements []statement) map[string]string {
	perQueue := map[string][]string{}
	for _, s := range statements {
		for _, action := range s.actions {
			name, isSQS := strings.CutPrefix(action, "sqs:")
			if !isSQS {
				continue
			}
			for _, arn := range s.resources {
				queue := strings.TrimPrefix(arn[:len(arn)-len("12345678")], "TaskHub")
				perQueue[queue] = append(perQueue[queue], name)
			}
		}
	}
	all := map[string]string{}
	for queue, actions := range perQueue {
		slices.Sort(actions)
		all[queue] = strings.Join(actions, " ")
	}
	return all
}

// The function of the API may extend locks only if the hub has a function URL. Otherwise the gateway routes renewals to
// the renewer.
func TestRenewals_areAllowedToAPIFunctionOnlyWithFunctionURL(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	policy := parsed.find(t, "AWS::IAM::Policy", "TaskHubApiRenewals")
	statements := statementsIn(policy.get("PolicyDocument"))
	if got := queueActions(statements); !maps.Equal(got,
		map[string]string{"Workdefault": "ChangeMessageVisibility", "Exclusivedefault": "ChangeMessageVisibility"}) ||
		len(actionsOf(statements)) != 1 {
		t.Errorf("it allows %v", got)
	}
	if !strings.Contains(policy.condition, "IsFunctionUrl") {
		t.Errorf("the policy has the condition %q", policy.condition)
	}
	if role := plain(policy.get("Roles")); len(role) != 1 || !strings.HasPrefix(role[0], "TaskHubApiRole") {
		t.Errorf("the policy applies to %v", role)
	}
}

func TestRenewer_isTheOnlyRoleThatCreatesSchedules(t *testing.T) {
	t.Parallel()
	for _, role := range roles(t, parse(t)) {
		renewer := strings.HasPrefix(role.id, "TaskHubRenewer")
		actions := actionsOf(statementsOf(role))
		for _, action := range []string{"scheduler:CreateSchedule", "scheduler:UpdateSchedule", "iam:PassRole"} {
			if actions[action] != renewer {
				t.Errorf("%s has %s: %v", role.id, action, actions[action])
			}
		}
		for _, s := range statementsOf(role) {
			if slices.Contains(s.actions, "iam:PassRole") && s.condition == nil {
				t.Errorf("%s may pass the role to any service", role.id)
			}
		}
	}
}

// Functions that delete instances overwrite and delete items, notify parents and children, and delete the schedules of
// timers (R17).
func TestDeletionPermissions_areForAPIAndRenewerOnly(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for prefix, may := range map[string]bool{
		"TaskHubApiRole": true, "TaskHubRenewerRole": true, "TaskHubOrchestratorRole": false,
		"TaskHubWorkerdefaultRole": false,
	} {
		actions := actionsOf(statementsOf(parsed.find(t, "AWS::IAM::Role", prefix)))
		if actions["dynamodb:DeleteItem"] != may || actions["dynamodb:BatchWriteItem"] {
			t.Errorf("%s deletes items: %v, want %v, and no more than that", prefix, actions["dynamodb:DeleteItem"],
				may)
		}
		for _, action := range []string{
			"dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "sqs:SendMessage", "scheduler:DeleteSchedule",
		} {
			if may && !actions[action] {
				t.Errorf("%s deletes instances, and does not have %s", prefix, action)
			}
		}
	}
}

// Activities of a queue with Client may call a client, except for deletions. Activities of other queues may not.
func TestWorkQueueProps_client_letsOnlyItsWorkerUseTheClient(t *testing.T) {
	t.Parallel()
	parsed := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"default", "payments"},
		WorkQueueProps: map[string]cdk.WorkQueueProps{"payments": {Client: true}},
	}, func(awscdk.Stack, *cdk.TaskHub) {})
	for name, may := range map[string]bool{"default": false, "payments": true} {
		lists, delays := false, false
		statements := statementsOf(parsed.find(t, "AWS::IAM::Role", "TaskHubWorker"+name+"Role"))
		for _, s := range statements {
			for _, arn := range s.resources {
				lists = lists || strings.Contains(arn, "/index/byCreation")
				delays = delays || strings.Contains(arn, "TaskHubTimers")
			}
		}
		if lists != may || delays != may || actionsOf(statements)["dynamodb:DeleteItem"] {
			t.Errorf("the worker of %s lists: %v, sends timers: %v, deletes: %v", name, lists, delays,
				actionsOf(statements)["dynamodb:DeleteItem"])
		}
		reported := parsed.find(t, functionType, "TaskHubWorker"+name).get("Environment", "Variables",
			"PERDURE_TIMERS_URL") != nil
		if reported != may {
			t.Errorf("the worker of %s has the variables for timers: %v", name, reported)
		}
	}
}

func TestOrchestratorAndWorkerRoles_mayNotReadIndexesOrDelete(t *testing.T) {
	t.Parallel()
	parsed := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders},
		func(awscdk.Stack, *cdk.TaskHub) {})
	for _, prefix := range []string{"TaskHubOrchestratorRole", "TaskHubWorkerdefaultRole"} {
		statements := statementsOf(parsed.find(t, "AWS::IAM::Role", prefix))
		if actionsOf(statements)["dynamodb:DeleteItem"] {
			t.Errorf("%s may delete items", prefix)
		}
		for _, s := range statements {
			for _, arn := range s.resources {
				if strings.Contains(arn, "/index/") {
					t.Errorf("%s: %v on %s", prefix, s.actions, arn)
				}
			}
		}
	}
}
