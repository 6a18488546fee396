package cdk_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// statement is one of a policy, its lists made plain: a reference stands as the
// logical id it names.
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

// statementsOf reads every inline policy of a role.
func statementsOf(role resource) []statement {
	var all []statement
	policies, _ := role.get("Policies").([]any)
	for _, each := range policies {
		policy, _ := each.(map[string]any)
		all = append(all, statementsIn(policy["PolicyDocument"])...)
	}
	return all
}

// plain makes a list of texts of one or several values.
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

// roles are those of the hub, scheduler's too.
func roles(t *testing.T, parsed template) []resource {
	t.Helper()
	all := parsed.ofType("AWS::IAM::Role")
	if len(all) != 5 {
		t.Fatalf("%d roles, want one a function and the schedules' own", len(all))
	}
	return all
}

func TestNoRoleHoldsAWildcard(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	if n := len(parsed.ofType("AWS::IAM::Policy")) + len(parsed.ofType("AWS::IAM::ManagedPolicy")); n != 0 {
		t.Errorf("%d policies beside the roles' inline ones, which this test does not read", n)
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

// What each function may do with which queue. No emulator refuses the rest by
// itself, and AWS would refuse it only once it is needed.
func TestQueuePermissionsOfEachFunction(t *testing.T) {
	t.Parallel()
	const consume = "ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"
	const consumeAndSend = consume + " SendMessage"
	parsed := parse(t)
	for prefix, want := range map[string]map[string]string{
		"TaskHubOrchestratorRole": {
			"Inbox": consumeAndSend, "Workdefault": "SendMessage", "Timers": "SendMessage", "InboxDeadLetters": "SendMessage",
		},
		"TaskHubWorkerdefaultRole": {
			"Workdefault": consumeAndSend, "Inbox": "SendMessage", "WorkdefaultDeadLetters": "SendMessage",
		},
		"TaskHubRenewerRole": {
			"Timers": consumeAndSend, "Inbox": "SendMessage", "Workdefault": "GetQueueAttributes SendMessage",
			"InboxDeadLetters": consumeAndSend, "TimersDeadLetters": consumeAndSend,
			"WorkdefaultDeadLetters": consumeAndSend,
		},
		"TaskHubApiRole":      {"Inbox": "SendMessage", "Timers": "SendMessage"},
		"TaskHubScheduleRole": {"Timers": "SendMessage", "TimersDeadLetters": "SendMessage"},
	} {
		got := queueActions(statementsOf(parsed.find(t, "AWS::IAM::Role", prefix)))
		if !maps.Equal(got, want) {
			t.Errorf("%s\n got %v\nwant %v", prefix, got, want)
		}
	}
}

// queueActions tells the actions on each queue, sorted and without their prefix.
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

func TestOnlyTheRenewerCreatesSchedules(t *testing.T) {
	t.Parallel()
	for _, role := range roles(t, parse(t)) {
		renewer := strings.HasPrefix(role.id, "TaskHubRenewer")
		actions := actionsOf(statementsOf(role))
		for _, action := range []string{"scheduler:CreateSchedule", "iam:PassRole"} {
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

// Those who delete instances overwrite and delete items, tell parents and children, and delete the schedules of timers (R17).
func TestWhoDeletesInstances(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for prefix, may := range map[string]bool{
		"TaskHubApiRole": true, "TaskHubRenewerRole": true, "TaskHubOrchestratorRole": false, "TaskHubWorkerdefaultRole": false,
	} {
		actions := actionsOf(statementsOf(parsed.find(t, "AWS::IAM::Role", prefix)))
		if actions["dynamodb:DeleteItem"] != may || actions["dynamodb:BatchWriteItem"] {
			t.Errorf("%s deletes items: %v, want %v, and no more than that", prefix, actions["dynamodb:DeleteItem"], may)
		}
		for _, action := range []string{"dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "sqs:SendMessage", "scheduler:DeleteSchedule"} {
			if may && !actions[action] {
				t.Errorf("%s deletes instances, and does not have %s", prefix, action)
			}
		}
	}
}

func TestWorkersAndOrchestratorsDoNotReadIndexesOrDelete(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
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
