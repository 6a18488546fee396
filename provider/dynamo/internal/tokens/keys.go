// Package tokens signs and verifies the tokens of work items with keys in the table of the hub.
package tokens

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/worktoken"
)

// Keys caches the keys of a hub that sign tokens. It is safe for concurrent use.
type Keys struct {
	table *table.Table
	hub   string
	now   func() time.Time
	log   *slog.Logger

	known atomic.Pointer[knownKeys]
	turn  chan struct{} // a mutex of capacity one for reading the keys
}

// New returns the keys of a hub. It makes no calls.
func New(t *table.Table, hub string, now func() time.Time, log *slog.Logger) *Keys {
	return &Keys{table: t, hub: hub, now: now, log: log, turn: make(chan struct{}, 1)}
}

// The signing keys of a hub are in its table, under pk hub. All keys verify tokens. The key with the greatest number
// signs, once its age is SigningDelay.
const (
	skKeys     = "key#"   // and ten digits: its number, which is its name in tokens
	attrSecret = "secret" // at least 32 bytes, in base64

	secretBytes = 32
	opReadKeys  = "DynamoDB.Query"
	// maxKeyAge is the time for which a process that verifies tokens uses the keys that it has read. A deleted key can
	// be used for that time.
	maxKeyAge = 10 * time.Minute
	// unknownKeyInterval is the minimum interval of reads of the keys for tokens with an unknown key, which may be new.
	unknownKeyInterval = time.Minute
	// failedReadInterval is the minimum interval of reads for a process that signs, while the reads fail.
	failedReadInterval = time.Minute
	// sharedFailureTime is the time for which a failed read counts for all callers of a process that has read keys
	// before. Otherwise each lease of a renewal would wait for the retries of its own read while the table is
	// throttled.
	sharedFailureTime = 5 * time.Second

	// SigningDelay is the age at which a new key starts to sign. It is longer than unknownKeyInterval. Otherwise a
	// process that has read the keys just before would reject the first tokens of the key. The rest allows for a wrong
	// clock of the process that adds the key.
	SigningDelay = 15 * time.Minute
	// MaxSigningAge is the time for which a process that signs tokens uses the keys that it has read.
	MaxSigningAge = 24 * time.Hour
)

// knownKeys are the keys that a process has read.
type knownKeys struct {
	readAt  time.Time
	keys    keyring
	signers map[int64]*worktoken.Signer // by the number of the key that signs; each of them verifies with all keys

	failedAt time.Time // of the last read if it failed
	failure  error
}

// signer returns the signer at a time.
func (k *knownKeys) signer(now time.Time) *worktoken.Signer {
	return k.signers[k.keys.signing(now).Number]
}

// Signer returns the signer of the tokens of work items and completions. It reads the keys once a day per process. A
// process that reports a build has read the keys before (PutBuild), so that a turn does not read them. If a later read
// fails, the cached keys sign. An error has the same effect as an unreachable queue, because no work item is sent
// without its token.
func (ks *Keys) Signer(ctx context.Context) (*worktoken.Signer, error) {
	now := ks.now()
	k, err := ks.keysSince(ctx, now.Add(-MaxSigningAge))
	if err != nil {
		cached := ks.known.Load()
		if cached == nil {
			return nil, err
		}
		// the next read is due after failedReadInterval; a concurrent read is newer and stays
		retried := *cached
		retried.readAt = now.Add(failedReadInterval - MaxSigningAge)
		k = &retried
		ks.known.CompareAndSwap(cached, k)
	}
	return k.signer(now), nil
}

// VerifyWorkItemToken verifies a token. It reads the signing keys again if they are older than ten minutes. For a token
// with an unknown key, it reads the keys at most once a minute.
func (ks *Keys) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return ks.verify(ctx, token, (*worktoken.Signer).Verify)
}

// VerifyCompletionToken verifies a token and reads the keys like VerifyWorkItemToken.
func (ks *Keys) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return ks.verify(ctx, token, (*worktoken.Signer).VerifyCompletion)
}

