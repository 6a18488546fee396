package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider/wire"
)

// tenants returns an orchestration that calls one activity per tenant. The fairness key is the tenant, and each
// activity fails once.
func tenants() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "serve", func(ctx context.Context, tenant string) (string, error) {
		if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
			return "", errors.New("not now")
		}
		return tenant, nil
	})
	perdure.AddOrchestration(r, "tenants", func(ctx *perdure.OrchestrationContext, all []string) ([]string, error) {
		var fs []*perdure.Future[string]
		for _, tenant := range all {
			retried := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})
			fs = append(fs,
				perdure.CallActivityByName[string](ctx, "serve", tenant, retried, perdure.WithFairnessKey(tenant)))
		}
		return perdure.AwaitAll(ctx, fs)
	})
	return r
}

// groupsOfWork returns the message groups of each tenant's work items, in the order of sending.
func (h *hub) groupsOfWork() map[string][]string {
	h.t.Helper()
	groups := map[string][]string{}
	for _, c := range h.made() {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || *in.QueueUrl != h.Provider.Config().WorkQueues[perdure.DefaultQueue] {
			continue
		}
		for _, e := range in.Entries {
			w, err := wire.DecodeWorkItem(*e.MessageBody)
			if err != nil {
				h.t.Fatal(err)
			}
			if e.MessageDeduplicationId != nil {
				h.t.Error("got a deduplication ID on a standard queue, want none")
			}
			groups[w.FairnessKey] = append(groups[w.FairnessKey], aws.ToString(e.MessageGroupId))
		}
	}
	return groups
}

func TestFairnessKey_workItem_isInItsGroup(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: tenants()}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("tenants", []string{"Ada & Söhne", "zz", "Ada & Söhne", ""}))
		if string(end.Output) != `["Ada \u0026 Söhne","zz","Ada \u0026 Söhne",""]` {
			t.Fatalf("ended with %s", end.String())
		}

		got := h.groupsOfWork()
		for tenant, sends := range map[string]int{"Ada & Söhne": 4, "zz": 2, "": 2} {
			groups := got[tenant]
			if len(groups) != sends || len(slices.Compact(slices.Clone(groups))) != 1 {
				t.Errorf("%q: got groups %q, want %d sends in one group, including retries", tenant, groups, sends)
			}
			if (groups[0] == "") != (tenant == "") || tenant != "" && strings.Contains(groups[0], tenant) {
				t.Errorf("%q: got group %q", tenant, groups[0])
			}
		}
		if got["zz"][0] == got["Ada & Söhne"][0] {
			t.Error("two fairness keys have the same group")
		}
	})
}

// The message group of a work item does not order the items, so a released record is redelivered without the others.
func TestFairnessKey_sameKey_isNotOrdered(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: tenants()}, func(_ context.Context, h *hub) {
		h.start("tenants", []string{"a", "a"})
		h.turn(0)
		records := h.receive(h.Provider.Config().WorkQueues[perdure.DefaultQueue])
		if len(records) != 2 {
			t.Fatalf("got %d work items, want 2", len(records))
		}
		for _, r := range records {
			if r.Group != "" || r.Sequence != "" {
				t.Errorf("got a work item in group %q with sequence %q, want none", r.Group, r.Sequence)
			}
		}
	})
}

func TestFairnessKey_invalid_panics(t *testing.T) {
	t.Parallel()
	for _, key := range []string{strings.Repeat("k", 257), "\xff"} {
		func() {
			defer func() {
				if printed := fmt.Sprint(recover()); !strings.Contains(printed, "WithFairnessKey") {
					t.Errorf("%.10q: got panic %s, want one that names WithFairnessKey", key, printed)
				}
			}()
			perdure.WithFairnessKey(key)
		}()
	}
	perdure.WithFairnessKey(strings.Repeat("k", 256))
}
