package tokens

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/worktoken"
)

// TokenLifetime is the time for which tokens of a key can be in use after the next key has started to sign: a process
// signs with the old key for MaxSigningAge. Its last message waits 14 days in a queue, and 14 days in a dead-letter
// queue.
const TokenLifetime = MaxSigningAge + 28*24*time.Hour

// The states of keys. All keys but invalid items verify tokens.
const (
	StateNew      = "new"       // it does not sign yet
	StateSigning  = "signing"   // it signs tokens
	StateReplaced = "verifying" // a newer key signs
	StateInvalid  = "invalid"   // the item is not a key
)

// Key describes a signing key of a hub, without its secret.
type Key struct {
	// Item is the sort key of the item, and Number its number, or 0 if the item has none.
	Item   string
	Number int64
	// CreatedAt is zero if a program that does not record the time has written the item.
	CreatedAt time.Time
	// Problem is the reason why the item is not a key. It is nil for a key.
	Problem error
	// State is one of the states of keys. List and Add set it.
	State string
	// UsedUntil is the time until which messages can have tokens of the key. It is zero for the newest key, and if the
	// creation time of its successor is unknown. List sets it.
	UsedUntil time.Time

	secret []byte
}

// SignsFrom returns the time from which the key signs, unless a newer key does. It is zero if the key has no creation
// time.
func (k *Key) SignsFrom() time.Time {
	if k.CreatedAt.IsZero() {
		return time.Time{}
	}
	return k.CreatedAt.Add(SigningDelay)
}

func (k *Key) isValid() bool { return k.Problem == nil }

// stateOf returns the state of a key at a time.
func (k *Key) stateOf(signs bool, now time.Time) string {
	switch {
	case !k.isValid():
		return StateInvalid
	case signs:
		return StateSigning
	case k.SignsFrom().After(now):
		return StateNew
	default:
		return StateReplaced
	}
}

// decode decodes the item of a key.
func decode(it table.Item) Key {
	k := Key{Item: table.GetString(it, table.AttrSK), Number: max(table.SequenceOf(it, skKeys), 0)}
	var err error
	switch k.secret, err = base64.StdEncoding.DecodeString(table.GetString(it, attrSecret)); {
	case k.Number == 0:
		k.Problem = errors.New("the sort key does not end with a positive number")
	case err != nil:
		k.Problem = fmt.Errorf("decode %s: %w", attrSecret, err)
	case len(k.secret) < secretBytes:
		k.Problem = fmt.Errorf("the %s has %d bytes, at least %d are required", attrSecret, len(k.secret), secretBytes)
	}
	k.CreatedAt, _ = table.DecodeTime(it, table.AttrCreated) // a hand-written time counts as none
	return k
}

// keyring has the keys of a hub and the items that are not keys, sorted by sort key.
type keyring []Key

// valid returns the keys.
func (r keyring) valid() (keys []*Key) {
	for i := range r {
		if r[i].isValid() {
			keys = append(keys, &r[i])
		}
	}
	return keys
}

// signing returns the key that signs at a time: the newest one that is old enough, otherwise the oldest one.
func (r keyring) signing(now time.Time) (key *Key) {
	for i := range slices.Backward(r) {
		if !r[i].isValid() {
			continue
		}
		if key = &r[i]; !key.SignsFrom().After(now) {
			break
		}
	}
	return key
}

// next returns the number of the next key. Numbers of existing items are not used again, because processes cache keys
// by their number.
func (r keyring) next() (number int64) {
	for i := range r {
		number = max(number, r[i].Number)
	}
	return number + 1
}

// signers returns a signer for each key that may sign. All of them verify with all keys.
func (r keyring) signers(hub string) map[int64]*worktoken.Signer {
	valid := r.valid()
	keys := make([]*worktoken.Key, len(valid))
	for i, k := range valid {
		keys[i] = worktoken.NewKey(strconv.FormatInt(k.Number, 10), k.secret)
	}
	all := map[int64]*worktoken.Signer{}
	for i, k := range valid {
		all[k.Number] = worktoken.NewSigner(hub, slices.Concat(keys[:i], keys[i+1:], keys[i:i+1])...)
	}
	return all
}

