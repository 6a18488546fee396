package dynamo_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	stored "github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
)

// The interleavings of a rotation that could make a valid token invalid, or leave a hub without a key:
//
//	R1  an old process, a new key      a process that read the keys before the rotation signs
//	R2  a new process, an old token    the token of a removed process arrives at a process that starts later
//	R3  a verifier with a recent read  it has read the keys just before the rotation, and rate-limits further reads
//	R4  rotation during a deployment   processes start before, during and after the signing delay
//	R5  a key removed too early        messages, or asynchronous activities, have its tokens
//	R6  a cached key in a warm function, which was frozen for days
//	R7  a rotation that crashes        before or after a write, and is repeated
//	R8  two operators rotate at once   they add or remove keys
//	R9  a hub whose table cannot be read when a process has to read the keys again
//	R10 a wrong clock                  of the machine that adds the key
//	R11 a process that is frozen       while it reads the keys
const (
	signingDelay = 15 * time.Minute
	maxCached    = 24 * time.Hour
	lifetime     = maxCached + 28*24*time.Hour
)

// operator returns the keys as an operator rotates them.
func (k *keyring) operator() *tokens.Keys { return k.operatorAt(time.Now) }

// operatorAt returns an operator whose machine has another clock.
func (k *keyring) operatorAt(now func() time.Time) *tokens.Keys {
	return tokens.New(stored.New(k.cloud.Table, k.hub.Table), k.hub.Name, now, slog.New(slog.DiscardHandler))
}

// add adds a key and returns its number.
func (k *keyring) add() int64 {
	k.t.Helper()
	added, err := k.operator().Add(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return added.Number
}

// states returns the numbers and the states of the keys.
func (k *keyring) states() string {
	k.t.Helper()
	all, err := k.operator().List(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	var states []string
	for i := range all {
		states = append(states, strings.TrimPrefix(all[i].Item, "key#000000000")+" "+all[i].State)
	}
	return strings.Join(states, ", ")
}

// tokenPair has the token of a work item and the completion token of the same attempt.
type tokenPair struct{ work, completion string }

// sign returns the tokens that a process sends.
func (k *keyring) sign(p *dynamo.Provider) tokenPair {
	k.t.Helper()
	signer, err := p.CompletionTokens(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return tokenPair{k.token(p), signer.SignCompletion(&work)}
}

// key returns the number of the key of both tokens.
func (p tokenPair) key(t *testing.T) string {
	t.Helper()
	of := func(token string) string { return strings.Split(token, ".")[1] }
	if of(p.work) != of(p.completion) {
		t.Errorf("tokens of different keys: %s, %s", p.work, p.completion)
	}
	return of(p.work)
}

// wantKey fails the test unless a process signs with a key.
func (k *keyring) wantKey(p *dynamo.Provider, want, when string) {
	k.t.Helper()
	if got := k.sign(p).key(k.t); got != want {
		k.t.Errorf("%s: a process signs with key %s, want %s", when, got, want)
	}
}

// accepts reports whether a process accepts both tokens, and fails the test if it accepts one of them.
func (k *keyring) accepts(p *dynamo.Provider, pair tokenPair) bool {
	k.t.Helper()
	w, err := p.VerifyCompletionToken(k.t.Context(), pair.completion)
	if err != nil && !errors.Is(err, provider.ErrInvalidToken) || err == nil && w.InstanceID != work.InstanceID {
		k.t.Fatalf("%+v, %v", w, err)
	}
	if ofWork := k.opens(p, pair.work); ofWork != (err == nil) {
		k.t.Errorf("a process accepts the work item token: %v, the completion token: %v", ofWork, err == nil)
	}
	return err == nil
}

// onKeyring runs a test in virtual time.
func onKeyring(t *testing.T, test func(*keyring)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newKeyring(t)) })
}

// R1, R2: old and new processes accept the tokens of each other at any time of three rotations.
func TestKeyRotation_oldAndNewProcesses_acceptAllTokens(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		processes := []*dynamo.Provider{k.process(), k.process()}
		issued := []tokenPair{k.sign(processes[0])}
		for range 3 {
			k.add()
			for range 100 { // 50 minutes
				time.Sleep(30 * time.Second)
				processes = append(processes[:2], k.process())
				for _, p := range processes {
					issued = append(issued, k.sign(p))
				}
				for _, p := range processes {
					if last := issued[len(issued)-1]; !k.accepts(p, last) || !k.accepts(p, issued[0]) {
						t.Fatalf("a token of key %s or 1 is rejected, keys %s", last.key(t), k.states())
					}
				}
			}
		}
		if got, want := k.states(), "1 verifying, 2 verifying, 3 verifying, 4 signing"; got != want {
			t.Errorf("got keys %s, want %s", got, want)
		}
	})
}

