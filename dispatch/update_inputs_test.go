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

// reading is the input of an orchestration that reads texts as updates, and returns the start and length of each.
type reading struct {
	Left  int      // texts that it still expects
	Alone bool     // serialize the handler
	Slow  bool     // call an activity for each text
	Read  []string // texts so far
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

// textsOf returns n texts of the given size, each of which starts with its number.
func textsOf(n, bytes int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%03d", i)+strings.Repeat("x", bytes-3))
	}
	return texts
}

// wantRead sends texts to one instance as updates that may start it, and fails the test unless the instance reads the
// unaltered texts.
func wantRead(t *testing.T, o simhub.Options, r reading, texts []string) {
	t.Helper()
	o.Registry = registry()
	perdure.AddOrchestration(o.Registry, "reads", reads)
	perdure.AddOrchestration(o.Registry, "has-read", func(ctx *perdure.OrchestrationContext, texts []int) (int, error) {
		var fs []*perdure.Future[int]
		for i, bytes := range texts {
			fs = append(fs, perdure.CallUpdate[int](ctx, "reader", "read", textsOf(i+1, bytes)[i],
				perdure.WithStart("reads", r)))
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

// The input of an update of any size is available to its handler in the turn that accepts it: with the start, alone,
// and after other updates.
func TestR27_inputOfAnySize_isAvailableInTheAcceptingTurn(t *testing.T) {
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

// Waiting inputs beyond the memory limit are read from history.
func TestR27_waitingInputsExceedTheMemoryLimit_areReadFromHistory(t *testing.T) {
	t.Parallel()
	const waiting, bytes = 50, 150_000 // 7.5 MB, and the memory limit is 4 MB
	wantRead(t, simhub.Options{}, reading{Left: waiting, Alone: true, Slow: true}, textsOf(waiting, bytes))
}
