package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

// This file has the code of the simulation of calls. Traders post to accounts, which are entities, and to ledgers,
// which are orchestrations with update handlers.

// posting is the input of an operation. Its label is unique, so that the operation can be found in results and states.
type posting struct {
	Label string `json:"label"`
	N     int    `json:"n"`
	// Activity is the activity that the operation awaits, if any.
	Activity string `json:"activity"`
}

// receipt is the result of an operation: its label, the number of operations so far, and their sum.
type receipt struct {
	Label string `json:"label"`
	Count int    `json:"count"`
	Sum   int    `json:"sum"`
}

// book is the state of an account or a ledger.
type book struct {
	Posted []string `json:"posted"` // except the many labels of a rush
	Count  int      `json:"count"`
	Sum    int      `json:"sum"`
}

func (b *book) post(p posting) receipt {
	if !strings.HasPrefix(p.Label, burstKey) {
		b.Posted = append(slices.Clip(b.Posted), p.Label)
	}
	b.Count++
	b.Sum += p.N
	return receipt{p.Label, b.Count, b.Sum}
}

func (b *book) equal(o *book) bool {
	return b.Count == o.Count && b.Sum == o.Sum && slices.Equal(b.Posted, o.Posted)
}

// postSlowly awaits an activity between the read and the change of the state.
func (b *book) postSlowly(ctx *perdure.OrchestrationContext, p posting) (receipt, error) {
	seen := *b
	if _, err := perdure.CallActivityByName[string](ctx, p.Activity, p.Label).Await(ctx); err != nil {
		return receipt{}, err
	}
	r := seen.post(p)
	*b = seen
	return r, nil
}

var errNoPost = errors.New("not posted")

// corrupt changes the state and fails. It does not panic, because the stack in a panic's error differs in each run.
func (b *book) corrupt(p posting) (receipt, error) {
	b.post(p)
	return receipt{}, errNoPost
}

// Names of the operations.
const (
	opPost   = "post"
	opSlow   = "post-slowly"
	opDamage = "spoil"
	opClose  = "close"
)

// ledger is the input of an orchestration whose operations are updates. It continues as new after Anew operations.
type ledger struct {
	Book      book `json:"book"`
	Continues int  `json:"anew"`
	Taken     int  `json:"taken"`
}

// runLedger runs a ledger. An older build only has the operation post.
func runLedger(ctx *perdure.OrchestrationContext, l ledger, older bool) (book, error) {
	handle := func(name string, f func(ctx *perdure.OrchestrationContext, p posting) (receipt, error)) error {
		return perdure.SetUpdateHandler(ctx, name, func(ctx *perdure.OrchestrationContext, p posting) (receipt, error) {
			r, err := f(ctx, p)
			if l.Taken++; l.Taken == l.Continues {
				// other updates run when the event arrives
				perdure.RaiseEvent(ctx, ctx.InstanceID(), "full", l.Taken)
			}
			return r, err
		}, perdure.Serialized())
	}
	err := handle(opPost, func(_ *perdure.OrchestrationContext, p posting) (receipt, error) {
		return l.Book.post(p), nil
	})
	if !older {
		err = errors.Join(err, handle(opSlow, func(ctx *perdure.OrchestrationContext, p posting) (receipt, error) {
			return l.Book.postSlowly(ctx, p)
		}),
			handle(opDamage, func(*perdure.OrchestrationContext, posting) (receipt, error) {
				return receipt{}, errNoPost
			}))
	}
	end := perdure.WaitForExternalEvent[int](ctx, "end")
	full := perdure.WaitForExternalEvent[int](ctx, "full")
	if err != nil {
		return l.Book, err
	}
	if first, err := perdure.WhenAny(ctx, end, full); err != nil || first == 0 {
		return l.Book, err
	}
	return perdure.ContinueAsNew[book](ctx, ledger{Book: l.Book, Continues: l.Continues})
}

// call is one call of a trader.
type call struct {
	Key     string // of the account, or the ID of a ledger
	Account bool
	Op      string
	posting

	ID     string // update ID chosen by the trader
	Starts int    // starts a missing ledger that continues as new after so many operations; 0 means no start
	// Later awaits the result at the end. CancelsAfter cancels the wait after that time, or at once if negative. 0
	// means never.
	Later        bool
	CancelsAfter time.Duration
	Pause        time.Duration // before the call
}

// traderInput is the input of a trader. It continues as new before the call Anew, with its open calls; 0 means never.
type traderInput struct {
	Calls     []call
	Continues int
	Reported  []string // results of earlier executions
}

