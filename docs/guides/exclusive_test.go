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

// ledger notices when an account is written to by two at once.
type ledger struct {
	mu     sync.Mutex
	open   map[string]bool
	clash  bool
	served []string
}

func (l *ledger) settle(_ context.Context, account string) (string, error) {
	l.mu.Lock()
	l.clash = l.clash || l.open[account]
	l.open[account] = true
	l.served = append(l.served, account)
	l.mu.Unlock()
	time.Sleep(time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[account] = false
	return "settled " + account, nil
}

var books = &ledger{open: map[string]bool{}}

func settleAll(ctx *perdure.OrchestrationContext, accounts []string) ([]string, error) {
	var settled []*perdure.Future[string]
	for _, account := range accounts {
		settled = append(settled, perdure.CallActivity(ctx, books.settle, account, perdure.Exclusive("account "+account)))
	}
	return perdure.Values(ctx, settled)
}

func TestExclusive(t *testing.T) {
	t.Parallel()
	books.served = nil
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "settle", books.settle)
	perdure.AddOrchestration(r, "settle-all", settleAll)
	env := perduretest.New(t, r)
	got := run[[]string](t, env, "settle-all", []string{"1", "2", "1", "1"})
	if !slices.Equal(got, []string{"settled 1", "settled 2", "settled 1", "settled 1"}) || books.clash || len(books.served) != 4 {
		t.Errorf("%q, two at once: %t, served %q", got, books.clash, books.served)
	}
}
