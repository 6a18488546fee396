package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
)

// workedHub is a hub with given work items and dead letters.
type workedHub struct {
	*fakeprovider.Provider
	*fakeprovider.Letters

	work map[string]int
}

// CountWorkItems implements provider.Monitoring.
func (h workedHub) CountWorkItems(context.Context) (map[string]int, error) { return h.work, nil }

// eachTransport runs f with a client of a backend, and with a client of its HTTP API.
func eachTransport(t *testing.T, hub interface {
	client.Backend
	admin.Backend
}, f func(t *testing.T, a *admin.Client),
) {
	t.Helper()
	t.Run("direct", func(t *testing.T) { t.Parallel(); f(t, admin.New(hub, admin.WithClock(clock))) })
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		api := httptest.NewServer(httpapi.New(client.New(hub), admin.New(hub, admin.WithClock(clock)),
			httpapi.WithLogger(slog.New(slog.DiscardHandler))))
		t.Cleanup(api.Close)
		a, err := admin.Dial(api.URL)
		if err != nil {
			t.Fatal(err)
		}
		f(t, a)
	})
}

func TestQueues_workWithoutRecentReport_hasNoWorker(t *testing.T) {
	t.Parallel()
	const couriers, printers, idle = "couriers", "printers", "reports"
	h := workedHub{
		fakeprovider.New(clock), fakeprovider.NewLetters(clock, memhub.DefaultQueue, provider.QueueInbox),
		map[string]int{memhub.DefaultQueue: 3, couriers: 2, printers: 1, idle: 0},
	}
	long := began.Add(-provider.WorkerMissingAfter - time.Second)
	if err := h.ReportWorker(t.Context(), provider.WorkerReport{
		Queue: memhub.DefaultQueue, BuildID: "b7", StartedAt: began,
	}); err != nil {
		t.Fatal(err)
	}
	h.SetWorkers(map[string]time.Time{couriers: long, idle: long})
	h.Bury(provider.QueueInbox, "corrupt: a", "{}")
	some := func(n int) *int { return &n }
	want := []admin.Queue{
		{Name: couriers, Depth: some(2), Worker: &admin.QueueWorker{LastReportedAt: long}, NoWorker: true},
		{
			Name: memhub.DefaultQueue, Depth: some(3), DeadLetters: some(0),
			Worker: &admin.QueueWorker{BuildID: "b7", StartedAt: began, LastReportedAt: began},
		},
		{Name: provider.QueueInbox, DeadLetters: some(1)},
		{Name: printers, Depth: some(1), NoWorker: true},
		{Name: idle, Depth: some(0), Worker: &admin.QueueWorker{LastReportedAt: long}},
	}
	eachTransport(t, h, func(t *testing.T, a *admin.Client) {
		t.Helper()
		got, err := a.Queues(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("queues (-want +got):\n%s, error %v", diff, err)
		}
	})
}

// A work queue without access to dead letters has no number of them.
func TestQueues_noAccessToDeadLetters_areListed(t *testing.T) {
	t.Parallel()
	eachTransport(t, fakeprovider.New(clock), func(t *testing.T, a *admin.Client) {
		t.Helper()
		got, err := a.Queues(t.Context())
		if err != nil || len(got) != 3 || got[0].Name != memhub.DefaultQueue ||
			got[1].Name != history.ExclusiveQueue(memhub.DefaultQueue) || got[0].DeadLetters != nil {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
}

// withoutMonitoring is a provider that supports no monitoring.
type withoutMonitoring struct {
	admin.Backend
	provider.NoMonitoring
}

func TestQueues_providerWithoutMonitoring_isUnsupported(t *testing.T) {
	t.Parallel()
	hub := fakeprovider.New(clock)
	for name, b := range map[string]admin.Backend{
		"methods that are unsupported": withoutMonitoring{Backend: hub},
		"no methods":                   struct{ admin.Backend }{hub},
	} {
		_, err := admin.New(b).Queues(t.Context())
		if !errors.Is(err, provider.UnsupportedError{Capability: provider.CapabilityMonitoring}) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
