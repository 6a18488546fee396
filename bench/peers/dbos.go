package peers

import (
	"context"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/bench/servers"
	"github.com/perdure/perdure/bench/workload"
)

func dbosPeer() Peer {
	return Peer{
		Name: "dbos", Version: "0.8.0, PostgreSQL 18.4", Server: true,
		Where: "PostgreSQL server with its files in memory (tmpfs); an activity is a step, " +
			"or a child workflow if several run in parallel",
		Open: openDBOS,
	}
}

const dbosConnections = 20

func openDBOS(ctx context.Context, folder string) (*Opened, error) {
	o := &Opened{}
	s, err := servers.StartPostgres(ctx, filepath.Join(folder, "node"))
	if s != nil {
		o.addServer(s)
	}
	if err != nil {
		return o.failed(err)
	}
	e := &dbosEngine{}
	config, err := pgxpool.ParseConfig(s.URL)
	if err != nil {
		return o.failed(err)
	}
	config.MaxConns, config.ConnConfig.Tracer = dbosConnections, statements{&e.tally}
	e.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return o.failed(err)
	}
	o.Engine = e
	e.c, err = dbos.NewDBOSContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: benchName, SystemDBPool: e.pool, Logger: discard(),
	})
	if err != nil {
		return o.failed(err)
	}
	dbos.RegisterWorkflow(e.c, dbChain)
	dbos.RegisterWorkflow(e.c, dbFan)
	dbos.RegisterWorkflow(e.c, dbRace)
	dbos.RegisterWorkflow(e.c, dbHold)
	dbos.RegisterWorkflow(e.c, dbChild)
	if err := e.c.Launch(); err != nil {
		return o.failed(err)
	}
	return o, nil
}

// statements counts SQL statements.
type statements struct{ t *tally }

type statementKey struct{}

func (s statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, time.Now())
}

func (s statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if began, ok := ctx.Value(statementKey{}).(time.Time); ok {
		s.t.add(began)
	}
}

type dbosEngine struct {
	tally

	c    dbos.DBOSContext
	pool *pgxpool.Pool
}

// Run refers to each workflow by its function, because the engine looks it up so.
func (e *dbosEngine) Run(_ context.Context, kind workload.Kind, in workload.Input) (int, error) {
	var h dbos.WorkflowHandle[int]
	var err error
	switch id := dbos.WithWorkflowID(in.ID); kind {
	case workload.Chain:
		h, err = dbos.RunWorkflow(e.c, dbChain, in, id)
	case workload.Fan:
		h, err = dbos.RunWorkflow(e.c, dbFan, in, id)
	case workload.Race:
		h, err = dbos.RunWorkflow(e.c, dbRace, in, id)
	default:
		h, err = dbos.RunWorkflow(e.c, dbHold, in, id)
	}
	if err != nil {
		return 0, err
	}
	return h.GetResult()
}

func (e *dbosEngine) Cancel(_ context.Context, id string) error { return dbos.CancelWorkflow(e.c, id) }

// Close does nothing: connections end with the server.
func (e *dbosEngine) Close() error { return nil }

func dbStep(ctx dbos.DBOSContext, in workload.Payload) (int, error) {
	return dbos.RunAsStep(ctx, func(context.Context) (int, error) {
		return workload.Noop(in), nil
	}, dbos.WithStepName("noop"))
}

func dbBlock(ctx dbos.DBOSContext, id string) (int, error) {
	return dbos.RunAsStep(ctx, func(ctx context.Context) (int, error) {
		return 1, workload.Block(ctx, id, nil)
	}, dbos.WithStepName("block"))
}

func dbChain(ctx dbos.DBOSContext, in workload.Input) (int, error) {
	sum := 0
	for i := range in.N {
		v, err := dbStep(ctx, workload.NewPayload(in.ID, i))
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// dbChild is one activity of a fan-out. It is a workflow, because the steps of a workflow run one at a time.
func dbChild(_ dbos.DBOSContext, in workload.Payload) (int, error) { return workload.Noop(in), nil }

func dbFan(ctx dbos.DBOSContext, in workload.Input) (int, error) {
	hs := make([]dbos.WorkflowHandle[int], in.N)
	for i := range hs {
		var err error
		if hs[i], err = dbos.RunWorkflow(ctx, dbChild, workload.NewPayload(in.ID, i)); err != nil {
			return 0, err
		}
	}
	sum := 0
	for _, h := range hs {
		v, err := h.GetResult()
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// dbRace limits a step by a timeout of the workflow's context, because the engine has no select. The timeout is the
// timer of the race.
func dbRace(ctx dbos.DBOSContext, in workload.Input) (int, error) {
	limited, cancel := dbos.WithTimeout(ctx, workload.RaceTimer)
	defer cancel()
	time.AfterFunc(workload.RaceTimer, func() { workload.Mark(workload.TimerMark(in.ID)) })
	_, _ = dbBlock(limited, in.ID) // returns when its context ends
	return 0, nil
}

func dbHold(ctx dbos.DBOSContext, in workload.Input) (int, error) { return dbBlock(ctx, in.ID) }
