package lambdahandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/simhub"
)

// operator returns the IAM name of a caller with a role.
func operator(name string) string {
	return "arn:aws:sts::123456789012:assumed-role/Operators/" + name
}

// operations is a hub with an instance for each operation, and its API behind a gateway that authenticates callers.
type operations struct {
	*gateways

	hub *simhub.Hub
}

func operate(t *testing.T) operations {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) { return 0, errors.New("not now") })
	perdure.AddOrchestration(r, "wait", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		perdure.CallActivityByName[int](
			ctx, "charge", 1, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 24 * time.Hour}),
		)
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	})
	hub, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return operations{open(t, hub.Provider), hub}
}

// as sends a request of a caller, and runs the hub until the hub has processed the request.
func (o operations) as(name, gateway, method, target, body string) apiResponse {
	o.t.Helper()
	o.caller = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: name},
	}
	a := o.byLambda(gateway, &apiRequest{
		method: method, target: target, body: body, header: []string{
			"X-Requested-By", "mallory", "X-Amzn-Request-Context", `{"authorizer":{"iam":{"userArn":"mallory"}}}`,
		},
	})
	o.caller = nil
	if a.Code >= http.StatusBadRequest {
		o.t.Fatalf("%s %s: got status %d, body %s", method, target, a.Code, a.Body)
	}
	o.runUntilIdle()
	return a
}

// runUntilIdle runs the functions of the hub until no work is pending, including redeliveries within seconds.
func (o operations) runUntilIdle() {
	for range 3 {
		for o.hub.Cloud.Step() {
		}
		time.Sleep(5 * time.Second)
	}
}

// wantBy checks the requester of the only event of a kind, in the history and in the log.
func (o operations) wantBy(instance string, kind history.Kind, operation, by string) {
	o.t.Helper()
	a := o.byHTTP(&apiRequest{method: get, target: "/v1/instances/" + instance + "/history"})
	var page struct {
		Items []history.Event `json:"items"`
	}
	if err := json.Unmarshal(a.Body, &page); err != nil {
		o.t.Fatal(err)
	}
	found := 0
	for i := range page.Items {
		e := &page.Items[i]
		if e.Kind == kind && (kind != history.ActivityCancelRequested || e.IsInput()) {
			if found++; e.RequestedBy != by {
				o.t.Errorf("%s of %q: got requester %q, want %q", kind, instance, e.RequestedBy, by)
			}
		}
	}
	if found != 1 {
		o.t.Errorf("got %d events %s of %q in %s", found, kind, instance, a.Body)
	}
	o.wantLogged(operation, instance, by)
}

func (o operations) wantLogged(operation, instance, by string) {
	o.t.Helper()
	if operation == "" {
		return
	}
	if strings.Contains(operation, " ") {
		operation = fmt.Sprintf("%q", operation)
	}
	want := fmt.Sprintf(
		"level=INFO msg=\"operation requested\" event=operation.requested operation=%s instance=%s requestedBy=%s\n",
		operation, instance, by,
	)
	if log := o.log.String(); strings.Count(log, want) != 1 {
		o.t.Errorf("want one log line %sin\n%s", want, log)
	}
}

// instance reads the state of an instance.
func (o operations) instance(id string) (in httpapi.Instance) {
	o.t.Helper()
	if err := json.Unmarshal(
		o.byHTTP(&apiRequest{method: get, target: "/v1/instances/" + id + "?pending=false"}).Body, &in,
	); err != nil {
		o.t.Fatal(err)
	}
	return in
}

// purgedBy returns the requester of a purge, from the tombstone of the instance.
func (o operations) purgedBy(id string) string {
	o.t.Helper()
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "i#" + id}, "sk": &types.AttributeValueMemberS{Value: "i"},
	}
	out, err := o.hub.Cloud.Table.GetItem(o.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("perdure"), Key: key,
	})
	if err != nil || out.Item["deleted"] == nil {
		o.t.Fatalf("purge of %q: got item %v, error %v", id, out, err)
	}
	by, _ := out.Item["purgedBy"].(*types.AttributeValueMemberS)
	if by == nil {
		return ""
	}
	return by.Value
}

