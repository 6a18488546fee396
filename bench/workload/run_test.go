package workload_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/bench/workload"
)

// plain runs each orchestration in the goroutine of its caller.
type plain struct {
	off  int  // added to results
	idle bool // returns results without running activities
}

func (p plain) Run(_ context.Context, kind workload.Kind, in workload.Input) (int, error) {
	if kind != workload.Chain && kind != workload.Fan {
		return 0, errors.ErrUnsupported
	}
	if p.idle {
		return workload.Sum(in.N), nil
	}
	sum := p.off
	for i := range in.N {
		sum += workload.Noop(workload.NewPayload(in.ID, i))
	}
	return sum, nil
}

func (plain) Cancel(context.Context, string) error { return errors.ErrUnsupported }
func (plain) Close() error                         { return nil }

var size = workload.Size{
	Instances: 3, SequenceLength: 10, Within: time.Minute, InFlight: 1, Wide: 20, Short: 5, Long: 7,
}

func TestRun_counts_areThoseOfTheWork(t *testing.T) { // not parallel, because the probe is shared
	for name, want := range map[string][2]int64{
		workload.Sequence: {3, 30}, workload.Fan1000: {1, 20}, workload.Growth: {2, 12},
	} {
		o, err := workload.Run(t.Context(), plain{}, name, size)
		if err != nil || int64(o.Instances) != want[0] || o.Activities != want[1] {
			t.Errorf("%s: %d instances of %d activities and %v, not %v", name, o.Instances, o.Activities, err, want)
		}
	}
}

func TestRun_wrongResult_returnsError(t *testing.T) {
	for name, e := range map[string]plain{"is 46, not 45": {off: 1}, "activities ran, not": {idle: true}} {
		if _, err := workload.Run(t.Context(), e, workload.Sequence, size); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("want error %q, got %v", name, err)
		}
	}
	if _, err := workload.Run(t.Context(), plain{idle: true}, workload.Growth, size); err == nil {
		t.Error("growth without activities: no error")
	}
}

func TestRun_unknownWorkload_returnsError(t *testing.T) {
	if _, err := workload.Run(t.Context(), plain{}, "nap", size); err == nil || !strings.Contains(err.Error(), "nap") {
		t.Error(err)
	}
}
