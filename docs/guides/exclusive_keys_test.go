package guides_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// ledger detects concurrent settlements of one account.
type ledger struct {
	mu       sync.Mutex
	running  map[string]bool
	conflict bool
	settled  []string
}

func (l *ledger) Settle(_ context.Context, account string) (string, error) {
	l.mu.Lock()
	l.conflict = l.conflict || l.running[account]
	l.running[account] = true
	l.settled = append(l.settled, account)
	l.mu.Unlock()
	time.Sleep(time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[account] = false
	return "settled " + account, nil
}

var books = &ledger{running: map[string]bool{}}

func settleAll(ctx *perdure.OrchestrationContext, accounts []string) ([]string, error) {
	var settled []*perdure.Future[string]
	for _, account := range accounts {
		key := perdure.Exclusive("account " + account)
		settled = append(settled, perdure.CallActivity(ctx, books.Settle, account, key))
	}
	return perdure.AwaitAll(ctx, settled)
}

func TestExclusive_sameKey_runsOneAtATime(t *testing.T) {
	t.Parallel()
	books.settled = nil
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "settle", books.Settle)
	perdure.AddOrchestration(r, "settle-all", settleAll)
	env := perduretest.New(t, r)
	got := run[[]string](t, env, "settle-all", []string{"1", "2", "1", "1"})
	want := []string{"settled 1", "settled 2", "settled 1", "settled 1"}
	if !slices.Equal(got, want) || books.conflict || len(books.settled) != 4 {
		t.Errorf("%q, conflict: %t, settled %q", got, books.conflict, books.settled)
	}
}
