package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Reports show whether a work queue has workers.
func workers() group {
	return group{"workers", []testCase{
		{name: "NoneHasReported", run: noneReported},
		{name: "AReportIsOfAQueue", run: reportOfAQueue},
		{name: "WhoIsAtWorkHasNotStartedAgain", run: reportAtWork, needs: []Capability{VirtualTime}},
		{name: "WorkItemsAreCounted", run: workItemsCounted},
	}}
}

func (f *fixture) reports() map[string]provider.WorkerReport {
	f.t.Helper()
	reports, err := f.p.ReadWorkers(f.ctx())
	f.must(err)
	return reports
}

func noneReported(f *fixture) {
	f.wantEqual("reports", len(f.reports()), 0)
	r := f.reports()[Queue]
	if !r.Missing(f.Now()) {
		f.t.Error("worker that never reported is not reported as missing")
	}
}

func reportOfAQueue(f *fixture) {
	before := f.Now().Add(-time.Second)
	f.must(f.p.ReportWorker(f.ctx(), provider.WorkerReport{Queue: Queue, BuildID: "b1", StartedAt: f.Now()}))
	f.must(f.p.ReportWorker(f.ctx(), provider.WorkerReport{Queue: Queue, BuildID: "b2", StartedAt: f.Now()}))
	reports := f.reports()
	if r := reports[Queue]; len(reports) != 1 || r.Queue != Queue || r.BuildID != "b2" || r.StartedAt.Before(before) || r.SeenAt.Before(before) || r.Missing(f.Now()) {
		f.t.Errorf("worker reports: %s", text(reports))
	}
}

func reportAtWork(f *fixture) {
	f.must(f.p.ReportWorker(f.ctx(), provider.WorkerReport{Queue: Queue, BuildID: "b1", StartedAt: f.Now()}))
	started := f.reports()[Queue].StartedAt
	f.Advance(provider.WorkerMissingAfter + time.Second)
	if r := f.reports()[Queue]; !r.Missing(f.Now()) {
		f.t.Errorf("worker is not reported as missing: %s", text(r))
	}
	f.must(f.p.ReportWorker(f.ctx(), provider.WorkerReport{Queue: Queue, BuildID: "b1"}))
	if r := f.reports()[Queue]; !r.StartedAt.Equal(started) || r.Missing(f.Now()) {
		f.t.Errorf("report %s of a worker that started at %v", text(r), started)
	}
}

func workItemsCounted(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue), activity(Queue), activity(OtherQueue), exclusively(Queue, "a"))
	f.locked(OtherQueue)
	counts, err := f.p.CountWorkItems(f.ctx())
	f.must(err)
	f.wantEqual("counts", counts, map[string]int{Queue: 2, OtherQueue: 1, history.ExclusiveQueue(Queue): 1})
}
