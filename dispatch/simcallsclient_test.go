package dispatch_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// patientHub is a hub that leaves nothing to chance as a client does: it is looked at less and less often, and the starts that nobody has named are counted.
type patientHub struct {
	*dynamo.Provider

	name   string
	starts map[string]string
}

// StartOrchestration gives a start, with each of its repetitions, the id that it has in every run of a seed.
func (h patientHub) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	drawn := s.StartID
	if len(drawn) != len(rand.Text()) {
		return h.Provider.StartOrchestration(ctx, s)
	}
	if h.starts[drawn] == "" {
		h.starts[drawn] = fmt.Sprint(h.name, " ", len(h.starts))
	}
	s.StartID = h.starts[drawn]
	in, err := h.Provider.StartOrchestration(ctx, s)
	if in.StartID == s.StartID {
		in.StartID = drawn
	}
	return in, err
}

func (h patientHub) WaitUpdate(ctx context.Context, _ string, look func(ctx context.Context) (bool, error)) error {
	for pause := time.Second; ; pause = min(2*pause, 5*time.Minute) {
		if done, err := look(ctx); done || err != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// clientOf is a client beside others.
func (x *exchange) clientOf(name string, stream uint64) *meddler {
	return &meddler{
		h: x.h, w: x.w, c: client.New(patientHub{x.h.Provider, name, map[string]string{}}), name: name, first: x.first,
		rng: mathrand.New(mathrand.NewPCG(x.seed, stream)), stays: exchangeStays,
	}
}

// exchangeStays is how long clients go on: longer than any trouble.
const exchangeStays = 20 * time.Hour

// asks has a client make calls, of accounts and of a ledger, some of which are those that traders make too. All have ids: each is repeated until it is
// answered.
func (x *exchange) asks(ctx context.Context) {
	m := x.clientOf("asker", 21)
	defer x.leaves(m)
	for n := range 2 + m.rng.IntN(4) {
		if m.rng.IntN(3) == 0 {
			m.moment(ctx)
		}
		c := x.newCall(m.rng, fmt.Sprint("asker/", n))
		to, op := c.Key, c.Op
		if c.Account {
			to = perdure.EntityInstanceID("account", c.Key)
		}
		id := c.ID
		if id == "" {
			id = chosenID + c.Label
		}
		asked := askedCall{instance: to, id: id}
		asked.err = m.insist(ctx, func(ctx context.Context) (err error) {
			switch {
			case c.Account && (n == 0 || c.Key != safeKey):
				asked.result, _, err = m.c.StartOrUpdate(ctx, perdure.EntityOrchestrationName("account"), nil, op, c.posting, client.WithInstanceID(to), client.WithIdempotencyKey(id))
			case c.Account:
				asked.result, err = m.c.CallEntity(ctx, "account", c.Key, op, c.posting, client.WithUpdateID(id))
			case c.Starts != 0:
				asked.result, _, err = m.c.StartOrUpdate(ctx, "ledger", ledger{Anew: c.Starts}, op, c.posting, client.WithInstanceID(to), client.WithIdempotencyKey(id))
			default:
				asked.result, err = m.c.Update(ctx, to, op, c.posting, client.WithUpdateID(id))
			}
			return err
		})
		if !m.patience(ctx) && weatherOf(asked.err) {
			m.wrong("ask", asked.err)
		}
		x.audit.mu.Lock()
		x.audit.asked = append(x.audit.asked, asked)
		x.audit.mu.Unlock()
	}
}

// meddling is what a client does to an instance.
type meddling struct {
	what string
	to   string
	// ends: the instance may end of it, or be another.
	ends bool
	do   func(x *exchange, ctx context.Context, m *meddler, id string)
}

func meddlings() []meddling {
	account := func(key string) string { return perdure.EntityInstanceID("account", key) }
	return []meddling{
		{"pause", account(safeKey), false, (*exchange).pauses},
		{"pause", "ledger-t", false, (*exchange).pauses},
		{"cancel", "ledger-t", true, (*exchange).cancels},
		{"terminate", "ledger-t", true, (*exchange).terminates},
		{"end", "ledger-t", true, (*exchange).closes},
		{"purge", "ledger-t", true, (*exchange).purges},
		{"cancel", account("b"), true, (*exchange).cancels},
		{"purge", account("b"), true, (*exchange).purges},
		{"cancel", "trader-1", true, (*exchange).cancels},
		{"terminate", "trader-1", true, (*exchange).terminates},
		{"purge", "trader-1", true, (*exchange).purges},
	}
}

// meddles does some of that, at moments that the seed chooses.
func (x *exchange) meddles(ctx context.Context) {
	m := x.clientOf("meddler", 22)
	defer x.leaves(m)
	for _, d := range x.meddlings {
		m.moment(ctx)
		d.do(x, ctx, m, d.to)
	}
}

// late are the errors of orders for what is not there yet, or not any more.
func late(err error) bool {
	return err == nil || errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrEnded) || errors.Is(err, provider.ErrAlreadyExists)
}

func (x *exchange) order(ctx context.Context, m *meddler, what string, f func(ctx context.Context) error) {
	if err := m.insist(ctx, f); !late(err) {
		m.wrong(what, err)
	}
}

func (x *exchange) cancels(ctx context.Context, m *meddler, id string) {
	x.order(ctx, m, "cancel", func(ctx context.Context) error { return m.c.Cancel(ctx, id, "enough") })
}

func (x *exchange) terminates(ctx context.Context, m *meddler, id string) {
	x.order(ctx, m, "terminate", func(ctx context.Context) error {
		return m.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageTerminate, InstanceID: id, Text: "enough", RequestedBy: "ann"})
	})
}