// R3: a process has just read the keys, and does not read them again for a minute. A process that starts after the
// rotation must not sign with a key that the first one does not know.
func TestKeyRotation_verifierHasJustReadKeys_acceptsTokensOfNewProcess(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		verifier, first := k.process(), k.sign(k.process())
		hostile := tokenPair{
			strings.Replace(first.work, "w1.1.", "w1.9.", 1), strings.Replace(first.completion, "c1.1.", "c1.9.", 1),
		}
		for range 40 { // 20 minutes; the hostile tokens make the verifier read the keys at the worst time
			if k.accepts(verifier, hostile) {
				t.Fatal("a token of an unknown key is accepted")
			}
			if k.states() == "1 signing" {
				k.add()
			}
			if pair := k.sign(k.process()); !k.accepts(verifier, pair) {
				t.Fatalf("a token of key %s is rejected, keys %s", pair.key(t), k.states())
			}
			time.Sleep(30 * time.Second)
		}
		k.wantKey(k.process(), "2", "after the delay")
	})
}

// R4: processes that start after the rotation sign with the new key as soon as it is old enough, without another read.
func TestKeyRotation_processStartsDuringDelay_signsWithNewKeyAfterIt(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		before := k.process()
		k.wantKey(before, "1", "before the rotation")
		k.add()
		during := k.process()
		k.wantKey(during, "1", "during the delay")
		time.Sleep(signingDelay - time.Second)
		k.wantKey(during, "1", "at the end of the delay")
		k.wantKey(k.process(), "1", "at the end of the delay")
		time.Sleep(time.Second)
		k.set(nil)
		k.wantKey(during, "2", "after the delay")
		if n := k.polls(); n != 0 {
			t.Errorf("%d reads of the keys, want none", n)
		}
		k.wantKey(before, "1", "a process that has started before the rotation")
	})
}

// R5: a key whose tokens can be in messages cannot be removed, unless it has leaked.
func TestKeyRotation_keyRemovedTooEarly_isRejected(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		old := k.sign(k.process())
		remove := func(number int64, force bool) error {
			return k.operator().Remove(t.Context(), number, force)
		}
		wantInUse := func(number int64, force bool, when string) {
			t.Helper()
			if err := remove(number, force); !errors.Is(err, tokens.ErrKeyInUse) {
				t.Errorf("%s: key %d: got error %v, want that it is in use", when, number, err)
			}
		}
		wantInUse(1, false, "the only key")
		wantInUse(1, true, "the only key, by force")
		k.add()
		wantInUse(1, false, "after the rotation")
		wantInUse(2, true, "the newest key, by force")
		time.Sleep(signingDelay + lifetime - time.Second)
		wantInUse(1, false, "at the end of the lifetime")
		if !k.accepts(k.process(), old) {
			t.Error("a token is rejected before its key is removed")
		}
		time.Sleep(time.Second)
		if err := remove(1, false); err != nil {
			t.Errorf("after the lifetime: %v", err)
		}
		if err := remove(1, false); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("again: got error %v, want ErrNotFound", err)
		}
		k.add()
		latest := k.process()
		k.wantKey(latest, "2", "during the next rotation")
		if err := remove(2, true); err != nil || k.states() != "3 signing" {
			t.Errorf("by force: %v, keys %s", err, k.states())
		}
		time.Sleep(10 * time.Minute)
		k.wantKey(k.process(), "3", "after the removal of the leaked key")
		if pair := k.sign(latest); pair.key(t) != "2" || k.accepts(k.process(), pair) {
			t.Errorf("a token of key %s is accepted after its removal", pair.key(t))
		}
	})
}

// R5: the time at which the successor started to sign is unknown for a key that was written by hand.
func TestKeyRotation_successorWithoutCreationTime_keyIsNotRemoved(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		k.put("key#0000000001", secretOf("a"))
		k.put("key#0000000002", secretOf("b"))
		k.wantKey(k.process(), "2", "keys without creation times")
		time.Sleep(2 * lifetime)
		err := k.operator().Remove(t.Context(), 1, false)
		if !errors.Is(err, tokens.ErrKeyInUse) || !strings.Contains(err.Error(), "key 2, is unknown") {
			t.Errorf("got error %v, want that the time is unknown", err)
		}
		k.put("key#0000000003", "not a key") // it is no successor, and can be removed
		if got, want := k.states(), "1 verifying, 2 signing, 3 invalid"; got != want {
			t.Errorf("got keys %s, want %s", got, want)
		}
		for _, number := range []int64{3, 1} {
			if err := k.operator().Remove(t.Context(), number, number == 1); err != nil {
				t.Error(err)
			}
		}
		if got, want := k.states(), "2 signing"; got != want {
			t.Errorf("got keys %s, want %s", got, want)
		}
	})
}

// R6: a warm function or a polling process signs with a new key within a day, so that old keys can be removed.
func TestKeyRotation_warmProcess_signsWithNewKeyWithinADay(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		frozen, busy := k.process(), k.process()
		old := k.sign(frozen)
		k.wantKey(busy, "1", "before the rotation")
		k.add()
		time.Sleep(maxCached)
		k.set(nil)
		for range 100 {
			k.wantKey(busy, "2", "a day later")
		}
		if n := k.polls(); n != 1 {
			t.Errorf("%d reads of the keys, want 1", n)
		}
		time.Sleep(lifetime)
		if err := k.operator().Remove(t.Context(), 1, false); err != nil {
			t.Fatal(err)
		}
		k.wantKey(frozen, "2", "a function that was frozen for weeks")
		if k.accepts(frozen, old) {
			t.Error("the function accepts a token of the removed key")
		}
	})
}

