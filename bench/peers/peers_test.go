package peers_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/perdure/perdure/bench/peers"
	"github.com/perdure/perdure/bench/workload"
)

// small returns a size that takes a second or two.
func small() workload.Size {
	return workload.Size{
		Instances: 2, SequenceLength: 3, Within: time.Minute, InFlight: 2, Wide: 10, Short: 2, Long: 4, Stops: 1,
		StopsLimit: time.Second,
	}
}

// Run fails if a result or the number of activities is wrong. The subtests are not parallel, because the probe is
// shared.
func TestRun_enginesWithoutServer_doTheWork(t *testing.T) {
	for _, p := range peers.All() {
		switch p.Name {
		case "perdure", "go-workflows", "durabletask-go":
		default:
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			o, err := p.Open(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}()
			for _, name := range []string{workload.Sequence, workload.Fan1000, workload.Growth} {
				got, err := workload.Run(ctx, prefixed{o, name}, name, small())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got.Instances == 0 || got.Activities < 6 {
					t.Errorf("%s: %d instances of %d activities", name, got.Instances, got.Activities)
				}
			}
			if s := o.Engine.(workload.Counted).Store(); s.Calls == 0 || s.Time == 0 {
				t.Errorf("store: %d calls in %v", s.Calls, s.Time)
			}
		})
	}
}

// A perdure activity observes both a lost race and a cancel.
func TestRun_cancelledActivity_isMeasured(t *testing.T) {
	o, err := peers.All()[0].Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}()
	size := small()
	size.StopsLimit = 10 * time.Second
	for _, name := range []string{workload.Timeout, workload.Cancel} {
		got, err := workload.Run(t.Context(), o, name, size)
		if err != nil || got.Never || got.Seen <= 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Open returns an error if the server of a peer is missing.
func TestOpen_missingServer_returnsError(t *testing.T) {
	t.Parallel()
	for _, p := range peers.All() {
		switch p.Name {
		case "temporal", "restate", "dbos":
		default:
			continue
		}
		if o, err := p.Open(t.Context(), t.TempDir()); !errors.Is(err, fs.ErrNotExist) || o != nil {
			t.Errorf("%s: %v, %v", p.Name, o, err)
		}
	}
}

// prefixed adds a prefix to instance IDs, so that several workloads can run on one engine.
type prefixed struct {
	workload.Engine

	name string
}

func (p prefixed) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	in.ID = p.name + "-" + in.ID
	return p.Engine.Run(ctx, kind, in)
}
