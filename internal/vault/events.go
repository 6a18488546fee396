package vault

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// storesAtOnce is how many payloads of a turn are stored side by side. A write takes some 30 ms, and a payload is up to 32 MiB in memory.
const storesAtOnce = 16

// SealEvents encodes the payloads of events of an execution in place, except those of some kinds of events. It stores
// large payloads concurrently.
func (v *Vault) SealEvents(ctx context.Context, about perdure.PayloadInfo, events []history.Event, except ...history.Kind) error {
	if v == nil {
		return nil
	}
	var b batch
	for i := range events {
		if slices.Contains(except, events[i].Kind) {
			continue
		}
		events[i].EachPayload(func(p history.EventPayload) {
			what := about
			what.Kind = p.Kind
			if p.Name != "" {
				what.Name = p.Name
			}
			b.do(v.Stores() && len(*p.Payload) > perdure.MaxPayloadBytes/2, func() error {
				sealed, err := v.SealPayload(ctx, what, *p.Payload)
				if err == nil {
					*p.Payload = sealed
				}
				return err
			})
		})
	}
	return b.wait()
}

// SealFailure encodes the details of a failure and its causes in place. If the codec cannot encode details (IsFinal),
// they are omitted, and the failure says so. Any other error is returned.
func (v *Vault) SealFailure(ctx context.Context, about perdure.PayloadInfo, f *history.Failure) error {
	if v == nil {
		return nil
	}
	about.Kind = perdure.PayloadErrorDetails
	for ; f != nil; f = f.Cause {
		sealed, err := v.SealPayload(ctx, about, f.Details)
		switch {
		case err == nil:
			f.Details = sealed
		case IsFinal(err):
			f.OmitDetails(err.Error())
		default:
			return err
		}
	}
	return nil
}

// Arrival is a payload of a message to an execution, received or about to be sent.
type Arrival struct {
	About   perdure.PayloadInfo
	Payload *history.Payload
}

// Take encodes the received payloads that their senders did not encode, in place. If the payload store holds a payload
// for a message, Take makes a copy that the execution owns.
func (v *Vault) Take(ctx context.Context, arrived []Arrival) error {
	var b batch
	for i := range arrived {
		a := &arrived[i]
		aside := v.Stores() && (len(*a.Payload) > perdure.MaxPayloadBytes/2 || a.Payload.StorageKey() != "")
		b.do(aside, func() error {
			sealed, err := v.SealPayload(ctx, a.About, *a.Payload)
			if err == nil {
				sealed, err = v.Own(ctx, a.About, sealed)
			}
			if err == nil {
				*a.Payload = sealed
			}
			return err
		})
	}
	return b.wait()
}

// OwnAll calls Own for all payloads concurrently, and replaces them in place. Payloads that are gone remain unchanged.
func (v *Vault) OwnAll(ctx context.Context, all []Arrival) error {
	var b batch
	for i := range all {
		a := &all[i]
		b.do(true, func() error {
			owned, err := v.Own(ctx, a.About, *a.Payload)
			if err == nil {
				*a.Payload = owned
			}
			return err
		})
	}
	return b.wait()
}

// Mail copies stored payloads that events of an execution send to other instances, also in responses: one copy for each
// message.
func (v *Vault) Mail(ctx context.Context, x provider.Origin, events []history.Event) error {
	if !v.Stores() {
		return nil
	}
	var b batch
	for i := range events {
		provider.EachMessagePayload(x, &events[i], func(from, to string) { v.mail(ctx, &b, x, from, to) })
	}
	return b.wait()
}

// mail copies what one event sends.
func (v *Vault) mail(ctx context.Context, b *batch, x provider.Origin, from, to string) {
	b.do(true, func() error {
		err := v.store.CopyPayload(ctx, from, to)
		if errors.Is(err, provider.ErrNotFound) { // not the instance
			err = perdure.ErrPayloadNotFound
		}
		if err != nil {
			return &perdure.PayloadError{Payload: perdure.PayloadInfo{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID}, Key: from, Err: err}
		}
		return nil
	})
}

// aheadBytes bounds what is fetched before it is wanted, all together: it must still be in the cache then.
const aheadBytes = cacheBytes / 2

// fetch has what lies in the store of a payload in the cache, and with it what is likely to be wanted next, unless the first is there already. Who opens one that is
// not there then fetches it again, and has the error.
func (v *Vault) fetch(ctx context.Context, of *history.EventPayload, ahead []history.EventPayload) {
	if s, ok := of.Payload.Encoded(); !ok || !v.Stores() || v.cache.has(s.SHA256) {
		return
	}
	var b batch
	room := int64(aheadBytes)
	for _, p := range append([]history.EventPayload{*of}, ahead...) {
		s, ok := p.Payload.Encoded()
		if room -= s.Bytes; !ok || s.Key == "" || s.Bytes > cachedMost || room < 0 {
			break
		}
		if !v.cache.has(s.SHA256) {
			b.do(true, func() error {
				_, _ = v.stored(ctx, &s)
				return nil
			})
		}
	}
	_ = b.wait() // it has none
}

// batch is calls of which some are made side by side. The first error is its own: no call is begun behind it.
type batch struct {
	running sync.WaitGroup
	room    chan struct{}
	mu      sync.Mutex
	err     error
}

// do makes a call, aside on a goroutine of its own.
func (b *batch) do(aside bool, call func() error) {
	if b.failed() != nil {
		return
	}
	if !aside {
		b.note(call())
		return
	}
	if b.room == nil {
		b.room = make(chan struct{}, storesAtOnce)
	}
	b.room <- struct{}{}
	b.running.Go(func() {
		defer func() { <-b.room }()
		b.note(call())
	})
}

func (b *batch) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

func (b *batch) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// wait waits for all calls.
func (b *batch) wait() error {
	b.running.Wait()
	return b.failed()
}
