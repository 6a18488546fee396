package optional

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Workers tests that reports show whether a work queue has workers.
func Workers() kit.Group {
	return kit.Group{Name: "workers", Optional: provider.CapabilityMonitoring, Cases: []kit.Case{
		{Name: "NoWorkerHasReported", Run: noneReported},
		{Name: "ReportBelongsToQueue", Run: reportOfAQueue},
		{Name: "RepeatedReportKeepsStartTime", Run: reportAtWork, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "WorkItemsAreCounted", Run: workItemsCounted},
	}}
}

func reports(f *kit.Fixture) map[string]provider.WorkerReport {
	f.T.Helper()
	reports, err := f.Provider.ReadWorkers(f.Ctx())
	f.Must(err)
	return reports
}

func noneReported(f *kit.Fixture) {
	f.WantEqual("reports", len(reports(f)), 0)
	r := reports(f)[kit.Queue]
	if !r.Missing(f.Now()) {
		f.T.Error("worker that never reported is not reported as missing")
	}
}

func reportOfAQueue(f *kit.Fixture) {
	before := f.Now().Add(-time.Second)
	f.Must(f.Provider.ReportWorker(f.Ctx(), provider.WorkerReport{Queue: kit.Queue, BuildID: "b1", StartedAt: f.Now()}))
	f.Must(f.Provider.ReportWorker(f.Ctx(), provider.WorkerReport{Queue: kit.Queue, BuildID: "b2", StartedAt: f.Now()}))
	reports := reports(f)
	if r := reports[kit.Queue]; len(reports) != 1 || r.Queue != kit.Queue || r.BuildID != "b2" ||
		r.StartedAt.Before(before) || r.SeenAt.Before(before) || r.Missing(f.Now()) {
		f.T.Errorf("worker reports: got %s", kit.Text(reports))
	}
}

func reportAtWork(f *kit.Fixture) {
	f.Must(f.Provider.ReportWorker(f.Ctx(), provider.WorkerReport{Queue: kit.Queue, BuildID: "b1", StartedAt: f.Now()}))
	started := reports(f)[kit.Queue].StartedAt
	f.Advance(provider.WorkerMissingAfter + time.Second)
	if r := reports(f)[kit.Queue]; !r.Missing(f.Now()) {
		f.T.Errorf("worker is not reported as missing: %s", kit.Text(r))
	}
	f.Must(f.Provider.ReportWorker(f.Ctx(), provider.WorkerReport{Queue: kit.Queue, BuildID: "b1"}))
	if r := reports(f)[kit.Queue]; !r.StartedAt.Equal(started) || r.Missing(f.Now()) {
		f.T.Errorf("report %s of a worker that started at %v", kit.Text(r), started)
	}
}

func workItemsCounted(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		kit.Activity(kit.OtherQueue), kit.Exclusively(kit.Queue, "a"))
	f.Locked(kit.OtherQueue)
	counts, err := f.Provider.CountWorkItems(f.Ctx())
	f.Must(err)
	f.WantEqual("counts", counts, map[string]int{kit.Queue: 2, kit.OtherQueue: 1, history.ExclusiveQueue(kit.Queue): 1})
}
