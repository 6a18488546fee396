package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

// reading is an orchestration that reads texts, as updates, and says of each how it begins and how long it is.
type reading struct {
	Left  int      // that it still reads
	Alone bool     // one at a time
	Slow  bool     // each takes an activity
	Read  []string // so far
}

func reads(ctx *perdure.OrchestrationContext, r reading) ([]string, error) {
	var opts []perdure.UpdateHandlerOption
	if r.Alone {
		opts = append(opts, perdure.Serialized())
	}
	err := perdure.SetUpdateHandler(ctx, "read", func(ctx *perdure.OrchestrationContext, text string) (int, error) {
		if r.Slow {
			if _, err := perdure.CallActivity(ctx, inc, 1).Await(ctx); err != nil {
				return 0, err
			}
		}
		r.Left--
		r.Read = append(r.Read, describeText(text))
		perdure.RaiseEvent(ctx, ctx.InstanceID(), "read", 1)
		return len(text), nil
	}, opts...)
	if err != nil {
		return nil, err
	}
	for r.Left > 0 {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "read").Await(ctx); err != nil {
			return nil, err
		}
	}
	return r.Read, nil
}

func describeText(text string) string { return fmt.Sprintf("%.3s:%d", text, len(text)) }

// textsOf are texts of so many bytes, each of which begins with its number.
func textsOf(n, bytes int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%03d", i)+strings.Repeat("x", bytes-3))
	}
	return texts
}

// wantRead sends texts to one instance, each an update by which the instance may be started, and wants them to be read as they were sent.
func wantRead(t *testing.T, o simhub.Options, r reading, texts []string) {
	t.Helper()
	o.Registry = registry()
	perdure.AddOrchestration(o.Registry, "reads", reads)
	perdure.AddOrchestration(o.Registry, "has-read", func(ctx *perdure.OrchestrationContext, texts []int) (int, error) {
		var fs []*perdure.Future[int]
		for i, bytes := range texts {
			fs = append(fs, perdure.CallUpdate[int](ctx, "reader", "read", textsOf(i+1, bytes)[i], perdure.WithStart("reads", r)))
		}
		return len(fs), perdure.WhenAll(ctx, perdure.Awaitables(fs)...)
	})
	inBubble(t, o, func(_ context.Context, h *hub) {
		var sizes []int
		want := make([]string, len(texts))
		for i, text := range texts {
			sizes, want[i] = append(sizes, len(text)), describeText(text)
		}
		in := h.start("has-read", sizes)
		h.serveFor(24 * time.Hour)
		h.wantOutput(in, fmt.Sprint(len(texts)))
		reader := in
		reader.InstanceID = "reader"
		h.wantOutput(h.read(reader), `["`+strings.Join(want, `","`)+`"]`)
		h.wantEmpty()
	})
}

// An update's input is there for its handler in the very turn that takes it, however large it is: with the start, while nothing else runs, and behind others.
func TestR27LargeInputsAreThereInTheTurnThatTakesThem(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]simhub.Options{"warm": {}, "cold": {CacheBytes: -1}} {
		for _, bytes := range []int{100, 2 << 10, 150_000} {
			for _, alone := range []bool{false, true} {
				for _, slow := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %d bytes, alone %v, slow %v", name, bytes, alone, slow), func(t *testing.T) {
						t.Parallel()
						wantRead(t, o, reading{Left: 3, Alone: alone, Slow: slow}, textsOf(3, bytes))
					})
				}
			}
		}
	}
}

// More than memory is to hold of what waits lies where it came, and is read from there.
func TestR27LargeInputsThatWaitLieInHistory(t *testing.T) {
	t.Parallel()
	const waiting, bytes = 50, 150_000 // 7.5 MB, of which memory holds 4
	wantRead(t, simhub.Options{}, reading{Left: waiting, Alone: true, Slow: true}, textsOf(waiting, bytes))
}