func (x *exchange) closes(ctx context.Context, m *meddler, id string) {
	x.order(ctx, m, "end", func(ctx context.Context) error {
		return m.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageEventRaised, InstanceID: id, Name: "end", EventID: "end", Data: encoded(m.h.t, 1)})
	})
}

func (x *exchange) purges(ctx context.Context, m *meddler, id string) {
	if err := m.purge(ctx, id, client.Force()); !late(err) {
		m.wrong("purge", err)
	}
}

// pauses has an instance stand still for a while, whichever life it is in.
func (x *exchange) pauses(ctx context.Context, m *meddler, id string) {
	var in provider.Instance
	x.order(ctx, m, "status", func(ctx context.Context) (err error) {
		in, err = m.h.Provider.ReadInstance(ctx, id)
		return err
	})
	if in.InstanceID == "" {
		return
	}
	send := func(message provider.Message) {
		x.order(ctx, m, "pause", func(ctx context.Context) error { return m.h.Provider.EnqueueForOrchestrator(ctx, message) })
	}
	send(pauseMessage(in, "p", "ann"))
	m.moment(ctx)
	for n := range 3 { // what a queue has moved to its dead letters comes late
		send(resumeMessage(in, fmt.Sprint("r", n), "bob"))
		time.Sleep(20 * time.Minute)
	}
}

// echo is a message that comes again when the queue has forgotten it.
type echo struct {
	url   string
	entry sqstypes.SendMessageBatchRequestEntry
	at    time.Time
}

const echoMark = "again-"

// hears notes what is sent from one instance to another, and has some of it come again: as from a process that stood still, and did not hear that it is answered.
func (x *exchange) hears(c simaws.Call) {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || x.echoes == 0 || *in.QueueUrl != x.h.Provider.Config().InboxURL {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range in.Entries {
		m, err := provider.DecodeMessage(*e.MessageBody)
		if err != nil || m.Kind != provider.MessageUpdateSent && m.Kind != provider.MessageUpdateAnswered || x.rng.Float64() >= x.echoes {
			continue
		}
		e.MessageDeduplicationId = aws.String(echoMark + aws.ToString(e.MessageDeduplicationId))
		e.Id = aws.String("e")
		x.heard = append(x.heard, echo{*in.QueueUrl, e, time.Now().Add(5*time.Minute + time.Duration(x.rng.IntN(60))*time.Minute)})
	}
}

// resounds sends again what is to come again by now.
func (x *exchange) resounds() {
	x.mu.Lock()
	var due []echo
	x.heard = slices.DeleteFunc(x.heard, func(e echo) bool {
		if e.at.After(time.Now()) {
			return false
		}
		due = append(due, e)
		return true
	})
	x.mu.Unlock()
	for i := range due {
		_, err := x.h.Cloud.Queues.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: &due[i].url, Entries: []sqstypes.SendMessageBatchRequestEntry{due[i].entry}})
		x.failed("echo", err)
	}
}

func (x *exchange) failed(what string, err error) {
	if err != nil {
		x.mu.Lock()
		x.errs = append(x.errs, fmt.Errorf("%s: %w", what, err))
		x.mu.Unlock()
	}
}

// leaves is for a client that is done.
func (x *exchange) leaves(m *meddler) {
	x.failed("client", errors.Join(m.errs...))
	x.mu.Lock()
	x.clients--
	x.mu.Unlock()
}

// done reports whether all clients but the closer have left, and all traders are over.
func (x *exchange) done(ctx context.Context) bool {
	x.mu.Lock()
	left := x.clients == 0 && len(x.heard) == 0
	x.mu.Unlock()
	for _, id := range x.traders {
		in, err := x.h.Provider.ReadInstance(ctx, id)
		if gone := errors.Is(err, provider.ErrNotFound); !gone && (err != nil || !in.Status.Terminal()) {
			return false
		}
	}
	return left
}

// closesAll has the watch look, as its rule does, until all traders are over, and then ends what they have traded with.
func (x *exchange) closesAll(ctx context.Context) {
	m := x.clientOf("closer", 23)
	plain := context.Background() // what looks is beside the hub, and nothing harms it
	for n := 1; m.patience(ctx) && !x.done(plain); n++ {
		time.Sleep(3 * time.Minute)
		if x.resounds(); n%x.watchEvery == 0 {
			_, _ = x.h.Timekeeper.Sweep(ctx)
		}
	}
	time.Sleep(3 * time.Hour) // what nobody waits for is done
	for n := range 40 {
		left := 0
		for _, id := range x.counters() {
			in, err := x.h.Provider.ReadInstance(plain, id)
			if err != nil || in.Status.Terminal() {
				continue
			}
			left++
			x.failed("cancel", x.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageCancel, InstanceID: id, Reason: "requested"}))
		}
		if left == 0 && n >= x.looksBehind {
			return
		}
		if time.Sleep(3 * time.Minute); n%5 == 4 || n < x.looksBehind {
			_, _ = x.h.Timekeeper.Sweep(ctx)
		}
	}
}

// counters are the instances that take calls.
func (x *exchange) counters() []string {
	ids := []string{"ledger-t", "ledger-u"}
	for _, key := range accountKeys {
		ids = append(ids, perdure.EntityInstanceID("account", key))
	}
	return ids
}

var accountKeys = []string{safeKey, "b", rushKey}
