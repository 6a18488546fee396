package hubadmin

import (
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
)

// ErrKeyInUse means that valid tokens of a signing key can exist, or that the key is the newest one.
var ErrKeyInUse = tokens.ErrKeyInUse

// The states of signing keys. All keys but invalid items verify tokens.
const (
	KeyNew      = tokens.StateNew      // it does not sign yet
	KeySigning  = tokens.StateSigning  // it signs tokens
	KeyReplaced = tokens.StateReplaced // a newer key signs
	KeyInvalid  = tokens.StateInvalid  // the item is not a key
)

// SigningKey describes a key that signs tokens of work items and completion tokens. It does not contain the secret.
type SigningKey struct {
	// Number is the number of the key in its tokens, or 0 if the item has none.
	Number int64 `json:"number"`
	// Item is the sort key of the item in the table.
	Item  string `json:"item"`
	State string `json:"state"`
	// CreatedAt is nil if the program that wrote the item did not record the time.
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	// SignsFrom is the time at which a new key starts to sign.
	SignsFrom *time.Time `json:"signsFrom,omitempty"`
	// UsedUntil is the time until which messages can have tokens of a replaced key.
	UsedUntil *time.Time `json:"usedUntil,omitempty"`
	// Problem is the reason why the item is not a key.
	Problem string `json:"problem,omitempty"`
}

// SigningKeys lists and replaces the signing keys of a hub.
type SigningKeys struct{ keys *tokens.Keys }

// SigningKeys returns the signing keys of the hub. It makes no calls.
func (h *Admin) SigningKeys() SigningKeys {
	log := slog.New(slog.DiscardHandler) // List returns the items that the log would report
	return SigningKeys{tokens.New(table.New(h.Table, h.Config.Table), h.Config.Name, h.Now, log)}
}

// List returns the keys by number.
func (s SigningKeys) List(ctx context.Context) ([]SigningKey, error) {
	found, err := s.keys.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]SigningKey, len(found))
	for i := range found {
		all[i] = newSigningKey(&found[i])
	}
	return all, nil
}

// Add adds a key, which starts to sign 15 minutes later. The first key of a hub signs at once.
func (s SigningKeys) Add(ctx context.Context) (SigningKey, error) {
	added, err := s.keys.Add(ctx)
	if err != nil {
		return SigningKey{}, err
	}
	return newSigningKey(&added), nil
}

// Remove deletes a key. Its tokens become invalid within ten minutes. Remove returns provider.ErrNotFound if the hub
// does not have the key, and ErrKeyInUse for the newest key. Unless force is true, it also returns ErrKeyInUse as long
// as messages can have tokens of the key: until 29 days after the next key starts to sign.
func (s SigningKeys) Remove(ctx context.Context, number int64, force bool) error {
	return s.keys.Remove(ctx, number, force)
}

func newSigningKey(k *tokens.Key) SigningKey {
	described := SigningKey{
		Number: k.Number, Item: k.Item, State: k.State, CreatedAt: known(k.CreatedAt), SignsFrom: known(k.SignsFrom()),
		UsedUntil: known(k.UsedUntil),
	}
	if k.Problem != nil {
		described.Problem = k.Problem.Error()
	}
	return described
}

// known returns nil for the zero time.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}
