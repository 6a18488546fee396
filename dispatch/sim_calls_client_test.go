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
	"github.com/perdure/perdure/provider/wire"
)

// seededHub is a deterministic hub for clients. Its polls become less frequent, and it replaces generated start IDs
// with a fixed value.
type seededHub struct {
	*dynamo.Provider

	name   string
	starts map[string]string
}

// StartOrchestration replaces a generated start ID, in each repetition of the start, with an ID that is the same in
// each run of a seed.
func (h seededHub) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
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

func (h seededHub) WaitUpdate(ctx context.Context, _ string, poll func(ctx context.Context) (bool, error)) error {
	for pause := time.Second; ; pause = min(2*pause, 5*time.Minute) {
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// newSimClient returns a client.
func (x *callSimulation) newSimClient(name string, stream uint64) *simClient {
	return &simClient{
		h: x.h, w: x.w, c: client.New(seededHub{x.h.Provider, name, map[string]string{}}), name: name, first: x.first,
		rng: mathrand.New(mathrand.NewPCG(x.seed, stream)), stays: clientsStay,
	}
}

// clientsStay is the time for which clients stay active. It exceeds the duration of all problems.
const clientsStay = 20 * time.Hour

// callAccounts calls operations of accounts and of a ledger as a client. Some calls have IDs that traders also use. All
// calls have IDs, and each is repeated until it has a result.
func (x *callSimulation) callAccounts(ctx context.Context) {
	m := x.newSimClient("asker", 21)
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
		record := clientCall{instance: to, id: id}
		record.err = m.repeatCall(ctx, func(ctx context.Context) (err error) {
			switch {
			case c.Account && (n == 0 || c.Key != safeKey):
				record.result, _, err = m.c.StartOrUpdate(ctx, perdure.EntityOrchestrationName("account"), nil, op,
					c.posting, client.WithInstanceID(to), client.WithIdempotencyKey(id))
			case c.Account:
				record.result, err = m.c.CallEntity(ctx, "account", c.Key, op, c.posting, client.WithUpdateID(id))
			case c.Starts != 0:
				record.result, _, err = m.c.StartOrUpdate(ctx, "ledger", ledger{Continues: c.Starts}, op, c.posting,
					client.WithInstanceID(to), client.WithIdempotencyKey(id))
			default:
				record.result, err = m.c.Update(ctx, to, op, c.posting, client.WithUpdateID(id))
			}
			return err
		})
		if !m.isActive(ctx) && isInjectedFault(record.err) {
			m.wrong("ask", record.err)
		}
		x.audit.mu.Lock()
		x.audit.clientCalls = append(x.audit.clientCalls, record)
		x.audit.mu.Unlock()
	}
}

// clientAction is an action of a client on an instance.
type clientAction struct {
	what string
	to   string
	// ends is set if the instance may end or be replaced.
	ends bool
	do   func(x *callSimulation, ctx context.Context, m *simClient, id string)
}

func clientActions() []clientAction {
	account := func(key string) string { return perdure.EntityInstanceID("account", key) }
	return []clientAction{
		{"pause", account(safeKey), false, (*callSimulation).pauses},
		{"pause", "ledger-t", false, (*callSimulation).pauses},
		{"cancel", "ledger-t", true, (*callSimulation).cancels},
		{"terminate", "ledger-t", true, (*callSimulation).terminates},
		{"end", "ledger-t", true, (*callSimulation).closes},
		{"purge", "ledger-t", true, (*callSimulation).purges},
		{"cancel", account("b"), true, (*callSimulation).cancels},
		{"purge", account("b"), true, (*callSimulation).purges},
		{"cancel", "trader-1", true, (*callSimulation).cancels},
		{"terminate", "trader-1", true, (*callSimulation).terminates},
		{"purge", "trader-1", true, (*callSimulation).purges},
	}
}

// runActions performs the client actions at times that the seed selects.
func (x *callSimulation) runActions(ctx context.Context) {
	m := x.newSimClient("meddler", 22)
	defer x.leaves(m)
	for _, d := range x.clientActions {
		m.moment(ctx)
		d.do(x, ctx, m, d.to)
	}
}

// late reports whether an error is acceptable for a request to an instance that does not exist yet, or has ended.
func late(err error) bool {
	return err == nil || errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrEnded) ||
		errors.Is(err, provider.ErrAlreadyExists)
}

func (x *callSimulation) order(ctx context.Context, m *simClient, what string, f func(ctx context.Context) error) {
	if err := m.repeatCall(ctx, f); !late(err) {
		m.wrong(what, err)
	}
}

func (x *callSimulation) cancels(ctx context.Context, m *simClient, id string) {
	x.order(ctx, m, "cancel", func(ctx context.Context) error { return m.c.Cancel(ctx, id, "enough") })
}

func (x *callSimulation) terminates(ctx context.Context, m *simClient, id string) {
	x.order(ctx, m, "terminate", func(ctx context.Context) error {
		return m.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageTerminate, InstanceID: id, Text: "enough", RequestedBy: "ann",
		})
	})
}

func (x *callSimulation) closes(ctx context.Context, m *simClient, id string) {
	x.order(ctx, m, "end", func(ctx context.Context) error {
		return m.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: id, Name: "end", EventID: "end", Data: encoded(m.h.t, 1),
		})
	})
}

