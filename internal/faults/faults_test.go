package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/faults"
)

type hang struct{}

func (hang) Error() string          { return "hang" }
func (hang) FaultKind() faults.Kind { return faults.Hang }

func TestReportError_wrappedFault_isObserved(t *testing.T) {
	t.Parallel()
	var seen []faults.Event
	ctx := faults.WithObserver(t.Context(), func(e faults.Event) { seen = append(seen, e) })
	faults.ReportError(ctx, "order-17", fmt.Errorf("turn: %w", hang{}))
	faults.ReportError(context.WithoutCancel(ctx), "order-18", hang{})
	faults.ReportError(ctx, "order-19", errors.New("throttled"))
	want := []faults.Event{
		{Kind: faults.Hang, InstanceID: "order-17", Err: hang{}},
		{Kind: faults.Hang, InstanceID: "order-18", Err: hang{}},
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

func TestReport_withoutObserver_doesNothing(t *testing.T) {
	t.Parallel()
	ctx := faults.WithObserver(t.Context(), nil)
	if faults.ObserverOf(ctx) != nil {
		t.Error("the context has an observer")
	}
	faults.Report(ctx, faults.Event{Kind: faults.Hang})
}