func (c *call) make(ctx *perdure.OrchestrationContext) *perdure.Future[receipt] {
	var opts []perdure.CallUpdateOption
	if c.ID != "" {
		opts = append(opts, perdure.WithUpdateID(c.ID))
	}
	if c.Account {
		return perdure.CallEntity[receipt](ctx, "account", c.Key, c.Op, c.posting, opts...)
	}
	if c.Starts != 0 {
		opts = append(opts, perdure.WithStart("ledger", ledger{Continues: c.Starts}))
	}
	return perdure.CallUpdate[receipt](ctx, c.Key, c.Op, c.posting, opts...)
}

// describe describes the result of a call.
func describe(r receipt, err error) (string, error) {
	if err == nil {
		return r.Label, nil
	}
	if e, ok := errors.AsType[*perdure.CallUpdateError](err); ok {
		return e.Type, nil
	}
	return "", err
}

func trades(ctx *perdure.OrchestrationContext, t traderInput) (all []string, err error) {
	all = t.Reported
	var later []*perdure.Future[receipt]
	for i := range t.Calls {
		if i == t.Continues && i > 0 {
			return perdure.ContinueAsNew[[]string](ctx, traderInput{Calls: t.Calls[i:], Reported: all})
		}
		c := &t.Calls[i]
		if c.Pause > 0 {
			if err := perdure.Sleep(ctx, c.Pause); err != nil {
				return all, err
			}
		}
		f := c.make(ctx)
		switch {
		case c.Later:
			later = append(later, f)
			continue
		case c.CancelsAfter < 0:
			f.Cancel("no matter")
			continue
		case c.CancelsAfter > 0:
			first, err := perdure.WhenAny(ctx, f, perdure.CreateTimer(ctx, c.CancelsAfter))
			if err != nil {
				return all, err
			}
			if first == 1 {
				all = append(all, "given up")
				continue
			}
		}
		was, err := describe(f.Await(ctx))
		if err != nil {
			return all, err
		}
		all = append(all, was)
	}
	for _, f := range later {
		was, err := describe(f.Await(ctx))
		if err != nil {
			return all, err
		}
		all = append(all, was)
	}
	return all, nil
}

// bursts posts to an account many times, up to the limit of waiting updates concurrently.
func bursts(ctx *perdure.OrchestrationContext, n int) (int, error) {
	const atOnce = 300
	for from := 0; from < n; from += atOnce {
		var fs []*perdure.Future[receipt]
		for i := from; i < min(n, from+atOnce); i++ {
			fs = append(fs, perdure.CallEntity[receipt](ctx, "account", burstKey, opPost, posting{
				Label: callLabel(burstKey, i), N: 1,
			}))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return from, err
		}
	}
	return n, nil
}

func tradingRegistry() *perdure.Registry {
	r := addTrading(perdure.NewRegistry(), false)
	perdure.AddEntity(r, "account",
		operationOf(opPost, posts), operationOf(opSlow, (*book).postSlowly),
		operationOf(opDamage, func(b *book, _ *perdure.OrchestrationContext, p posting) (receipt, error) {
			return b.corrupt(p)
		}),
		operationOf(opClose, closesBook, perdure.DeleteState()))
	return r
}

// olderRegistry returns a build that only has the operations post and close. It rejects others, and differs from a
// history that contains them.
func olderRegistry() *perdure.Registry {
	r := addTrading(perdure.NewRegistry(), true)
	perdure.AddEntity(r, "account", operationOf(opPost, posts), operationOf(opClose, closesBook, perdure.DeleteState()))
	return r
}

func posts(b *book, _ *perdure.OrchestrationContext, p posting) (receipt, error) {
	return b.post(p), nil
}

func closesBook(b *book, _ *perdure.OrchestrationContext, p posting) (receipt, error) {
	return receipt{p.Label, b.Count, b.Sum}, nil
}

func operationOf(
	name string, f func(b *book, ctx *perdure.OrchestrationContext, p posting) (receipt, error),
	opts ...perdure.OperationOption,
) perdure.EntityOperation[book] {
	return perdure.Operation(name, func(ctx *perdure.OrchestrationContext, b *book, p posting) (receipt, error) {
		return f(b, ctx, p)
	}, opts...)
}

// addTrading adds the orchestrations and activities of all builds.
func addTrading(r *perdure.Registry, older bool) *perdure.Registry {
	perdure.AddOrchestration(r, "trader", trades)
	perdure.AddOrchestration(r, "rusher", bursts)
	perdure.AddOrchestration(r, "ledger", func(ctx *perdure.OrchestrationContext, l ledger) (book, error) {
		return runLedger(ctx, l, older)
	})
	perdure.AddActivity(r, "dwell", func(ctx context.Context, label string) (string, error) {
		select {
		case <-time.After(2 * time.Second):
			return label, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	perdure.AddActivity(r, "kills", func(ctx context.Context, label string) (string, error) {
		simhub.Die(ctx)
		return label, nil
	})
	perdure.AddActivity(r, "marathon", func(ctx context.Context, label string) (string, error) {
		_, err := marathon(ctx, 40)
		return label, err
	})
	return r
}