func (x *callSimulation) purges(ctx context.Context, m *simClient, id string) {
	if err := m.purge(ctx, id, client.Force()); !late(err) {
		m.wrong("purge", err)
	}
}

// pauses sends a pause and later resumes, to any incarnation of an instance.
func (x *callSimulation) pauses(ctx context.Context, m *simClient, id string) {
	var in provider.Instance
	x.order(ctx, m, "status", func(ctx context.Context) (err error) {
		in, err = m.h.Provider.ReadInstance(ctx, id)
		return err
	})
	if in.InstanceID == "" {
		return
	}
	send := func(message provider.Message) {
		x.order(ctx, m, "pause", func(ctx context.Context) error {
			return m.h.Provider.EnqueueForOrchestrator(ctx, message)
		})
	}
	send(pauseMessage(in, "p", "ann"))
	m.moment(ctx)
	for n := range 3 { // later requests may be dead letters for a while
		send(resumeMessage(in, fmt.Sprint("r", n), "bob"))
		time.Sleep(20 * time.Minute)
	}
}

// delayedCopy is a message that is repeated after the deduplication interval of SQS.
type delayedCopy struct {
	url   string
	entry sqstypes.SendMessageBatchRequestEntry
	at    time.Time
}

const copyMark = "again-"

// recordMessage records messages between instances, and repeats some of them later, like a process that was frozen and
// received no response.
func (x *callSimulation) recordMessage(c simaws.Call) {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	if !ok || x.copyRate == 0 || *in.QueueUrl != x.h.Provider.Config().InboxURL {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range in.Entries {
		m, err := wire.DecodeMessage(*e.MessageBody)
		if err != nil || m.Kind != provider.MessageUpdateSent && m.Kind != provider.MessageUpdateAnswered ||
			x.rng.Float64() >= x.copyRate {
			continue
		}
		e.MessageDeduplicationId = aws.String(copyMark + aws.ToString(e.MessageDeduplicationId))
		e.Id = aws.String("e")
		x.copies = append(x.copies, delayedCopy{
			*in.QueueUrl, e,
			time.Now().Add(5*time.Minute + time.Duration(x.rng.IntN(60))*time.Minute),
		})
	}
}

// sendDueCopies sends the copies that are due.
func (x *callSimulation) sendDueCopies() {
	x.mu.Lock()
	var due []delayedCopy
	x.copies = slices.DeleteFunc(x.copies, func(e delayedCopy) bool {
		if e.at.After(time.Now()) {
			return false
		}
		due = append(due, e)
		return true
	})
	x.mu.Unlock()
	for i := range due {
		_, err := x.h.Cloud.Queues.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{
			QueueUrl: &due[i].url, Entries: []sqstypes.SendMessageBatchRequestEntry{due[i].entry},
		})
		x.failed("echo", err)
	}
}

func (x *callSimulation) failed(what string, err error) {
	if err != nil {
		x.mu.Lock()
		x.errs = append(x.errs, fmt.Errorf("%s: %w", what, err))
		x.mu.Unlock()
	}
}

// leaves ends a client and records its errors.
func (x *callSimulation) leaves(m *simClient) {
	x.failed("client", errors.Join(m.errs...))
	x.mu.Lock()
	x.clients--
	x.mu.Unlock()
}

// done reports whether all clients except the closer have left and all traders have ended.
func (x *callSimulation) done(ctx context.Context) bool {
	x.mu.Lock()
	left := x.clients == 0 && len(x.copies) == 0
	x.mu.Unlock()
	for _, id := range x.traders {
		in, err := x.h.Provider.ReadInstance(ctx, id)
		if gone := errors.Is(err, provider.ErrNotFound); !gone && (err != nil || !in.Status.Terminal()) {
			return false
		}
	}
	return left
}

// endAll runs sweeps until all traders have ended, and then ends the accounts and ledgers.
func (x *callSimulation) endAll(ctx context.Context) {
	m := x.newSimClient("closer", 23)
	plain := context.Background() // these reads are outside the simulation and never fail
	for n := 1; m.isActive(ctx) && !x.done(plain); n++ {
		time.Sleep(3 * time.Minute)
		if x.sendDueCopies(); n%x.sweepEvery == 0 {
			_, _ = x.h.Renewer.Sweep(ctx)
		}
	}
	time.Sleep(3 * time.Hour) // unawaited activities end
	for n := range 40 {
		left := 0
		for _, id := range x.callees() {
			in, err := x.h.Provider.ReadInstance(plain, id)
			if err != nil || in.Status.Terminal() {
				continue
			}
			left++
			x.failed("cancel", x.h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageCancel, InstanceID: id, Reason: "requested",
			}))
		}
		if left == 0 && n >= x.finalSweeps {
			return
		}
		if time.Sleep(3 * time.Minute); n%5 == 4 || n < x.finalSweeps {
			_, _ = x.h.Renewer.Sweep(ctx)
		}
	}
}

// callees returns the instances that are called.
func (x *callSimulation) callees() []string {
	ids := []string{"ledger-t", "ledger-u"}
	for _, key := range accountKeys {
		ids = append(ids, perdure.EntityInstanceID("account", key))
	}
	return ids
}

var accountKeys = []string{safeKey, "b", burstKey}