// List returns the keys of the hub and the items that are not keys, without secrets.
func (ks *Keys) List(ctx context.Context) ([]Key, error) {
	all, err := ks.storedKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: read signing keys: %w", ks.hub, err)
	}
	now := ks.now()
	signing := all.signing(now)
	for i := range all {
		all[i].State = all[i].stateOf(&all[i] == signing, now)
		all[i].secret = nil
		if newer := all.successor(&all[i]); newer != nil && !newer.CreatedAt.IsZero() {
			all[i].UsedUntil = newer.SignsFrom().Add(TokenLifetime)
		}
	}
	return all, nil
}

// Add creates a key, which starts to sign after SigningDelay, or at once if the hub has no key. If another process adds
// a key at the same time, both keys are created. If the response to the write is lost, two keys may be created.
func (ks *Keys) Add(ctx context.Context) (Key, error) {
	for {
		all, err := ks.storedKeys(ctx)
		if err != nil {
			return Key{}, fmt.Errorf("dynamo: hub %q: add a signing key: %w", ks.hub, err)
		}
		number := all.next()
		err = ks.put(ctx, number)
		if _, there := table.FailedItem(err, 0); there {
			continue // another process has added this number
		}
		if err != nil {
			return Key{}, fmt.Errorf("dynamo: hub %q: add signing key %d: %w", ks.hub, number, err)
		}
		added := Key{Item: table.NumberedSK(skKeys, number), Number: number, CreatedAt: ks.now()}
		added.State = added.stateOf(len(all.valid()) == 0, added.CreatedAt)
		return added, nil
	}
}

// ErrKeyInUse means that valid tokens of a key can exist, or that the key is the only one.
var ErrKeyInUse = errors.New("signing key in use")

// Remove deletes a key. It returns provider.ErrNotFound if the hub does not have the key. It returns ErrKeyInUse for
// the newest key, because a hub needs a key, and no number is used twice. Unless force is true, it also returns
// ErrKeyInUse as long as messages can have tokens of the key. Completion tokens have no time limit, so they can be in
// use longer.
//
// Two processes that remove keys at the same time leave a key, because none of them removes the newest one.
func (ks *Keys) Remove(ctx context.Context, number int64, force bool) error {
	all, err := ks.storedKeys(ctx)
	if err == nil {
		var own *Key
		if own, err = all.removable(number, force, ks.now()); err == nil {
			err = ks.table.DeleteItem(ctx, "", table.HubKey(own.Item))
		}
	}
	if err != nil {
		return fmt.Errorf("dynamo: hub %q: remove signing key %d: %w", ks.hub, number, err)
	}
	return nil
}

// removable returns a key, or the reason why it must stay.
func (r keyring) removable(number int64, force bool, now time.Time) (*Key, error) {
	i := slices.IndexFunc(r, func(k Key) bool { return k.Number == number && number > 0 })
	if i < 0 {
		return nil, provider.ErrNotFound
	}
	own := &r[i]
	newer := r.successor(own)
	switch {
	case !own.isValid():
		return own, nil // it has signed no token
	case newer == nil:
		return nil, fmt.Errorf("%w: it is the newest key; add another one first", ErrKeyInUse)
	case force:
		return own, nil
	case newer.CreatedAt.IsZero():
		return nil, fmt.Errorf("%w: the creation time of its successor, key %d, is unknown", ErrKeyInUse, newer.Number)
	}
	if until := newer.SignsFrom().Add(TokenLifetime); now.Before(until) {
		return nil, fmt.Errorf("%w: messages can have its tokens until %s", ErrKeyInUse,
			until.UTC().Format(time.RFC3339))
	}
	return own, nil
}

// successor returns the key that replaces a key, or nil.
func (r keyring) successor(of *Key) *Key {
	for _, k := range r.valid() {
		if k.Number > of.Number {
			return k
		}
	}
	return nil
}
