package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// operator is an alias with a name other than Client, so that a test hub can embed it together with client.Client.
type operator = admin.Client

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

func clock() time.Time { return began }

// identified is a provider that knows the identity of its credentials.
type identified struct{ *fakeprovider.Provider }

func (identified) Caller(context.Context) string { return "arn:aws:iam::123456789012:user/alice" }

func TestStartJob_caller_isRecorded(t *testing.T) {
	t.Parallel()
	const alice, bob = "arn:aws:iam::123456789012:user/alice", "bob's job"
	p := fakeprovider.New(clock, "hello")
	for name, tt := range map[string]struct {
		client *admin.Client
		ctx    context.Context //nolint:containedctx // each table row has its own context
		want   string
	}{
		"credentials": {admin.New(identified{p}), t.Context(), alice},
		"option":      {admin.New(identified{p}, admin.WithCaller(bob)), t.Context(), bob},
		"context": {
			admin.New(identified{p}, admin.WithCaller(bob)), client.ContextWithCaller(t.Context(), "carol"), "carol",
		},
		"empty name":          {admin.New(identified{p}, admin.WithCaller("")), t.Context(), ""},
		"empty context":       {admin.New(identified{p}), client.ContextWithCaller(t.Context(), ""), ""},
		"unknown credentials": {admin.New(p), t.Context(), ""},
	} {
		j, err := tt.client.StartJob(tt.ctx, admin.JobRequest{Operation: admin.OperationPurge, All: true})
		if err != nil || j.RequestedBy != tt.want {
			t.Errorf("%s: RequestedBy is %q, error %v; want %q", name, j.RequestedBy, err, tt.want)
		}
	}
}

func TestJobs_interceptors_runAroundChanges(t *testing.T) {
	t.Parallel()
	var calls []perdure.ClientCall
	var errs []error
	watch := perdure.Interceptor{ClientCall: func(
		ctx context.Context, c perdure.ClientCall, next func(context.Context) error,
	) {
		calls, errs = append(calls, c), append(errs, next(ctx))
	}}
	c := admin.New(fakeprovider.New(clock, "hello"), admin.WithClock(clock), admin.WithInterceptors(watch))
	if _, err := c.StartJob(t.Context(), admin.JobRequest{Operation: admin.OperationCancel}); err == nil {
		t.Error("StartJob started a job without a filter")
	}
	if _, err := c.StartJob(t.Context(), admin.JobRequest{Operation: admin.OperationCancel, All: true}); err != nil {
		t.Error(err)
	}
	_, _ = c.CancelJob(t.Context(), "j-1")
	want := []perdure.ClientCall{{Operation: "Bulk"}, {Operation: "CancelJob"}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if len(errs) == 2 && (errs[0] != nil || !errors.Is(errs[1], provider.ErrNotFound)) {
		t.Errorf("the interceptor got the errors %v; want nil and ErrNotFound", errs)
	}
}