func (ks *Keys) verify(
	ctx context.Context, token string, open func(*worktoken.Signer, string) (provider.WorkItem, error),
) (provider.WorkItem, error) {
	k, err := ks.keysSince(ctx, ks.now().Add(-maxKeyAge))
	if err != nil {
		if k = ks.known.Load(); k == nil { // otherwise the keys that were read before are used
			return provider.WorkItem{}, err
		}
	}
	if w, err := open(k.signer(ks.now()), token); err == nil {
		return w, nil
	}

	if k, err = ks.keysSince(ctx, ks.now().Add(-unknownKeyInterval)); err != nil {
		return provider.WorkItem{}, err
	}
	w, err := open(k.signer(ks.now()), token)
	if err != nil {
		return w, fmt.Errorf("dynamo: hub %q: %w", ks.hub, err)
	}
	return w, nil
}

// keysSince returns keys that were read after the given time. It reads the keys if necessary.
func (ks *Keys) keysSince(ctx context.Context, since time.Time) (*knownKeys, error) {
	fresh := func() *knownKeys {
		if k := ks.known.Load(); k != nil && k.readAt.After(since) {
			return k
		}
		return nil
	}
	if k := fresh(); k != nil {
		return k, nil
	}

	select {
	case ks.turn <- struct{}{}:
		defer func() { <-ks.turn }()
	case <-ctx.Done():
		return nil, &provider.Error{Op: opReadKeys, Retryable: true, Err: context.Cause(ctx)}
	}
	if k := fresh(); k != nil {
		return k, nil
	}
	cached := ks.known.Load()
	if cached != nil && cached.failure != nil && ks.now().Sub(cached.failedAt) < sharedFailureTime {
		return nil, cached.failure
	}

	readAt := ks.now() // not the time of the response, because the process can be frozen before the response arrives
	keys, err := ks.readKeys(ctx)
	if err != nil {
		err = fmt.Errorf("dynamo: hub %q: read signing key of work items: %w", ks.hub, err)
		if ctx.Err() == nil { // otherwise the caller has ended the read
			ks.shareFailure(cached, err)
		}
		return nil, err
	}
	k := &knownKeys{readAt: readAt, keys: keys, signers: keys.signers(ks.hub)}
	ks.known.Store(k)
	return k, nil
}

// shareFailure stores the error of a failed read with the cached keys, if there are any.
func (ks *Keys) shareFailure(cached *knownKeys, err error) {
	if cached == nil {
		return
	}
	failed := *cached
	failed.failedAt, failed.failure = ks.now(), err
	ks.known.CompareAndSwap(cached, &failed)
}

// readKeys reads the keys of the hub, and creates the first one if there is none. If two processes create it at the
// same time, one succeeds, and both read that key.
func (ks *Keys) readKeys(ctx context.Context) (keyring, error) {
	keys, err := ks.storedKeys(ctx)
	if err == nil && len(keys.valid()) == 0 {
		if err = ks.createKey(ctx, keys.next()); err == nil {
			keys, err = ks.storedKeys(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(keys.valid()) == 0 { // the keys are being deleted
		return nil, &provider.Error{Op: opReadKeys, Retryable: true, Err: provider.ErrNotFound}
	}
	return keys, nil
}

// storedKeys returns the keys of the hub, sorted. It logs an item that is not a key, for example after a wrong edit.
// Work items can still be sent with the other keys.
func (ks *Keys) storedKeys(ctx context.Context) (keyring, error) {
	found, err := ks.table.QueryAll(ctx, "", table.PrefixQuery(table.PKHub, skKeys, provider.Strong))
	if err != nil {
		return nil, err
	}
	all := make(keyring, len(found))
	for i, it := range found {
		all[i] = decode(it)
		if err := all[i].Problem; err != nil {
			ks.log.ErrorContext(ctx, "signing key item invalid, ignoring it", "event", logevent.SigningKeyInvalid,
				"item", all[i].Item, "error", err)
		}
	}
	return all, nil
}

// createKey creates a key of the hub, unless another process has created it.
func (ks *Keys) createKey(ctx context.Context, number int64) error {
	err := ks.put(ctx, number)
	if _, there := table.FailedItem(err, 0); there {
		return nil
	}
	return err
}

// put writes a new key with a number. It fails if the number is in use.
func (ks *Keys) put(ctx context.Context, number int64) error {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	it := table.HubKey(table.NumberedSK(skKeys, number))
	it[attrSecret] = table.Str(base64.StdEncoding.EncodeToString(secret))
	it[table.AttrCreated] = table.Str(table.FormatTime(ks.now()))
	in := &dynamodb.PutItemInput{Item: it, ConditionExpression: aws.String(table.NotExists)}
	return ks.table.Put(ctx, "", in)
}