// isPutOfKey reports whether a call writes a key.
func isPutOfKey(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.PutItemInput)
	return ok && strings.HasPrefix(in.Item["sk"].(*types.AttributeValueMemberS).Value, "key#")
}

// R7: a crash before the write changes nothing. A crash after the write, before the response, leaves a key that becomes
// the signing key like any other. A repetition adds another one.
func TestKeyRotation_crashesHalfWay_canBeRepeated(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"before the write": false, "after the write": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onKeyring(t, func(k *keyring) {
				t := k.t
				p := k.process()
				old := k.sign(p)
				k.set(func(_ context.Context, c simaws.Call, next func() error) error {
					if !isPutOfKey(c) {
						return next()
					}
					if written {
						if err := next(); err != nil {
							t.Error(err)
						}
					}
					return errors.New("the process was killed")
				})
				if _, err := k.operator().Add(t.Context()); err == nil {
					t.Fatal("got no error")
				}
				k.set(nil)
				want := map[bool]string{false: "1 signing", true: "1 signing, 2 new"}[written]
				if got := k.states(); got != want {
					t.Errorf("got keys %s, want %s", got, want)
				}
				k.add()
				time.Sleep(signingDelay)
				if latest := k.sign(k.process()); !k.accepts(p, latest) || !k.accepts(p, old) {
					t.Errorf("tokens are rejected after the repetition, keys %s", k.states())
				}
			})
		})
	}
}

// R8: two operators add keys between the read and the write of each other, and remove keys.
func TestKeyRotation_twoOperators_addDifferentKeys(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		k.sign(k.process())
		var other int64
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if isPutOfKey(c) && other == 0 {
				k.set(nil)
				other = k.add()
			}
			return next()
		})
		if own := k.add(); own != 3 || other != 2 {
			t.Errorf("got keys %d and %d, want 3 and 2", own, other)
		}
		// each of them wants to leave only the key that it has added
		var errs []error
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, ok := c.Input.(*dynamodb.DeleteItemInput); ok && errs == nil {
				k.set(nil)
				for _, number := range []int64{1, 3} {
					errs = append(errs, k.operator().Remove(t.Context(), number, true))
				}
			}
			return next()
		})
		if err := errors.Join(k.operator().Remove(t.Context(), 1, true),
			k.operator().Remove(t.Context(), 2, true)); err != nil {
			t.Error(err)
		}
		if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], tokens.ErrKeyInUse) || k.states() != "3 signing" {
			t.Errorf("got errors %v, keys %s", errs, k.states())
		}
	})
}

// R9: a process that cannot read the keys again signs with the cached ones, and tries once a minute.
func TestKeyRotation_tableUnreadable_cachedKeySigns(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		p := k.process()
		k.wantKey(p, "1", "before the rotation")
		k.add()
		time.Sleep(maxCached)
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsKeys(c) {
				return errors.New("refused")
			}
			return next()
		})
		for range 90 {
			k.wantKey(p, "1", "without the table")
			time.Sleep(time.Second)
		}
		if n := k.polls(); n != 2 {
			t.Errorf("%d reads of the keys in 90 s, want 2", n)
		}
		k.set(nil)
		time.Sleep(time.Minute)
		k.wantKey(p, "2", "with the table")
	})
}

// R10: the clock of the operator is slow, so that the key signs after two minutes, or it is fast.
func TestKeyRotation_operatorWithWrongClock_tokensAreAccepted(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"slow": -13 * time.Minute, "fast": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onKeyring(t, func(k *keyring) {
				t := k.t
				verifier := k.process()
				first := k.sign(verifier)
				if !k.accepts(verifier, first) { // it reads the keys as late as possible before the rotation
					t.Fatal("the first token is rejected")
				}
				operator := k.operatorAt(func() time.Time { return time.Now().Add(wrong) })
				if _, err := operator.Add(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 160 { // 80 minutes
					if tokens := k.sign(k.process()); !k.accepts(verifier, tokens) {
						t.Fatalf("a token of key %s is rejected, keys %s", tokens.key(t), k.states())
					}
					time.Sleep(30 * time.Second)
				}
				k.wantKey(k.process(), "2", "in the end")
			})
		})
	}
}

// R11: a process is frozen between the read of the keys and its response. The keys are as old as the read, so that the
// process reads them again.
func TestKeyRotation_processIsFrozenDuringRead_readsKeysAgain(t *testing.T) {
	t.Parallel()
	onKeyring(t, func(k *keyring) {
		t := k.t
		verifier, first := k.process(), k.sign(k.process())
		k.set(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if readsKeys(c) {
				k.set(nil)
				k.add()
				time.Sleep(time.Hour)
			}
			return err
		})
		if !k.accepts(verifier, first) {
			t.Error("a token of the old key is rejected")
		}
		if latest := k.sign(k.process()); latest.key(t) != "2" || !k.accepts(verifier, latest) {
			t.Errorf("a token of key %s is rejected, keys %s", latest.key(t), k.states())
		}
	})
}