// For each gateway, the IAM name of the caller is in history and in the log of the API for each start, event, cancel,
// termination and purge. Data of the request never replaces the name.
func TestCaller_isInHistoryAndLog(t *testing.T) {
	t.Parallel()
	for _, gateway := range []string{byAPI, byFunctionURL} {
		t.Run(gateway, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := operate(t)
				o.as(operator("starter"), gateway, post, "/v1/orchestrations/wait", `{"instanceId":"a","input":1}`)
				o.wantBy("a", history.OrchestrationStarted, "start", operator("starter"))
				o.as(operator("raiser"), gateway, post, "/v1/instances/a/events/nudge", "1")
				o.wantBy("a", history.ExternalEventRaised, "raise", operator("raiser"))
				o.as(operator("stopper"), gateway, post, "/v1/instances/a/activities/3/cancel", `{"message":"enough"}`)
				o.wantBy("a", history.ActivityCancelRequested, "cancel activity 3", operator("stopper"))
				o.as(operator("canceller"), gateway, post, "/v1/instances/a/cancel", "")
				o.wantBy("a", history.CancelRequested, "cancel", operator("canceller"))
				var found httpapi.CancellationPage
				if err := json.Unmarshal(
					o.byHTTP(&apiRequest{method: get, target: "/v1/instances/a/cancellations"}).Body, &found,
				); err != nil || len(found.Items) != 2 ||
					found.Items[0].RequestedBy != operator("stopper") ||
					found.Items[1].RequestedBy != operator("canceller") {
					t.Errorf("got cancellations %+v, error %v", found, err)
				}

				o.as(
					operator("starter"), gateway, post, "/v1/orchestrations/wait",
					`{"instanceId":"b","input":1,"delay":"1h"}`,
				)
				o.as(operator("terminator"), gateway, post, "/v1/instances/b/terminate", "")
				o.wantBy("b", history.OrchestrationTerminated, "terminate", operator("terminator"))
				if in := o.instance("b"); in.StartedBy != operator("starter") ||
					in.TerminatedBy != operator("terminator") {
					t.Errorf("got started by %q, terminated by %q", in.StartedBy, in.TerminatedBy)
				}

				o.as(operator("starter"), gateway, post, "/v1/orchestrations/wait", `{"instanceId":"c","input":1}`)
				for id, by := range map[string]string{
					"a": operator("purger-1"), "b": operator("purger-2"), "c": operator("purger-3"),
				} { // cancelled, terminated, and running
					o.as(by, gateway, remove, "/v1/instances/"+id+"?force=true", "")
					o.wantLogged("purge", id, by)
					if got := o.purgedBy(id); got != by {
						t.Errorf("requester of the purge of %q: got %q, want %q", id, got, by)
					}
				}
			})
		})
	}
}

// A job stores its requester, because the renewer that runs it has no caller.
func TestCaller_ofJob_isInHistoryOfEachInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := operate(t)
		job := func(by, body string) {
			time.Sleep(time.Second)
			a := o.as(operator(by), byAPI, post, "/v1/jobs", body)
			var j httpapi.Job
			if err := json.Unmarshal(a.Body, &j); err != nil || j.RequestedBy != operator(by) {
				t.Errorf("got %s, error %v", a.Body, err)
			}
			if want := fmt.Sprintf(
				"operation=%s job=%s requestedBy=%s\n", j.Operation, j.JobID, operator(by),
			); !strings.Contains(o.log.String(), want) {
				t.Errorf("want a log line %s", want)
			}
			if _, err := o.hub.Renewer.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.runUntilIdle()
		}
		for _, id := range []string{"a", "b", "c"} {
			o.as(
				operator("starter"), byAPI, post, "/v1/orchestrations/wait", fmt.Sprintf(
					`{"instanceId":%q,"input":1,"tags":{"n":%[1]q}}`, id,
				),
			)
		}
		job("canceller", `{"operation":"cancel","filter":{"tags":{"n":"a"}}}`)
		o.wantBy("a", history.CancelRequested, "", operator("canceller"))
		job("terminator", `{"operation":"terminate","filter":{"tags":{"n":"b"}}}`)
		o.wantBy("b", history.OrchestrationTerminated, "", operator("terminator"))
		job("purger", `{"operation":"purge","force":true,"filter":{"name":"wait"}}`)
		for _, id := range []string{"a", "b", "c"} {
			if got := o.purgedBy(id); got != operator("purger") {
				t.Errorf("requester of the purge of %q: got %q", id, got)
			}
		}
	})
}

// Without an authorizing gateway, the caller is unknown. The credentials of the API are not the caller.
func TestCaller_withoutIAM_isEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := operate(t)
		if a := o.byHTTP(&apiRequest{
			method: post, target: "/v1/orchestrations/wait", body: `{"instanceId":"a","input":1}`, header: []string{
				"X-Amzn-Request-Context", `{"authorizer":{"iam":{"userArn":"mallory"}}}`,
			},
		}); a.Code != http.StatusAccepted {
			t.Fatalf("got status %d: %s", a.Code, a.Body)
		}
		o.wantBy("a", history.OrchestrationStarted, "", "")
		o.wantLogged("start", "a", "client")
	})
}

// A gateway can report any name. Names that the engine uses are recorded as client, and long names are truncated.
func TestCaller_anyName_isNotTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := operate(t)
		for n, c := range []struct{ name, want string }{
			{"body", "client"}, {"engine", "client"}, {"parent:p", "client"}, {"", "client"}, {"a\x00b\u0085", "ab"}, {
				strings.Repeat("ü", 5000), history.TruncateMessage(
					strings.Repeat("ü", 5000), history.MaxRequesterBytes,
				),
			},
		} {
			id := fmt.Sprint("i", n)
			o.as(
				operator("starter"), byAPI, post, "/v1/orchestrations/wait", fmt.Sprintf(
					`{"instanceId":%q,"input":1}`, id,
				),
			)
			o.as(c.name, byAPI, post, "/v1/instances/"+id+"/activities/3/cancel", "")
			o.wantBy(id, history.ActivityCancelRequested, "", c.want)
		}
	})
}
