package provider_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/perdure/perdure/provider"
)

// declined is a provider that declines all optional interfaces. Its Core is nil.
type declined struct {
	provider.Core
	provider.NoAnnotations
	provider.NoDeadLetterRecovery
	provider.NoJobs
	provider.NoMonitoring
	provider.NoRetentions
	provider.NoSchedules
}

var _ provider.Provider = declined{}

func TestProvider_withoutACapability_returnsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	p, ctx := declined{}, context.Background()
	errs := map[provider.Capability][]error{}
	add := func(c provider.Capability, err error) { errs[c] = append(errs[c], err) }
	for _, err := range p.DeadLetteredRecords(ctx) {
		add(provider.CapabilityDeadLetterRecovery, err)
	}
	add(provider.CapabilityDeadLetterRecovery, p.AnnotateDeadLetter(ctx, provider.DeadLetteredRecord{}, nil))
	add(provider.CapabilityAnnotations, p.Annotate(ctx, "", provider.Note{}))
	add(provider.CapabilityBulkJobs, p.PutJob(ctx, nil))
	_, err := p.ReadJob(ctx, "")
	add(provider.CapabilityBulkJobs, err)
	_, err = p.ListJobs(ctx)
	add(provider.CapabilityBulkJobs, err)
	_, _, err = p.MatchInstances(ctx, provider.Filter{}, "", 1)
	add(provider.CapabilityBulkJobs, err)
	_, err = p.ReadWorkers(ctx)
	add(provider.CapabilityMonitoring, err)
	_, err = p.CountWorkItems(ctx)
	add(provider.CapabilityMonitoring, err)
	_, err = p.CountAttention(ctx)
	add(provider.CapabilityMonitoring, err)
	for _, err := range p.DueInstances(ctx) {
		add(provider.CapabilityRetention, err)
	}
	_, err = p.ApplyRetention(ctx, "")
	add(provider.CapabilityRetention, err)
	add(provider.CapabilitySchedules, p.PutScheduleEntry(ctx, provider.ScheduleEntry{}))
	add(provider.CapabilitySchedules, p.DeleteScheduleEntry(ctx, provider.ScheduleEntry{}))
	for _, err := range p.ListSchedules(ctx, "") {
		add(provider.CapabilitySchedules, err)
	}
	for c, errs := range errs {
		want := provider.UnsupportedError{Capability: c}
		for i, err := range errs {
			err = fmt.Errorf("wrapped: %w", err)
			if !errors.Is(err, want) || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: call %d: error %v, want %v", c, i, err, want)
			}
		}
	}
	if err := p.ReportWorker(ctx, provider.WorkerReport{}); err != nil {
		t.Errorf("worker report: error %v, want none", err)
	}
}

func TestUnsupportedError_keepsTheTextsOfEarlierErrors(t *testing.T) {
	t.Parallel()
	for c, want := range map[provider.Capability]string{
		provider.CapabilityDeadLetters:    "hub does not support dead letters",
		provider.CapabilityReconcile:      "hub does not support reconcile",
		provider.CapabilityPreparedStarts: "hub does not support starts in a transaction",
		provider.CapabilityQueries:        "hub has no orchestrator function to query",
	} {
		if got := (provider.UnsupportedError{Capability: c}).Error(); got != want {
			t.Errorf("%s: %q, want %q", c, got, want)
		}
	}
	other := provider.UnsupportedError{Capability: provider.CapabilitySchedules}
	if errors.Is(other, provider.ErrQueriesUnsupported) {
		t.Error("errors of different capabilities are equal")
	}
}

// Each interface stays small enough to be implemented and replaced on its own.
func TestContract_interfaces_haveAtMost15Methods(t *testing.T) {
	t.Parallel()
	for _, i := range []reflect.Type{
		reflect.TypeFor[provider.Instances](), reflect.TypeFor[provider.Completions](),
		reflect.TypeFor[provider.Orchestrations](), reflect.TypeFor[provider.Rejections](),
		reflect.TypeFor[provider.WorkItems](), reflect.TypeFor[provider.Activities](),
		reflect.TypeFor[provider.Timers](), reflect.TypeFor[provider.Sweeps](),
		reflect.TypeFor[provider.Records](), reflect.TypeFor[provider.CrashMarkers](),
		reflect.TypeFor[provider.DeadLetterRecovery](), reflect.TypeFor[provider.Jobs](),
		reflect.TypeFor[provider.Monitoring](), reflect.TypeFor[provider.Retentions](),
		reflect.TypeFor[provider.Schedules](), reflect.TypeFor[provider.Poller](),
		reflect.TypeFor[provider.DeadLetters](), reflect.TypeFor[provider.Reconciler](),
		reflect.TypeFor[provider.Annotations](), reflect.TypeFor[provider.PayloadStore](),
		reflect.TypeFor[provider.StartPreparer](),
	} {
		if i.NumMethod() > 15 {
			t.Errorf("%s has %d methods, want at most 15", i, i.NumMethod())
		}
	}
}
